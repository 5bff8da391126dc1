"""A call of an old layer as one of today's. Runs on the driver.

The result is a layer of today's Keras. The input shape of a first layer is stored beside it, for
`Sequential.add`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any
from weakref import WeakKeyDictionary

import keras

from keraunos.compat.old_keras import own_images, undecided, values, weights
from keraunos.compat.old_keras.days import Day
from keraunos.compat.old_keras.fans import as_it_lay
from keraunos.compat.old_keras.layer_table import LAYERS, LayerSignature
from keraunos.compat.old_keras.own_layers import PerGate
from keraunos.errors import JobError

# How many gates share one matrix of weights today.
_GATES = {"LSTM": 4, "GRU": 3, "ConvLSTM2D": 4}
_RECURRENT = ("SimpleRNN", "GRU", "LSTM")
# What every layer took.
_COMMON = (
    "name",
    "trainable",
    "input_shape",
    "batch_input_shape",
    "input_dtype",
    "weights",
    "input_dim",
    "input_length",
)
_OF_LOOPS = ("return_sequences", "go_backwards", "stateful", "unroll", "consume_less", "forget_bias_init")
_SIDES = {
    "ZeroPadding1D": ("left_pad", "right_pad"),
    "ZeroPadding2D": ("top_pad", "bottom_pad", "left_pad", "right_pad"),
}
_IMAGES = (
    "Conv2D",
    "Conv2DTranspose",
    "SeparableConv2D",
    "MaxPooling2D",
    "AveragePooling2D",
    "ZeroPadding2D",
    "UpSampling2D",
)
# Layers of pictures have at most this many channels at the network's entry.
_FEW_CHANNELS = 4
_PICTURES = 4  # axes: rows, channels, height and width

# A layer's input as given: (batch shape, dtype).
first_inputs: WeakKeyDictionary[Any, tuple[tuple[int | None, ...], str | None]] = WeakKeyDictionary()


def make(name: str, day: Day, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Returns the layer that a call of Keras 0 or 1 means."""
    entry = LAYERS[name]
    given, first = _by_name(name, entry, day, arguments, named)
    if not first:
        undecided.say_defaults(name, day, given)
    common = {each: given.pop(each) for each in _COMMON if each in given and not _is_own(each, name)}
    given.pop("stack_size", None)  # how many channels there are is seen from the input
    for each, (kept, why) in entry.refused.items():
        if given.pop(each, kept) != kept:
            raise JobError(f"`{each}` of {name} must be left out on today's Keras. Received: {named!r}. {why}")
    shape = _first_shape(name, common)
    if given.get("dim_ordering") in {None, "default"}:
        _check_ordering(name, entry, shape, day)
    _check_meanings(name, entry, day, given)
    if name.startswith("ZeroPadding") and "padding" in given:
        given["padding"] = _pads(name, given["padding"])
    told_output = given.pop("output_shape", None) if name == "Deconvolution2D" else None
    gates = {each: given.pop(each) for each in _OF_LOOPS if each in given}
    today = {**_renamed(name, entry, given, day, first=first), **_loop(name, gates)}
    as_it_lay(name, today, day, first=first)
    if name in _GATES and gates.get("consume_less", "cpu") != "gpu":
        # Each gate had its own weights, drawn by its own size.
        for each in ("kernel_initializer", "recurrent_initializer"):
            today[each] = PerGate(today[each], _GATES[name])
    for each in ("name", "trainable"):
        if common.get(each) is not None:
            today[each] = common[each]
    layer = _class_of(entry.today, today.get("data_format"))(**today)
    if shape is not None:
        remember_input(layer, shape, common.get("input_dtype"))
    elif name == "Bidirectional":
        remember_inner(layer, given.get("layer"))
    if told_output is not None:
        _check_output_shape(layer, tuple(told_output))
    first_channels = today.get("data_format") == "channels_first"
    return weights.with_weights(layer, common.get("weights"), weights.laid_out(name, first_channels))


def remember_input(layer: Any, shape: tuple[int | None, ...], dtype: str | None = None) -> None:
    """Store the input shape, rows included, of the first layer of a model."""
    first_inputs[layer] = (shape, dtype)


def remember_inner(layer: Any, inner: Any) -> None:
    """Store the input shape of a layer within another."""
    told = first_inputs.get(inner) if isinstance(inner, keras.layers.Layer) else None
    if told is not None:
        first_inputs[layer] = told


