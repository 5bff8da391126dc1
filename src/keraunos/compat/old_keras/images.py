"""`keras.preprocessing.image` as it was: which axis has the channels, and how images were moved and standardized.

Runs on the driver. Keras 3 keeps the classes of this module, moves images along the other axis than their arguments
name, and has other centers, angles and means than the releases before it had.
"""

from __future__ import annotations

import inspect
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
from keras.src.legacy.preprocessing import image as legacy

from keraunos.compat.old_keras import undecided, values
from keraunos.compat.old_keras.days import DAYS, Day
from keraunos.errors import DataError, JobError, one_of

_EPSILON = 1e-7
_WHITENING = 1e-6
_HALF = 0.5
_STEADY = 5  # arguments of ImageDataGenerator with an unchanged position
_STEADY_OF_FLOW = 4
_FLAGS = ("featurewise_center", "samplewise_center", "featurewise_std_normalization", "samplewise_std_normalization")
_FIRST = (
    *_FLAGS,
    "zca_whitening",
    *("rotation_range", "width_shift_range", "height_shift_range", "shear_range", "horizontal_flip", "vertical_flip"),
)
_SECOND = (
    *_FIRST,
    *("zoom_range", "channel_shift_range", "fill_mode", "cval", "rescale", "preprocessing_function", "dim_ordering"),
)
_OF_FLOW = ("x", "y", "batch_size", "shuffle", "seed", "save_to_dir", "save_prefix", "save_format")
_MOVES = ("rotation_range", "width_shift_range", "height_shift_range", "shear_range", "zoom_range")


