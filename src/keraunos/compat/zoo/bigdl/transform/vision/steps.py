"""BigDL's steps from an image's file to a sample, under BigDL's names. Runs on executors.

What steps do to pixels is in `mats`. Steps that draw do so from the image's own numbers (`ImageFeature.draw`), so that
a task that runs again sees the same image.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.compat.zoo.bigdl.transform.vision import mats
from keraunos.compat.zoo.bigdl.transform.vision.image_feature import (
    BYTES,
    ERROR,
    FLOATS,
    LABEL,
    MAT,
    ORIGINAL_SIZE,
    READ_SIZE,
    SAMPLE,
    TENSOR,
    ImageFeature,
    Mat,
)
from keraunos.compat.zoo.bigdl.transform.vision.preprocessing import Preprocessing, checked_step
from keraunos.compat.zoo.bigdl.util.common import Sample
from keraunos.errors import DataError, JobError, KeraunosError, one_of

_log = logging.getLogger(__name__)


class FeatureTransformer(Preprocessing):
    """A step from an image to the image afterwards; an image that could not be decoded is not changed."""

    def transform(self, value: ImageFeature) -> ImageFeature:
        """Returns the image after the step."""
        if not isinstance(value, ImageFeature):
            raise DataError(
                f"{type(self).__name__} must be given images. Received: {type(value).__name__}. In a DataFrame's "
                "pipeline begin with RowToImageFeature()."
            )
        made = value.copy()
        if made.is_valid:
            try:
                self.change(made)
            except KeraunosError:
                raise
            except Exception as error:
                raise DataError(
                    f"{type(self).__name__} failed for the image {made.uri!r}. Received: {type(error).__name__}: "
                    f"{error}."
                ) from error
        return made

    def change(self, feature: ImageFeature) -> None:
        """Change the image's pixels."""
        feature[MAT] = self.change_mat(feature.pixels, feature)

    def change_mat(self, mat: Mat, feature: ImageFeature) -> Mat:
        """Returns the pixels afterwards."""
        raise NotImplementedError


class Drawing(FeatureTransformer):
    """A step that uses random numbers."""

    @property
    def draws(self) -> bool:
        """It does."""
        return True


class Pipeline(FeatureTransformer):
    """Steps, one after the other."""

    def __init__(self, transformers: Sequence[Any], bigdl_type: str = "float") -> None:
        del bigdl_type
        self.transformers = [checked_step(each, "transformers") for each in transformers]

    @property
    def draws(self) -> bool:
        """Whether any of them does."""
        return any(each.draws for each in self.transformers)

    def transform(self, value: Any) -> Any:
        """Returns the result of the last of them."""
        for each in self.transformers:
            value = each.transform(value)
        return value


class RandomTransformer(Drawing):
    """A step that is taken with a probability."""

    def __init__(self, transformer: Any, prob: float, bigdl_type: str = "float") -> None:
        del bigdl_type
        self.transformer = checked_step(transformer, "transformer")
        self.prob = float(prob)
        if not 0 <= self.prob <= 1:
            raise JobError(f"`prob` must be from 0 to 1. Received: {prob!r}.")

    def transform(self, value: ImageFeature) -> ImageFeature:
        """Returns the image after the step, or unchanged."""
        made = value.copy()
        if made.is_valid and made.draw().uniform() < self.prob:
            found: ImageFeature = self.transformer.transform(made)
            return found
        return made


