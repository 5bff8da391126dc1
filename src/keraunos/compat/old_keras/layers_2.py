"""A call of a layer of Keras 2 as one of today's. Runs on the driver.

Most are the same. Keras 2 also took the arguments of Keras 1 by name, and meant a kernel of 3 by 3 by `Conv2D(32,
3, 3)`; its gates and its GRU had other defaults.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import keras

from keraunos.compat.old_keras import own_images, undecided, values
from keraunos.compat.old_keras.days import Day
from keraunos.compat.old_keras.layer_table import LAYERS
from keraunos.compat.old_keras.layers import remember_inner, remember_input
from keraunos.compat.old_keras.weights import with_weights
from keraunos.errors import JobError

# How many positional arguments have an unchanged position.
_SAME_PLACES = {"Conv1D": 4, "Conv2D": 6, "Conv3D": 6, "Conv2DTranspose": 4, "SeparableConv2D": 5, "Embedding": 4}
_KERNEL_AXES = {"Conv2D": 2, "Conv3D": 3, "SeparableConv2D": 2, "Conv2DTranspose": 2}
_RECURRENT = ("SimpleRNN", "GRU", "LSTM")
_GATED = ("GRU", "LSTM", "ConvLSTM2D", "GRUCell", "LSTMCell")
_IMPLEMENTATIONS = (0, 1, 2)
_NEW_NAMES = {"Convolution1D": "Conv1D", "Convolution2D": "Conv2D", "Convolution3D": "Conv3D"}


def make(name: str, day: Day, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Returns the layer that a call of Keras 2 means."""
    wide = {"AtrousConvolution1D": "Conv1D", "AtrousConvolution2D": "Conv2D"}
    if name in wide:
        named = {("dilation_rate" if each == "atrous_rate" else each): value for each, value in named.items()}
    name = _NEW_NAMES.get(name, wide.get(name, name))
    places = list(arguments)
    if day.name == "2" and name in _KERNEL_AXES:
        places = _joined_kernel(name, places)
    if day.name == "2":
        undecided.check_places(name, day, places)
    if len(places) > _SAME_PLACES.get(name, len(places)):
        raise JobError(
            f"{name} takes at most {_SAME_PLACES[name]} arguments without a name: what stands behind them has changed "
            f"since Keras 2. Received: {len(places)}. Give the others by name."
        )
    given = {**_renamed(name, named, day)}
    places = _converted_places(name, places, day)
    shape = _shape(name, given)
    weights = given.pop("weights", None)
    dtype = given.pop("input_dtype", None)
    economy = given.pop("consume_less", "cpu") if name in _RECURRENT else "cpu"
    if economy not in {"cpu", "mem", "gpu"}:
        raise JobError(f"`consume_less` of {name} must be 'cpu', 'mem' or 'gpu'. Received: {economy!r}.")
    if name == "Conv2DTranspose" and day.name == "2":
        given.pop("output_shape", None)  # Keras 2 worked it out itself, too
    if given.pop("implementation", 1) not in _IMPLEMENTATIONS:
        raise JobError(f"`implementation` of {name} must be 0, 1 or 2. Received: {named['implementation']!r}.")
    if day.name == "2":
        _check_activity(name, given)
        undecided.say_defaults(name, day, given, ("units", "activation", "recurrent_activation"), len(places))
    _add_defaults(name, places, given, day)
    layer = own_images.class_of(name, _format_of(name, places, given))(*places, **given)
    if shape is not None:
        remember_input(layer, shape, dtype or (given.get("dtype") if isinstance(given.get("dtype"), str) else None))
    elif name == "Bidirectional":
        remember_inner(layer, places[0] if places else given.get("layer"))
    return with_weights(layer, weights)


def _converted_places(name: str, places: Sequence[Any], day: Day) -> list[Any]:
    """Positional arguments for today's Keras, in the order of today's class."""
    names = list(inspect.signature(getattr(keras.layers, name).__init__).parameters)[1 : len(places) + 1]
    found = [
        value if new == "data_format" else values.converted(new, value, day)
        for new, value in zip(names, places, strict=False)
    ]
    return [*found, *places[len(found) :]]