class OldImageDataGenerator(legacy.ImageDataGenerator):  # type: ignore[misc] # Keras has no types
    """`ImageDataGenerator` of a day: each day has a subclass of it."""

    day: Day = DAYS["2"]

    def __init__(self, *arguments: Any, **named: Any) -> None:
        given = _arguments(self.day, arguments, named)
        # Keras 0 and 1 used the flags unchanged; today's constructor would set some of them.
        flags = {} if self.day.speaks_keras_2 else {name: given.pop(name, False) for name in (*_FLAGS, "zca_whitening")}
        super().__init__(**given)
        self.__dict__.update(flags)

    def flow(self, *arguments: Any, **named: Any) -> Any:
        """Batches of images that are in memory."""
        then = not self.day.speaks_keras_2
        if not then and len(arguments) > _STEADY_OF_FLOW:
            raise JobError(
                f"`flow` takes {_STEADY_OF_FLOW} arguments without a name: the next was `seed` until Keras 2.1 and "
                f"`sample_weight` from 2.2 on. Received: {len(arguments)}. Give the others by name."
            )
        given = {**dict(zip(_OF_FLOW, arguments, strict=False)), **_renamed(named, {"X": "x"} if then else {})}
        undecided.say_defaults("ImageDataGenerator.flow", self.day, given)
        defaults = {"shuffle": self.day.name != "0", "save_format": "jpeg"} if then else {}
        found = super().flow(**{**defaults, **given})
        if self.day.name == "0":
            found.__class__ = _OnePass
        return _as_then(found)

    def flow_from_directory(self, *arguments: Any, **named: Any) -> Any:
        """Batches of images that are files, in a folder for each class."""
        if not self.day.speaks_keras_2 and len(arguments) < _PLACE_OF_FORMAT:
            named = {"save_format": "jpeg", **named}
        return _as_then(super().flow_from_directory(*arguments, **named))

    def standardize(self, x: Any) -> Any:
        """Returns one image as the network is given it."""
        if self.preprocessing_function:
            x = self.preprocessing_function(x)
        if self.rescale:
            x *= self.rescale
        # Over the channels of each pixel in Keras 1, over the image before and since then.
        axis = self.channel_axis - 1 if self.day.name == "1" else None
        if self.samplewise_center:
            x -= np.mean(x, axis=axis, keepdims=True)
        if self.samplewise_std_normalization:
            x /= np.std(x, axis=axis, keepdims=True) + _EPSILON
        if self.featurewise_center and self._is_fit("featurewise_center", self.mean):
            x -= self.mean
        if self.featurewise_std_normalization and self._is_fit("featurewise_std_normalization", self.std):
            x /= self.std + _EPSILON
        if self.zca_whitening and self._is_fit("zca_whitening", self.zca_whitening_matrix):
            flat = x.reshape(-1, int(np.prod(x.shape[-3:])))
            x = np.reshape(flat @ self.zca_whitening_matrix, x.shape)
        return x

    def fit(self, *arguments: Any, **named: Any) -> None:
        """Measure the images that others are standardized by."""
        given = {
            **dict(zip(("x", "augment", "rounds", "seed"), arguments, strict=False)),
            **_renamed(named, {"X": "x"}),
        }
        x = np.array(given["x"], dtype=self.dtype)
        if x.ndim != 4:  # images, rows, columns, channels
            raise DataError(f"`fit` of ImageDataGenerator must be given images of rank 4. Received: shape {x.shape}.")
        if given.get("seed") is not None:
            np.random.seed(given["seed"])  # noqa: NPY002 - the random numbers that programs seed
        if given.get("augment"):
            x = np.stack([self.random_transform(each) for _ in range(given.get("rounds", 1)) for each in x])
        # Each pixel of each channel had its own mean in Keras 0.
        axes = (0,) if self.day.name == "0" else (0, self.row_axis, self.col_axis)
        if self.featurewise_center:
            self.mean = np.mean(x, axis=axes, keepdims=True)[0]
            x -= self.mean
        if self.featurewise_std_normalization:
            self.std = np.std(x, axis=axes, keepdims=True)[0]
            x /= self.std + _EPSILON
        if self.zca_whitening:
            flat = x.reshape(len(x), -1)
            sigma = flat.T @ flat / (flat.shape[1] if self.day.name == "0" else flat.shape[0])
            small = self.zca_epsilon if self.day.speaks_keras_2 else _WHITENING
            vectors, lengths, _ = np.linalg.svd(sigma)
            self.zca_whitening_matrix = (vectors / np.sqrt(lengths + small)) @ vectors.T
        self.principal_components = self.zca_whitening_matrix

    def get_random_transform(self, img_shape: Sequence[int], seed: int | None = None) -> dict[str, Any]:
        """Returns the random parameters for one image, drawn in the old order."""
        if self.day.speaks_keras_2:
            return dict(super().get_random_transform(img_shape, seed))
        if seed is not None:
            np.random.seed(seed)  # noqa: NPY002 - as above
        first = self.day.name == "0"
        rows, columns = (1, 2) if first else (self.row_axis - 1, self.col_axis - 1)
        found: dict[str, Any] = {"theta": _drawn(self.rotation_range)}
        if first:  # the shift along columns came first, and flips before the shear
            found["ty"] = _drawn(self.width_shift_range) * img_shape[columns]
            found["tx"] = _drawn(self.height_shift_range) * img_shape[rows]
            found.update(self._flips())
            return found | {"shear": _drawn(self.shear_range)}
        found["tx"] = _drawn(self.height_shift_range) * img_shape[rows]
        found["ty"] = _drawn(self.width_shift_range) * img_shape[columns]
        found["shear"] = _drawn(self.shear_range)
        if list(self.zoom_range) != [1, 1]:
            found["zx"], found["zy"] = np.random.uniform(self.zoom_range[0], self.zoom_range[1], 2)  # noqa: NPY002
        if self.channel_shift_range:
            found["channels"] = [_drawn(self.channel_shift_range) for _ in range(img_shape[self.channel_axis - 1])]
        return found | self._flips()

    def apply_transform(self, x: Any, transform_parameters: Mapping[str, Any]) -> Any:
        """Returns the image, moved, shifted in its channels and flipped."""
        if self.day.name == "0":
            return _moved_in_keras_0(x, transform_parameters)
        axes = (self.row_axis - 1, self.col_axis - 1, self.channel_axis - 1)
        radians = not self.day.speaks_keras_2
        x = moved(x, transform_parameters, axes, self.fill_mode, self.cval, radians=radians)
        if "channels" in transform_parameters:
            shape = [1, 1, 1]
            shape[axes[2]] = -1
            shifts = np.reshape(transform_parameters["channels"], shape)
            x = np.clip(x + shifts, np.min(x), np.max(x))
        rest = {name: value for name, value in transform_parameters.items() if name not in _GEOMETRY}
        return super().apply_transform(x, rest)

    def _flips(self) -> dict[str, bool]:
        asked = {"flip_horizontal": self.horizontal_flip, "flip_vertical": self.vertical_flip}
        return {name: bool(wanted and np.random.random() < _HALF) for name, wanted in asked.items()}  # noqa: NPY002

    def _is_fit(self, name: str, value: Any) -> bool:
        if value is not None:
            return True
        told = f"ImageDataGenerator with `{name}` must be fit before it gives images. Received: no call of fit."
        if not self.day.speaks_keras_2:
            raise DataError(f"{told} Call fit(images), or give {name}=False.")
        warnings.warn(told, stacklevel=3)
        return False