class BytesToMat(FeatureTransformer):
    """The file's bytes as pixels. A file that cannot be decoded is noted, and fails where its pixels are needed."""

    codec = -1

    def __init__(self, byte_key: str = "bytes", bigdl_type: str = "float") -> None:
        del bigdl_type
        self.byte_key = byte_key

    def change(self, feature: ImageFeature) -> None:
        """Decode the image."""
        content = feature.get(self.byte_key)
        if content is None:
            # Made from an array: as from a file of its pixels, which are of 8 bits there.
            feature[MAT] = mats.like(np.zeros(0, np.uint8), feature.pixels)
            return
        try:
            mat = mats.decoded(content, self.codec)
        except Exception as error:  # noqa: BLE001 - Pillow's decoders raise whatever they meet
            feature[ERROR] = f"{type(error).__name__}: {error}"
            _log.warning("The image %r cannot be decoded: %s", feature.uri, feature[ERROR])
            return
        size = feature.get(READ_SIZE) if self.byte_key == BYTES else None
        feature[MAT] = mat if size is None else mats.resized(mat, size[0], size[1], mats.SMOOTH)
        feature[ORIGINAL_SIZE] = feature[MAT].shape


class PixelBytesToMat(FeatureTransformer):
    """Bytes that are pixels of 8 bits, of an image whose size is known."""

    def __init__(self, byte_key: str = "bytes", bigdl_type: str = "float") -> None:
        del bigdl_type
        self.byte_key = byte_key

    def change(self, feature: ImageFeature) -> None:
        """Lay the bytes out as pixels."""
        feature[MAT] = np.frombuffer(feature[self.byte_key], np.uint8).reshape(feature[ORIGINAL_SIZE])


class Resize(FeatureTransformer):
    """Another size. `resize_mode` is OpenCV's: 0 nearest, 1 linear, 2 cubic, 3 area, 4 Lanczos; -1 draws one of them.

    Without `use_scale_factor` the mode is linear.
    """

    def __init__(
        self,
        resize_h: int,
        resize_w: int,
        resize_mode: int = 1,
        use_scale_factor: bool = True,
        bigdl_type: str = "float",
    ) -> None:
        del bigdl_type
        self.resize_h, self.resize_w = int(resize_h), int(resize_w)
        self.resize_mode, self.use_scale_factor = _mode(resize_mode), bool(use_scale_factor)

    @property
    def draws(self) -> bool:
        """Whether the mode is drawn."""
        return self.use_scale_factor and self.resize_mode == -1

    def change_mat(self, mat: Mat, feature: ImageFeature) -> Mat:
        """Returns the image in that size."""
        mode = self.resize_mode if self.use_scale_factor else mats.LINEAR
        if mode == -1:
            mode = int(feature.draw().choice(mats.MODES))
        return mats.resized(mat, self.resize_h, self.resize_w, mode)


