"""BigDL's steps that change colours, under BigDL's names. Runs on executors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from keraunos.compat.zoo.bigdl.transform.vision import mats
from keraunos.compat.zoo.bigdl.transform.vision.image_feature import ImageFeature, Mat
from keraunos.compat.zoo.bigdl.transform.vision.steps import Drawing, FeatureTransformer, RandomTransformer
from keraunos.errors import DataError, JobError


class _Ranged(Drawing):
    """A step with a number from a range."""

    least = -float("inf")

    def __init__(self, delta_low: float, delta_high: float, bigdl_type: str = "float") -> None:
        del bigdl_type
        self.delta_low, self.delta_high = float(delta_low), float(delta_high)
        if not self.least <= self.delta_low <= self.delta_high:
            raise JobError(
                f"`delta_low` must be at most `delta_high`{' and at least 0' if self.least == 0 else ''}. Received: "
                f"{delta_low!r} and {delta_high!r}."
            )

    def drawn(self, feature: ImageFeature) -> float:
        """Returns the number for an image."""
        return float(feature.draw().uniform(self.delta_low, self.delta_high))


class Brightness(_Ranged):
    """A number is added to all values."""

    def change_mat(self, mat: Mat, feature: ImageFeature) -> Mat:
        """Returns the image in that brightness."""
        return mats.scaled(mat, 1.0, self.drawn(feature))


class Contrast(_Ranged):
    """All values are multiplied by a number."""

    least = 0.0

    def change_mat(self, mat: Mat, feature: ImageFeature) -> Mat:
        """Returns the image in that contrast."""
        factor = self.drawn(feature)
        return mats.scaled(mat, factor, 0.0) if abs(factor - 1) > 1e-3 else mat


class Hue(_Ranged):
    """The hue is turned: 180 a circle for images of 8 bits, 360 for floats."""

    def change_mat(self, mat: Mat, feature: ImageFeature) -> Mat:
        """Returns the image in that hue."""
        delta = self.drawn(feature)
        return mats.hue_turned(mat, delta) if delta else mat


class Saturation(_Ranged):
    """The saturation is multiplied by a number."""

    least = 0.0

    def change_mat(self, mat: Mat, feature: ImageFeature) -> Mat:
        """Returns the image in that saturation."""
        return mats.saturated(mat, self.drawn(feature))


class ChannelOrder(Drawing):
    """The channels in an order that is drawn."""

    def __init__(self, bigdl_type: str = "float") -> None:
        del bigdl_type

    def change_mat(self, mat: Mat, feature: ImageFeature) -> Mat:
        """Returns the image in that order."""
        return mat[:, :, feature.draw().permutation(mat.shape[2])]


class ColorJitter(Drawing):
    """Brightness, contrast, saturation and hue, each with a probability, in one of two orders, or with `shuffle` any.

    The channels change places with the probability `random_order_prob`.
    """

    def __init__(
        self,
        brightness_prob: float = 0.5,
        brightness_delta: float = 32.0,
        contrast_prob: float = 0.5,
        contrast_lower: float = 0.5,
        contrast_upper: float = 1.5,
        hue_prob: float = 0.5,
        hue_delta: float = 18.0,
        saturation_prob: float = 0.5,
        saturation_lower: float = 0.5,
        saturation_upper: float = 1.5,
        random_order_prob: float = 0.0,
        shuffle: bool = False,
        bigdl_type: str = "float",
    ) -> None:
        del bigdl_type
        self.shuffle = bool(shuffle)
        self.steps = [
            RandomTransformer(Brightness(-brightness_delta, brightness_delta), brightness_prob),
            RandomTransformer(Contrast(contrast_lower, contrast_upper), contrast_prob),
            RandomTransformer(Saturation(saturation_lower, saturation_upper), saturation_prob),
            RandomTransformer(Hue(-hue_delta, hue_delta), hue_prob),
            RandomTransformer(ChannelOrder(), random_order_prob),
        ]

    def transform(self, value: ImageFeature) -> ImageFeature:
        """Returns the image after the steps."""
        if not value.is_valid:
            return value
        made = value.copy()
        drawn = made.draw()
        if self.shuffle:
            order = drawn.permutation(len(self.steps)).tolist()
        else:
            order = [0, 1, 2, 3, 4] if drawn.uniform() > 0.5 else [0, 2, 3, 1, 4]
        for place in order:
            made = self.steps[place].transform(made)
        return made


class ChannelNormalize(FeatureTransformer):
    """Subtracts the mean of each channel, then divides by its deviation."""

    def __init__(
        self,
        mean_r: float,
        mean_g: float,
        mean_b: float,
        std_r: float = 1.0,
        std_g: float = 1.0,
        std_b: float = 1.0,
        bigdl_type: str = "float",
    ) -> None:
        del bigdl_type
        self.means = [float(each) for each in (mean_b, mean_g, mean_r)]
        self.deviations = [float(each) for each in (std_b, std_g, std_r)]
        if 0.0 in self.deviations:
            raise JobError(f"`std_r`, `std_g` and `std_b` must not be 0. Received: {self.deviations[::-1]!r}.")

    def change_mat(self, mat: Mat, feature: ImageFeature) -> Mat:
        """Returns the image as floats around 0."""
        channels = mat.shape[2]
        if channels > 3:
            raise DataError(
                f"An image must have at most three channels to be normalized. Received: {channels} in {feature.uri!r}."
                " Read it with image_codec=1."
            )
        means, deviations = (np.array(each[:channels], np.float32) for each in (self.means, self.deviations))
        return (mat.astype(np.float32) - means) / deviations


class ChannelScaledNormalizer(FeatureTransformer):
    """Subtracts the mean of each channel, then multiplies by `scale`."""

    def __init__(self, mean_r: int, mean_g: int, mean_b: int, scale: float, bigdl_type: str = "float") -> None:
        del bigdl_type
        self.normalize, self.scale = ChannelNormalize(mean_r, mean_g, mean_b), float(scale)

    def change_mat(self, mat: Mat, feature: ImageFeature) -> Mat:
        """Returns the image as floats around 0."""
        return self.normalize.change_mat(mat, feature) * np.float32(self.scale)


class PixelNormalize(FeatureTransformer):
    """A mean image taken away, whose values are in the order of rows, columns and channels."""

    def __init__(self, means: Sequence[float], bigdl_type: str = "float") -> None:
        del bigdl_type
        self.means = np.asarray(means, np.float32).reshape(-1)

    def change_mat(self, mat: Mat, feature: ImageFeature) -> Mat:
        """Returns the image as floats around 0."""
        if self.means.size != mat.size:
            raise DataError(
                f"`means` must have a value for each of the image's. Expected: {mat.size}. Received: {self.means.size}."
            )
        return mat.astype(np.float32) - self.means.reshape(mat.shape)


class Expand(Drawing):
    """The image at a place that is drawn in a larger one of a mean colour; how much larger is drawn, too."""

    def __init__(
        self,
        means_r: int = 123,
        means_g: int = 117,
        means_b: int = 104,
        min_expand_ratio: float = 1.0,
        max_expand_ratio: float = 4.0,
        bigdl_type: str = "float",
    ) -> None:
        del bigdl_type
        self.means = [float(each) for each in (means_b, means_g, means_r)]
        self.ratios = (float(min_expand_ratio), float(max_expand_ratio))

    def change_mat(self, mat: Mat, feature: ImageFeature) -> Mat:
        """Returns the larger image."""
        if abs(self.ratios[1] - 1) < 1e-2:
            return mat
        drawn = feature.draw()
        ratio = drawn.uniform(*self.ratios)
        height, width = (int(side * ratio) for side in mat.shape[:2])
        top = int(drawn.uniform(0, height - mat.shape[0]))
        left = int(drawn.uniform(0, width - mat.shape[1]))
        larger = np.empty((height, width, mat.shape[2]), mat.dtype)
        larger[:] = mats.like(mat, np.array(self.means))
        larger[top : top + mat.shape[0], left : left + mat.shape[1]] = mat
        return larger


class FixExpand(FeatureTransformer):
    """The image in the middle of a larger, black one."""

    def __init__(self, expand_height: int, expand_width: int, bigdl_type: str = "float") -> None:
        del bigdl_type
        self.size = (int(expand_height), int(expand_width))

    def change_mat(self, mat: Mat, feature: ImageFeature) -> Mat:
        """Returns the larger image."""
        spare = [wanted - side for wanted, side in zip(self.size, mat.shape, strict=False)]
        if min(spare) < 0:
            raise DataError(f"An image must fit into {self.size}. Received: {mat.shape[:2]} in {feature.uri!r}.")
        around = [(each // 2, each - each // 2) for each in spare]
        return np.pad(mat, [*around, (0, 0)])


class Filler(FeatureTransformer):
    """A part of the image, in shares of its sides, filled with a value."""

    def __init__(
        self,
        start_x: float,
        start_y: float,
        end_x: float,
        end_y: float,
        value: int = 255,
        bigdl_type: str = "float",
    ) -> None:
        del bigdl_type
        self.x, self.y, self.value = (float(start_x), float(end_x)), (float(start_y), float(end_y)), value
        if not all(0 <= start < end <= 1 for start, end in (self.x, self.y)):
            raise JobError(
                "The part must be given in shares from 0 to 1, its starts before its ends. Received: "
                f"x from {start_x!r} to {end_x!r}, y from {start_y!r} to {end_y!r}."
            )

    def change_mat(self, mat: Mat, feature: ImageFeature) -> Mat:
        """Returns the image with the part filled."""
        made = mat.copy()
        rows, columns = (
            slice(int(np.ceil(start * side)), int(np.ceil(end * side)))
            for (start, end), side in zip((self.y, self.x), mat.shape, strict=False)
        )
        made[rows, columns] = self.value
        return made


class RandomCropper(Drawing):
    """A part of the image as floats, at a place that is drawn or in the middle; with `mirror` flipped half the time."""

    def __init__(
        self,
        crop_w: int,
        crop_h: int,
        mirror: bool,
        cropper_method: str,
        channels: int,
        bigdl_type: str = "float",
    ) -> None:
        del bigdl_type
        self.size, self.mirror, self.method = (int(crop_h), int(crop_w)), bool(mirror), cropper_method
        self.channels = int(channels)
        if cropper_method not in {"Random", "Center"}:
            raise JobError(f"`cropper_method` must be 'Random' or 'Center'. Received: {cropper_method!r}.")

    def change_mat(self, mat: Mat, feature: ImageFeature) -> Mat:
        """Returns that part of the image."""
        spare = [side - wanted for side, wanted in zip(mat.shape, self.size, strict=False)]
        if min(spare) < 0 or mat.shape[2] != self.channels:
            raise DataError(
                f"An image must have at least the size {self.size} and {self.channels} channels. Received: {mat.shape}."
            )
        drawn = feature.draw()
        random = self.method == "Random"
        top, left = (int(drawn.integers(0, each + 1)) if random else each // 2 for each in spare)
        part = mat[top : top + self.size[0], left : left + self.size[1]].astype(np.float32)
        return part[:, ::-1] if self.mirror and drawn.uniform() < 0.5 else part


def elsewhere(name: str) -> Any:
    """Returns the error for a step that is not here."""
    return JobError(
        f"bigdl.transform.vision.image.{name} is not here. Expected: a step on pixels, such as RandomCrop or "
        f"ColorJitter. Received: {name}. Steps on boxes and detections belong in a map over get_image()."
    )