class _OnePass(legacy.NumpyArrayIterator):  # type: ignore[misc] # as above
    """Batches of Keras 0: a loop over them ends with the rows, as until 0.3.1; `next` goes on, as since."""

    def __iter__(self) -> Any:
        undecided.warn_once(
            "A loop over ImageDataGenerator.flow ended with the rows until Keras 0.3.1, which is used here, and was "
            "endless from 0.3.2 on; `fit_generator` and `next` are endless."
        )
        return (next(self) for _ in range(len(self)))


def generator_class(day: Day, module: str) -> type:
    """`ImageDataGenerator` of the day."""
    return type("ImageDataGenerator", (OldImageDataGenerator,), {"day": day, "__module__": module})


def moved(x: Any, parameters: Mapping[str, Any], axes: Sequence[int], fill: str, cval: float, *, radians: bool) -> Any:
    """Returns the image, turned, shifted along its rows and columns, sheared and zoomed about its middle.

    Args:
        x: the image.
        parameters: `theta` in degrees, `tx` along rows and `ty` along columns in pixels, `shear`, `zx` and `zy`.
        axes: of rows, columns and channels.
        fill: what is outside of the image.
        cval: the value there, if `fill` is 'constant'.
        radians: whether `shear` is in radians; pixels were taken from the nearest one as long as it was.
    """
    from scipy import ndimage

    theta, shear = np.deg2rad(parameters.get("theta", 0)), parameters.get("shear", 0)
    shear = shear if radians else np.deg2rad(shear)
    tx, ty, zx, zy = (parameters.get(name, default) for name, default in (("tx", 0), ("ty", 0), ("zx", 1), ("zy", 1)))
    if (theta, tx, ty, shear, zx, zy) == (0, 0, 0, 0, 1, 1):
        return x
    turn = np.array([[np.cos(theta), -np.sin(theta), 0], [np.sin(theta), np.cos(theta), 0], [0, 0, 1]])
    shift = np.array([[1, 0, tx], [0, 1, ty], [0, 0, 1]])
    slant = np.array([[1, -np.sin(shear), 0], [0, np.cos(shear), 0], [0, 0, 1]])
    middle = np.array([[1, 0, x.shape[axes[0]] / 2 + 0.5], [0, 1, x.shape[axes[1]] / 2 + 0.5], [0, 0, 1]])
    matrix = middle @ turn @ shift @ slant @ np.diag([zx, zy, 1]) @ np.linalg.inv(middle)
    channels = np.moveaxis(x, axes, (1, 2, 0))
    named = {"order": 0 if radians else 1, "mode": fill, "cval": cval}
    found = [ndimage.affine_transform(each, matrix[:2, :2], matrix[:2, 2], **named) for each in channels]
    return np.moveaxis(np.stack(found), (1, 2, 0), axes)


def _moved_in_keras_0(x: Any, parameters: Mapping[str, Any]) -> Any:
    """Its images had the channels first, and were interpolated at each step.

    The shear took the channels for rows.
    """
    from scipy import ndimage

    if parameters["theta"]:
        x = ndimage.rotate(x, parameters["theta"], axes=(1, 2), reshape=False, mode="nearest")
    if parameters["tx"] or parameters["ty"]:
        x = ndimage.shift(x, (0, parameters["tx"], parameters["ty"]), order=0, mode="nearest")
    for name, axis in (("flip_horizontal", 2), ("flip_vertical", 1)):
        x = np.flip(x, axis) if parameters[name] else x
    shear = parameters["shear"]
    if shear:
        matrix = np.array([[1, -np.sin(shear), 0], [0, np.cos(shear), 0], [0, 0, 1]])
        x = ndimage.affine_transform(x, matrix, mode="nearest", order=3)
    return np.array(x)