class AspectScale(FeatureTransformer):
    """The shorter side becomes `min_size` long, or less, so that the longer one is at most `max_size`.

    `scale_multiple_of` makes the sides multiples of a number; the scale is at least `min_scale`.
    """

    def __init__(
        self,
        min_size: int,
        scale_multiple_of: int = 1,
        max_size: int = 1000,
        resize_mode: int = 1,
        use_scale_factor: bool = True,
        min_scale: float = -1.0,
        bigdl_type: str = "float",
    ) -> None:
        del bigdl_type
        self.min_size, self.scale_multiple_of, self.max_size = int(min_size), int(scale_multiple_of), int(max_size)
        self.resize_mode, self.use_scale_factor = _mode(resize_mode), bool(use_scale_factor)
        self.min_scale = float(min_scale)
        if self.resize_mode == -1:
            raise JobError("`resize_mode` must be one of OpenCV's modes, 0 to 4. Received: -1.")

    def change_mat(self, mat: Mat, feature: ImageFeature) -> Mat:
        """Returns the image at that scale."""
        return self.scaled_to(mat, self.min_size, self.resize_mode if self.use_scale_factor else mats.LINEAR)

    def scaled_to(self, mat: Mat, least: int, mode: int) -> Mat:
        """Returns the image with the shorter side of that length."""
        height, width = mat.shape[:2]
        scale = least / min(height, width)
        if self.min_scale != -1.0:
            scale = max(self.min_scale, scale)
        if _half_up(scale * max(height, width)) > self.max_size:
            scale = self.max_size / max(height, width)
        sides = [side * scale for side in (height, width)]
        if self.scale_multiple_of > 1:
            sides = [float(side // self.scale_multiple_of * self.scale_multiple_of) for side in sides]
        return mats.resized(mat, _half_up(sides[0]), _half_up(sides[1]), mode)


class RandomAspectScale(AspectScale):
    """The same with a `min_size` that is drawn from `scales`."""

    def __init__(
        self, scales: Sequence[int], scale_multiple_of: int = 1, max_size: int = 1000, bigdl_type: str = "float"
    ) -> None:
        super().__init__(min(scales), scale_multiple_of, max_size)
        self.scales = [int(each) for each in scales]

    @property
    def draws(self) -> bool:
        """The scale is drawn."""
        return True

    def change_mat(self, mat: Mat, feature: ImageFeature) -> Mat:
        """Returns the image at one of the scales."""
        return self.scaled_to(mat, int(feature.draw().choice(self.scales)), mats.LINEAR)


class RandomResize(Drawing):
    """The shorter side becomes as long as a number drawn from `min_size` to `max_size`; cubic."""

    def __init__(self, min_size: int, max_size: int, bigdl_type: str = "float") -> None:
        del bigdl_type
        self.min_size, self.max_size = int(min_size), int(max_size)

    def change_mat(self, mat: Mat, feature: ImageFeature) -> Mat:
        """Returns the image in that size."""
        height, width = mat.shape[:2]
        short = int(feature.draw().integers(self.min_size, self.max_size + 1))
        if height < width:
            return mats.resized(mat, short, int(width / height * short), mats.CUBIC)
        return mats.resized(mat, int(height / width * short), short, mats.CUBIC)


class CenterCrop(FeatureTransformer):
    """The middle of the image."""

    def __init__(self, crop_width: int, crop_height: int, is_clip: bool = True, bigdl_type: str = "float") -> None:
        del bigdl_type
        self.crop_width, self.crop_height, self.is_clip = int(crop_width), int(crop_height), bool(is_clip)

    def change_mat(self, mat: Mat, feature: ImageFeature) -> Mat:
        """Returns that part of the image."""
        height, width = mat.shape[:2]
        left, top = (width - self.crop_width) / 2, (height - self.crop_height) / 2
        return mats.cropped(mat, left, top, left + self.crop_width, top + self.crop_height, clip=self.is_clip)


class RandomCrop(Drawing):
    """A part of the image at a place that is drawn."""

    def __init__(self, crop_width: int, crop_height: int, is_clip: bool = True, bigdl_type: str = "float") -> None:
        del bigdl_type
        self.crop_width, self.crop_height, self.is_clip = int(crop_width), int(crop_height), bool(is_clip)

    def change_mat(self, mat: Mat, feature: ImageFeature) -> Mat:
        """Returns that part of the image."""
        spare = [side - wanted for side, wanted in zip(mat.shape, (self.crop_height, self.crop_width), strict=False)]
        drawn = feature.draw()
        top, left = (int(drawn.integers(0, each + 1)) if each >= 0 else each for each in spare)
        return mats.cropped(mat, left, top, left + self.crop_width, top + self.crop_height, clip=self.is_clip)


class FixedCrop(FeatureTransformer):
    """A part of the image, in pixels or, normalized, in shares of its sides."""

    def __init__(
        self,
        x1: float,
        y1: float,
        x2: float,
        y2: float,
        normalized: bool = True,
        is_clip: bool = True,
        bigdl_type: str = "float",
    ) -> None:
        del bigdl_type
        self.box = (float(x1), float(y1), float(x2), float(y2))
        self.normalized, self.is_clip = bool(normalized), bool(is_clip)

    def change_mat(self, mat: Mat, feature: ImageFeature) -> Mat:
        """Returns that part of the image."""
        height, width = mat.shape[:2]
        across, down = (width, height) if self.normalized else (1, 1)
        x1, y1, x2, y2 = self.box
        return mats.cropped(mat, x1 * across, y1 * down, x2 * across, y2 * down, clip=self.is_clip)


class HFlip(FeatureTransformer):
    """Left becomes right."""

    def __init__(self, bigdl_type: str = "float") -> None:
        del bigdl_type

    def change_mat(self, mat: Mat, feature: ImageFeature) -> Mat:
        """Returns the image, flipped."""
        return mat[:, ::-1]


class MatToFloats(FeatureTransformer):
    """The pixels as floats, under a key."""

    def __init__(
        self,
        valid_height: int = 300,
        valid_width: int = 300,
        valid_channel: int = 300,
        out_key: str = "floats",
        share_buffer: bool = True,
        bigdl_type: str = "float",
    ) -> None:
        # What an image without pixels has there in BigDL, and whose memory it is; here such an image fails.
        del valid_height, valid_width, valid_channel, share_buffer, bigdl_type
        self.out_key = out_key

    def change(self, feature: ImageFeature) -> None:
        """Keep the pixels as floats."""
        feature[self.out_key] = feature.pixels.astype(np.float32)


class MatToTensor(FeatureTransformer):
    """The pixels as the tensor that a model takes: channels first, in the order BGR, or RGB with `to_rgb`."""

    channels_first = True

    def __init__(self, to_rgb: bool = False, tensor_key: str = "imageTensor", bigdl_type: str = "float") -> None:
        del bigdl_type
        self.to_rgb, self.tensor_key = bool(to_rgb), tensor_key

    def change(self, feature: ImageFeature) -> None:
        """Make the tensor."""
        floats = feature.pixels.astype(np.float32)
        feature[FLOATS], feature[MAT] = floats, None
        if floats.shape[2] == 1:
            feature[self.tensor_key] = floats[:, :, 0]
            return
        if self.to_rgb:
            floats = floats[:, :, [2, 1, 0, 3][: floats.shape[2]]]
        feature[self.tensor_key] = np.ascontiguousarray(floats.transpose(2, 0, 1) if self.channels_first else floats)


class ImageFrameToSample(FeatureTransformer):
    """Tensors as the record that a model is trained with; a target that an image has not is left out."""

    def __init__(
        self,
        input_keys: Sequence[str] = (TENSOR,),
        target_keys: Sequence[str] | None = None,
        sample_key: str = SAMPLE,
        bigdl_type: str = "float",
    ) -> None:
        del bigdl_type
        self.input_keys = list(input_keys)
        self.target_keys = list(target_keys or ())
        self.sample_key = sample_key

    def change(self, feature: ImageFeature) -> None:
        """Make the record."""
        inputs = [_tensor(feature, key) for key in self.input_keys]
        targets = [_tensor(feature, key) for key in self.target_keys if key in feature]
        feature[self.sample_key] = Sample.from_ndarray(inputs, targets)


def checked_image(value: Any) -> ImageFeature:
    """Returns the image; one that could not be decoded is an error that names it."""
    if not isinstance(value, ImageFeature):
        raise DataError(f"An element must be an image. Received: {type(value).__name__}.")
    if not value.is_valid:
        raise DataError(
            f"The image {value.uri!r} cannot be decoded. Expected: a file that Pillow reads. Received: "
            f"{value[ERROR]}. Remove the file."
        )
    return value


def sample_of(value: Any, key: str = SAMPLE) -> Sample:
    """Returns the record of an image."""
    found: Sample = checked_image(value)[key]
    return found


def _tensor(feature: ImageFeature, key: str) -> npt.NDArray[Any]:
    found = feature[key]
    if not isinstance(found, np.ndarray):
        kind = "tensor" if key != LABEL else "label"
        raise DataError(f"The {kind} {key!r} of an image must be an array. Received: {type(found).__name__}.")
    return found


def _mode(mode: Any) -> int:
    if mode not in (-1, *mats.MODES):
        raise JobError(one_of("resize_mode", mode, tuple(map(str, (-1, *mats.MODES)))))
    return int(mode)


def _half_up(value: float) -> int:
    return int(np.floor(value + 0.5))