def _check_activity(name: str, given: Mapping[str, Any]) -> None:
    """Refuse a penalty that Keras 2 took of a whole batch; TensorFlow's own took it of a row, as today's does."""
    if name == "ActivityRegularization" or given.get("activity_regularizer") is not None:
        raise JobError(
            f"`activity_regularizer` of {name} must be left out on today's Keras, which divides the penalty by the "
            f"rows of a batch; Keras 2 did not. Received: {dict(given)!r}. Use a kernel_regularizer."
        )


def _joined_kernel(name: str, places: list[Any]) -> list[Any]:
    """`32, 3, 3` as Keras 2 read it: a kernel of 3 by 3."""
    axes = _KERNEL_AXES[name]
    sizes = places[1 : axes + 1]
    if len(sizes) == axes and all(isinstance(each, int) for each in sizes):
        return [places[0], tuple(sizes), *places[axes + 1 :]]
    return places


def _renamed(name: str, named: Mapping[str, Any], day: Day) -> dict[str, Any]:
    """Returns the arguments by today's names; those of Keras 1 were taken too."""
    old = _OLD_ENTRIES.get(name)
    given: dict[str, Any] = {}
    for each, value in named.items():
        new = each
        if (
            old is not None
            and day.name == "2"
            and each in old.renamed
            and (each != "stride" or name.endswith("Pooling1D"))
        ):
            new = old.renamed[each]
        if name == "LeakyReLU" and each == "alpha":
            new = "negative_slope"
        if new in given:
            raise JobError(f"`{new}` of {name} must be given once. Received: {dict(named)!r}.")
        given[new] = values.converted(new, value, day) if new != "data_format" else _format(value)
    if old is not None:
        for new, parts in old.joined.items():
            sizes = [given.pop(part) for part in parts if part in given]
            if sizes:
                given[new] = tuple(sizes)
    return given


def _format_of(name: str, places: Sequence[Any], given: Mapping[str, Any]) -> str | None:
    """Returns the position of channels, if the call has it: by name, or after the sizes, steps and border."""
    place = {"Conv2D": 4, "Conv3D": 4}.get(name, 3 if name.endswith(("Pooling2D", "Pooling3D")) else None)
    told = places[place] if place is not None and len(places) > place else given.get("data_format")
    return told if isinstance(told, str) else None


def _format(value: Any) -> Any:
    return {"th": "channels_first", "tf": "channels_last", "default": None}.get(value, value)


def _shape(name: str, given: dict[str, Any]) -> tuple[int | None, ...] | None:
    """Returns the shape of the input, rows included; removes its arguments from `given`."""
    length = given.pop("input_length", None)
    shape, batch = given.pop("input_shape", None), given.pop("batch_input_shape", None)
    rows = given.pop("batch_size", None)
    if batch is not None:
        return tuple(batch)
    if shape is not None:
        return (rows, *shape)
    if name == "Embedding":
        return None if length is None else (rows, *(length if isinstance(length, (list, tuple)) else (length,)))
    width = given.pop("input_dim", None)
    if width is None:
        return None
    return (rows, length, width) if name in {"Conv1D", "SimpleRNN", "GRU", "LSTM"} else (rows, width)


def _add_defaults(name: str, places: Sequence[Any], given: dict[str, Any], day: Day) -> None:
    """The arguments that had another default."""
    if name in _GATED:
        # units, activation, recurrent_activation; a convolution's gates are never given without a name
        said = len(places) > 2 and not name.startswith("Conv")
        if not said:
            given.setdefault("recurrent_activation", values.activation(day.gates, day))
    if name == "GRU" and day.name == "2":
        given.setdefault("reset_after", False)
    if name == "Flatten" and day.name == "2" and keras.config.image_data_format() == "channels_first":
        # Keras 2 did not move channels by default.
        given.setdefault("data_format", "channels_last")


_OLD_ENTRIES = {
    **{entry.today: entry for entry in LAYERS.values() if ":" not in entry.today},
    "Dense": LAYERS["Dense"],
    "Conv1D": LAYERS["Convolution1D"],
    "Conv2D": LAYERS["Convolution2D"],
}