def tools(day: Day) -> dict[str, Any]:
    """Returns the functions of the module."""

    def img_to_array(img: Any, *arguments: Any, **named: Any) -> Any:
        return keras.utils.img_to_array(img, data_format=_format("img_to_array", day, arguments, named))

    def array_to_img(x: Any, *arguments: Any, **named: Any) -> Any:
        scale = named.pop("scale", True)
        if day.name == "0" and arguments:
            (scale,), arguments = arguments, ()
        elif len(arguments) > 1:
            arguments, scale = arguments[:1], arguments[1]
        x = np.asarray(x, dtype=keras.config.floatx())
        if scale:  # today's takes the least value for black, even if none is negative
            x = x + max(-np.min(x), 0)
            x = x * (255 / (np.max(x) or 1))
        return keras.utils.array_to_img(x, _format("array_to_img", day, arguments, named), scale=False)

    def load_img(path: Any, grayscale: Any = False, target_size: Any = None, **named: Any) -> Any:
        mode = grayscale if isinstance(grayscale, str) else "grayscale" if grayscale else "rgb"
        return keras.utils.load_img(path, target_size=target_size, **{"color_mode": mode, **named})

    return {
        "img_to_array": img_to_array,
        "array_to_img": array_to_img,
        "load_img": load_img,
        "list_pictures": list_pictures,
        "flip_axis": np.flip,
    }


def list_pictures(directory: str, ext: str = "jpg|jpeg|bmp|png") -> list[str]:
    """Returns the files below a folder that are named like pictures."""
    pattern = re.compile(rf"(\w+\.(?:{ext}))")
    return [f"{root}/{name}" for root, _, names in os.walk(directory) for name in names if pattern.match(name)]


def _format(name: str, day: Day, arguments: Sequence[Any], named: Mapping[str, Any]) -> str | None:
    """The position of channels: first in Keras 0, as given in Keras 1, and Keras's own setting since then."""
    argument = "data_format" if day.speaks_keras_2 else "dim_ordering"
    given = {**dict(zip((argument,), arguments, strict=False)), **named}
    for each in given:
        if each != argument or day.name == "0":
            raise JobError(one_of(f"argument of {name}", each, () if day.name == "0" else (argument,)))
    if day.speaks_keras_2:
        return given.get(argument)
    return "channels_first" if day.name == "0" else values.data_format(given.get(argument), day)


def _arguments(day: Day, arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of `ImageDataGenerator` by today's names."""
    if not day.speaks_keras_2 and len(arguments) > _STEADY:
        raise JobError(
            f"ImageDataGenerator of Keras {day.name} takes {_STEADY} arguments without a name: others moved "
            f"between its releases. Received: {len(arguments)}. Give the others by name."
        )
    order = _TODAYS if day.speaks_keras_2 else _FIRST if day.name == "0" else _SECOND
    given = {**dict(zip(order, arguments, strict=False)), **named}
    for name in given:
        if name not in order:
            raise JobError(one_of("argument of ImageDataGenerator", name, order))
    undecided.say_defaults("ImageDataGenerator", day, given)
    if day.name == "0":
        given = {"featurewise_center": True, "featurewise_std_normalization": True, **given}
    undecided.say_uses("ImageDataGenerator", day, given)
    if day.speaks_keras_2 and any(given.get(name) for name in _MOVES):
        undecided.warn_once(
            "ImageDataGenerator took each pixel of an image that it moved from the nearest one until Keras 2.1.3, and "
            "from the four around it from 2.1.4 on, which is taken."
        )
    if not day.speaks_keras_2:
        told = given.pop("dim_ordering", None)
        given["data_format"] = "channels_first" if day.name == "0" else values.data_format(told, day)
    return given


def _as_then(iterator: Any) -> Any:
    """Returns the batches, with the attributes that programs read."""
    iterator.next = iterator.__next__
    iterator.N = iterator.n
    if hasattr(iterator, "class_indices"):
        iterator.nb_sample, iterator.nb_class = iterator.n, len(iterator.class_indices)
        iterator.num_class = iterator.nb_class
    return iterator


def _renamed(named: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in named.items()}


def _drawn(most: float) -> float:
    return float(np.random.uniform(-most, most)) if most else 0.0  # noqa: NPY002 - the numbers that programs seed


_GEOMETRY = ("theta", "tx", "ty", "shear", "zx", "zy", "channels")
_TODAYS = tuple(inspect.signature(legacy.ImageDataGenerator).parameters)
_PLACE_OF_FORMAT = 11