def plain(arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """`Layer` itself, which only declares the shape of the input."""
    if arguments or not named.keys() <= {"input_shape", "batch_input_shape", "name"}:
        raise JobError(f"Layer takes the shape of the input by name. Received: {(*arguments, *named)!r}.")
    layer = keras.layers.Identity(**{"name": named["name"]} if named.get("name") else {})
    shape = _first_shape("Layer", named)
    if shape is not None:
        remember_input(layer, shape)
    return layer


def _is_own(argument: str, name: str) -> bool:
    """Returns whether an argument that describes inputs elsewhere is one of the layer's own."""
    return argument == "input_dim" and name == "Embedding"


def _by_name(
    name: str, entry: LayerSignature, day: Day, arguments: Sequence[Any], named: Mapping[str, Any]
) -> tuple[dict[str, Any], bool]:
    """Returns the arguments of a call by their old names, and whether its form is that before Keras 0.2."""
    given = dict(named)
    if name == "Reshape" and len(arguments) > 1 and all(isinstance(each, int) for each in arguments):
        arguments = [tuple(arguments)]  # Keras before 0.2
    order = entry.order.split()
    first = entry.first is not None and _is_first(entry.first[1], arguments, day)
    if first:
        assert entry.first is not None
        order = entry.first[0].split()
    elif day.name == "0" and name == "BatchNormalization" and arguments and isinstance(arguments[0], tuple):
        order = ["input_shape", *order]
        given["gamma_init"] = "uniform"  # so it began, without a choice, until Keras 0.3.3
        if len(arguments[0]) > 1:
            raise JobError(
                "`input_shape` of BatchNormalization must have one number: until Keras 0.2 every entry of a larger "
                f"input was normalized by itself. Received: {arguments[0]!r}. Put Flatten before it."
            )
    # With the size of the input first, a BatchNormalization has one place more.
    undecided.check_places(name, day, arguments[order[:1] == ["input_shape"] :], first=first)
    if len(arguments) > len(order):
        raise JobError(f"{name} takes at most {len(order)} arguments without a name. Received: {len(arguments)}.")
    for each, value in zip(order, arguments, strict=False):
        if each in given:
            raise JobError(f"`{each}` of {name} must be given once. Received: {value!r} and {given[each]!r}.")
        given[each] = value
    known = {*order, *entry.renamed, *_COMMON, *entry.refused}
    known |= set(_OF_LOOPS) if name in _GATES or name in _RECURRENT else set()
    for each in given:
        if each not in known:
            close = difflib.get_close_matches(each, known, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise JobError(
                f"{name} of Keras {day.name} has no argument {each!r}.{hint} Expected some of: "
                f"{', '.join(sorted(known))}. If the program was written for another Keras, say so: --keras 2."
            )
    return given, first


def _is_first(count: int, arguments: Sequence[Any], day: Day) -> bool:
    """Returns whether a call has the form that it had before Keras 0.2, with the size of the input."""
    leading = [each for each in arguments[:count] if isinstance(each, int) and not isinstance(each, bool)]
    told = len(leading) == count
    if told and day.name != "0":
        raise JobError(
            f"The call has {count} whole numbers first, {', '.join(map(repr, arguments[:count]))}, as before Keras "
            f"0.2, where they began with the size of the input. Received: such a call in a program for Keras "
            f"{day.name}. Say --keras 0, or give arguments by name."
        )
    return told


def _renamed(name: str, entry: LayerSignature, given: Mapping[str, Any], day: Day, *, first: bool) -> dict[str, Any]:
    """Returns the arguments by today's names, with today's values."""
    today: dict[str, Any] = {}
    parts = {part for each in entry.joined.values() for part in each}
    for new, sources in entry.joined.items():
        sizes = [given.get(part) for part in sources]
        if None in sizes:
            raise JobError(
                f"`{sources[sizes.index(None)]}` of {name} must be given. Received: "
                f"{dict(zip(sources, sizes, strict=True))!r}."
            )
        today[new] = tuple(sizes)
    for old, value in given.items():
        if old not in parts:
            for new in entry.renamed.get(old, old).split():
                today[new] = values.converted(new, value, day)
    for new, value in _defaults(name, entry, day, first=first).items():
        today.setdefault(new, values.converted(new, value, day))
    return {new: value for new, value in today.items() if value is not None}


def _defaults(name: str, entry: LayerSignature, day: Day, *, first: bool) -> dict[str, Any]:
    """Old defaults that are not today's."""
    defaults = dict(entry.defaults)
    names = {new for news in entry.renamed.values() for new in news.split()}
    for new in sorted(names & {"kernel_initializer", "depthwise_initializer", "pointwise_initializer"}):
        defaults.setdefault(new, "uniform" if name == "Convolution1D" and day.name == "0" else "glorot_uniform")
    if "data_format" in names and not name.endswith("1D"):
        defaults.setdefault("data_format", None)
    if name == "BatchNormalization" and day.name == "0":
        defaults.update(epsilon=1e-6, momentum=0.9)
    if name == "Highway" and day.name == "0":
        defaults["transform_bias"] = -2.0
    if first and name in {"SimpleRNN", "GRU"}:
        defaults["activation"] = "sigmoid"
    return defaults


def _loop(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns further arguments of recurrent layers: options of the loop, the bias of the forget gate."""
    loop = {each: given[each] for each in ("return_sequences", "go_backwards", "stateful", "unroll") if each in given}
    economy = given.get("consume_less", "cpu")
    if economy not in {"cpu", "mem", "gpu"}:
        raise JobError(f"`consume_less` must be 'cpu', 'mem' or 'gpu'. Received: {economy!r}.")
    if name in {"LSTM", "ConvLSTM2D"}:
        bias = given.get("forget_bias_init", "one")
        if bias not in {"one", "ones", "zero", "zeros"}:
            raise JobError(f"`forget_bias_init` must be 'one' or 'zero' on today's Keras. Received: {bias!r}.")
        loop["unit_forget_bias"] = bias in {"one", "ones"}
    return loop


def _first_shape(name: str, common: Mapping[str, Any]) -> tuple[int | None, ...] | None:
    """Returns the shape of the input, rows included, if the layer was given it."""
    if common.get("batch_input_shape") is not None:
        return tuple(common["batch_input_shape"])
    if common.get("input_shape") is not None:
        shape = common["input_shape"]
        return (None, *(shape if isinstance(shape, (tuple, list)) else (shape,)))
    length = common.get("input_length")
    if name == "Embedding":
        if length is None:
            return None
        return (None, *(length if isinstance(length, (tuple, list)) else (length,)))
    if common.get("input_dim") is None:
        return None
    sequence = name in {*_RECURRENT, "Convolution1D", "AtrousConvolution1D", "TimeDistributedDense"}
    return (None, length, common["input_dim"]) if sequence else (None, common["input_dim"])


def _check_ordering(name: str, entry: LayerSignature, shape: Any, day: Day) -> None:
    """Raises an error for an image whose channels may be at either end, if nothing determines which."""
    if entry.today not in _IMAGES or values.orders_channels(day):
        return
    if day.name == "1":
        undecided.warn_once(
            "Layers of images without `dim_ordering` had channels first until Keras 1.0 and last from 1.1 on, which is "
            "taken. Call keras.backend.set_image_dim_ordering('th') if the program is of 1.0."
        )
    if shape is None or len(shape) != _PICTURES or None in shape[1:]:
        return
    first, last = shape[1], shape[3]
    taken, other = (last, first) if day.ordering == "tf" else (first, last)
    if taken > _FEW_CHANNELS >= other:
        raise JobError(
            f"{name} was told the input {tuple(shape[1:])!r}, and nothing says where its channels are: last "
            f"(dim_ordering='tf', the default from Keras 1.1 on) it has {last}, first (dim_ordering='th', the default "
            f"before) it has {first}. Received: no `dim_ordering`. Give one, call "
            'keras.backend.set_image_dim_ordering, or put "image_dim_ordering" into keras.json as then.'
        )


def _check_meanings(name: str, entry: LayerSignature, day: Day, given: Mapping[str, Any]) -> None:
    """Raises an error for arguments with another meaning in today's Keras."""
    for each in ("stride", "strides"):
        if isinstance(given.get(each), bool):
            raise JobError(
                f"`{each}` of {name} must be numbers. Received: {given[each]!r}. Before Keras 0.1.2 `ignore_border` "
                "stood in its place; its default, True, is what is done here."
            )
    constraint = given.get("W_constraint")
    if constraint in {None, "nonneg"} or isinstance(constraint, keras.constraints.NonNeg):
        return
    # A constraint applies along the first axis of a kernel, which was the axis of the filters in old Keras.
    filters_first = "filters" in entry.renamed.values() and (
        day.name == "0"
        if name.endswith("1D")
        else values.data_format(given.get("dim_ordering"), day) == "channels_first"
    )
    if filters_first:
        raise JobError(
            f"`W_constraint` of {name} must be left out if channels come first: it applied along the filters in the "
            f"old Keras, and applies along the rows of a kernel today. Received: {constraint!r}. Use a W_regularizer."
        )


def _pads(name: str, padding: Any) -> Any:
    """Returns how many zeros there are at each end, as today's layer takes them.

    A dict or four numbers in Keras 1.2.
    """
    sides = _SIDES.get(name, ())
    if isinstance(padding, Mapping):
        if not sides or not padding.keys() <= set(sides):
            raise JobError(f"`padding` of {name} must have some of the keys {sides!r}. Received: {dict(padding)!r}.")
        padding = tuple(padding.get(side, 0) for side in sides)
    if isinstance(padding, (tuple, list)) and len(padding) == 4:
        return (tuple(padding[:2]), tuple(padding[2:]))
    return tuple(padding) if isinstance(padding, list) else padding


def _check_output_shape(layer: Any, told: tuple[Any, ...]) -> None:
    """Make the layer raise an error for an output of another shape than given, which today's Keras computes itself."""
    build = layer.build

    def build_checked(shape: Any) -> None:
        found = tuple(layer.compute_output_shape(shape))
        if told[1:] != found[1:]:
            raise JobError(
                f"`output_shape` of Deconvolution2D must be {(None, *found[1:])!r} on today's Keras, which works it "
                f"out from the input. Received: {told!r}."
            )
        build(shape)

    layer.build = build_checked


def _class_of(name: str, data_format: str | None) -> Any:
    return today_of(name) if ":" in name else own_images.class_of(name, data_format)


def today_of(name: str) -> Any:
    """Returns the class of an entry of the table."""
    module, _, attribute = name.rpartition(":")
    return getattr(import_module(module), attribute) if module else getattr(keras.layers, name)
