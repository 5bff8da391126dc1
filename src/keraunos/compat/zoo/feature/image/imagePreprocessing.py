"""Analytics Zoo's steps on images, BigDL's under its names. Made on the driver, run on executors."""  # noqa: N999 - its name

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from keraunos.compat.zoo.bigdl.transform.vision import colours, mats, steps
from keraunos.compat.zoo.bigdl.transform.vision.image_feature import (
    MAT,
    ORIGINAL_SIZE,
    SAMPLE,
    TENSOR,
    ImageFeature,
    Mat,
)
from keraunos.compat.zoo.bigdl.transform.vision.preprocessing import Preprocessing
from keraunos.compat.zoo.bigdl.transform.vision.steps import FeatureTransformer, checked_image, sample_of
from keraunos.compat.zoo.bigdl.util import common as _bigdl
from keraunos.errors import DataError, JobError, one_of

__all__ = [
    "ImageAspectScale",
    "ImageBrightness",
    "ImageBytesToMat",
    "ImageCenterCrop",
    "ImageChannelNormalize",
    "ImageChannelOrder",
    "ImageColorJitter",
    "ImageExpand",
    "ImageFeatureToSample",
    "ImageFeatureToTensor",
    "ImageFiller",
    "ImageFixedCrop",
    "ImageHFlip",
    "ImageHue",
    "ImageMatToTensor",
    "ImageMirror",
    "ImagePixelBytesToMat",
    "ImagePixelNormalize",
    "ImagePreprocessing",
    "ImageRandomAspectScale",
    "ImageRandomCrop",
    "ImageRandomPreprocessing",
    "ImageResize",
    "ImageSaturation",
    "ImageSetToSample",
    "PerImageNormalize",
    "Preprocessing",
    "RowToImageFeature",
]
# Imported from BigDL; a star import of this module re-exported them.
__all__ += _bigdl.__all__


def __getattr__(name: str) -> Any:
    return _bigdl.passed_on("zoo.feature.image.imagePreprocessing", name)


_BYTE_TYPES = {0: 1, 16: 3, 24: 4}
_FLOAT_TYPES = {5: 1, 21: 3, 29: 4}


class ImagePreprocessing(FeatureTransformer):
    """A step from an image to the image afterwards."""


class ImageBytesToMat(steps.BytesToMat, ImagePreprocessing):
    """The file's bytes as pixels. `image_codec`: above 0 three channels, 0 one, below 0 as many as the file has."""

    def __init__(self, byte_key: str = "bytes", image_codec: int = -1, bigdl_type: str = "float") -> None:
        super().__init__(byte_key, bigdl_type)
        self.codec = int(image_codec)


class ImagePixelBytesToMat(steps.PixelBytesToMat, ImagePreprocessing):
    """Bytes that are pixels of 8 bits, of an image whose size is known."""


class ImageResize(steps.Resize, ImagePreprocessing):
    """Another size. `resize_mode` is OpenCV's: 0 nearest, 1 linear, 2 cubic, 3 area, 4 Lanczos; -1 draws one."""


class ImageAspectScale(steps.AspectScale, ImagePreprocessing):
    """The shorter side becomes `min_size` long, or less, so that the longer one is at most `max_size`."""


class ImageRandomAspectScale(steps.RandomAspectScale, ImagePreprocessing):
    """The same with a size that is drawn from `scales`."""


class ImageCenterCrop(steps.CenterCrop, ImagePreprocessing):
    """The middle of the image."""


class ImageRandomCrop(steps.RandomCrop, ImagePreprocessing):
    """A part of the image at a place that is drawn."""


class ImageFixedCrop(steps.FixedCrop, ImagePreprocessing):
    """A part of the image, in pixels or, normalized, in shares of its sides."""


class ImageHFlip(steps.HFlip, ImagePreprocessing):
    """Left becomes right."""


class ImageMirror(ImagePreprocessing):
    """Left becomes right, and top bottom."""

    def __init__(self, bigdl_type: str = "float") -> None:
        del bigdl_type

    def change_mat(self, mat: Mat, feature: ImageFeature) -> Mat:
        """Returns the image, flipped."""
        return mat[::-1, ::-1]


class ImageBrightness(colours.Brightness, ImagePreprocessing):
    """A number from a range is added to all values."""


class ImageHue(colours.Hue, ImagePreprocessing):
    """The hue is turned by a number from a range."""


class ImageSaturation(colours.Saturation, ImagePreprocessing):
    """The saturation is multiplied by a number from a range."""


class ImageChannelOrder(colours.ChannelOrder, ImagePreprocessing):
    """The channels in an order that is drawn."""


class ImageColorJitter(colours.ColorJitter, ImagePreprocessing):
    """Brightness, contrast, saturation and hue, each with a probability."""


class ImageChannelNormalize(colours.ChannelNormalize, ImagePreprocessing):
    """Subtracts the mean of each channel, then divides by its deviation."""


class ImagePixelNormalize(colours.PixelNormalize, ImagePreprocessing):
    """A mean image taken away, whose values are in the order of rows, columns and channels."""


class PerImageNormalize(ImagePreprocessing):
    """OpenCV's `normalize`: to the range from `min` to `max` (32), or to the norm `min` (1 largest, 2 sum, 4 root).

    The result has the type of the image: to have floats, put `ImageChannelNormalize(0, 0, 0)` before.
    """

    def __init__(self, min: float, max: float, norm_type: int = 32, bigdl_type: str = "float") -> None:  # noqa: A002 - Analytics Zoo's names
        del bigdl_type
        self.low, self.high, self.norm_type = float(min), float(max), norm_type
        kinds = (mats.INF, mats.L1, mats.L2, mats.MINMAX)
        if norm_type not in kinds:
            raise JobError(one_of("norm_type", norm_type, tuple(map(str, kinds))))

    def change_mat(self, mat: Mat, feature: ImageFeature) -> Mat:
        """Returns the image in that range."""
        return mats.normalized(mat, self.low, self.high, self.norm_type)


class ImageExpand(colours.Expand, ImagePreprocessing):
    """The image at a place that is drawn in a larger one of a mean colour."""


class ImageFiller(colours.Filler, ImagePreprocessing):
    """A part of the image, in shares of its sides, filled with a value."""


class ImageMatToTensor(steps.MatToTensor, ImagePreprocessing):
    """The pixels as the tensor that a model takes, in the order BGR, or RGB with `to_RGB`.

    `format` is `"NCHW"` or `"NHWC"`. `share_buffer` has no effect: every image has its own tensor.
    """

    def __init__(
        self,
        to_RGB: bool = False,
        tensor_key: str = "imageTensor",
        share_buffer: bool = True,
        format: str = "NCHW",  # noqa: A002 - Analytics Zoo's name
        bigdl_type: str = "float",
    ) -> None:
        del share_buffer
        super().__init__(to_RGB, tensor_key, bigdl_type)
        if format not in {"NCHW", "NHWC"}:
            raise JobError(one_of("format", format, ("NCHW", "NHWC")))
        self.channels_first = format == "NCHW"


class ImageSetToSample(steps.ImageFrameToSample, ImagePreprocessing):
    """Tensors as the record that a model is trained with; a target that an image has not is left out."""

    def __init__(
        self,
        input_keys: Sequence[str] = (TENSOR,),
        target_keys: Sequence[str] | None = ("label",),
        sample_key: str = SAMPLE,
        bigdl_type: str = "float",
    ) -> None:
        super().__init__(input_keys, target_keys, sample_key, bigdl_type)


class ImageRandomPreprocessing(steps.RandomTransformer):
    """A step that is taken with a probability."""

    def __init__(self, preprocessing: Any, prob: float, bigdl_type: str = "float") -> None:
        super().__init__(preprocessing, prob, bigdl_type)


class ImageFeatureToTensor(Preprocessing):
    """The image's tensor."""

    def __init__(self, bigdl_type: str = "float") -> None:
        del bigdl_type

    def transform(self, value: Any) -> Any:
        """Returns the tensor, of an image that could be decoded."""
        return checked_image(value)[TENSOR]


class ImageFeatureToSample(Preprocessing):
    """The image's record."""

    def __init__(self, bigdl_type: str = "float") -> None:
        del bigdl_type

    def transform(self, value: Any) -> Any:
        """Returns the record, of an image that could be decoded."""
        return sample_of(value)


class RowToImageFeature(Preprocessing):
    """An image of a DataFrame, as `NNImageReader` and Spark's `image` source read it."""

    def __init__(self, bigdl_type: str = "float") -> None:
        del bigdl_type

    def transform(self, value: Any) -> ImageFeature:
        """Returns the image."""
        try:
            origin, height, width, channels, mode, data = value
        except (TypeError, ValueError):
            raise DataError(
                "An image column must have Spark's image struct: origin, height, width, nChannels, mode and data. "
                f"Received: {type(value).__name__}. Read it with NNImageReader.readImages."
            ) from None
        made = ImageFeature(path=origin)
        shape = (height, width, channels)
        if _BYTE_TYPES.get(mode) == channels:
            made[MAT] = np.frombuffer(data, np.uint8).reshape(shape)
        elif _FLOAT_TYPES.get(mode) == channels:
            made[TENSOR] = np.asarray(data, np.float32).reshape(shape)
        else:
            raise DataError(
                "An image must have 1, 3 or 4 channels of bytes or floats. Received: "
                f"mode {mode!r} with {channels!r} channels in {origin!r}."
            )
        made[ORIGINAL_SIZE] = shape
        return made
