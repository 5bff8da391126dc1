"""`merge` and `Merge` of Keras 1: several tensors as one. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras

from keraunos.compat.old_keras.days import Day
from keraunos.errors import JobError, one_of

# Each mode's layer of today; `concat`, `dot` and `cos` have an axis besides.
MODES: Mapping[str, str] = {
    "sum": "Add",
    "mul": "Multiply",
    "ave": "Average",
    "max": "Maximum",
    "concat": "Concatenate",
    "dot": "Dot",
    "cos": "Dot",
}
_ORDER = ("mode", "concat_axis", "dot_axes", "output_shape", "output_mask", "arguments", "name")


def merge(_day: Day, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Returns one tensor of several."""
    given = _by_name("merge", ("inputs", *_ORDER), arguments, named)
    inputs = given.pop("inputs", None)
    if not isinstance(inputs, (list, tuple)) or not all(isinstance(each, keras.KerasTensor) for each in inputs):
        raise JobError(
            f"`inputs` of merge must be a list of tensors, such as layers give. Received: {inputs!r}. Layers and "
            "models are merged by what they give: merge([left.output, right.output], mode='concat')."
        )
    return _layer(given)(list(inputs))


def merge_layer(_day: Day, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Returns a layer that makes one tensor of several."""
    given = _by_name("Merge", ("layers", *_ORDER), arguments, named)
    if given.pop("layers", None) is not None:
        raise JobError(
            "Merge of models cannot be the first layer of a Sequential on today's Keras, where one has one input. "
            "Received: Merge([...]). Write Model(input=[left.input, right.input], output=merge([left.output, "
            "right.output], mode=...))."
        )
    return _layer(given)


def _layer(given: Mapping[str, Any]) -> Any:
    mode = given.get("mode", "sum")
    if callable(mode):
        raise JobError(
            "`mode` of merge must be a name. Received: a function. Use a Lambda layer on the list of tensors."
        )
    if mode not in MODES:
        raise JobError(one_of("mode", mode, MODES))
    for each in ("output_shape", "output_mask", "arguments"):
        if given.get(each) is not None:
            raise JobError(f"`{each}` of merge is for a function as mode. Received: {given[each]!r} with {mode!r}.")
    options: dict[str, Any] = {} if given.get("name") is None else {"name": given["name"]}
    if mode == "concat":
        options["axis"] = given.get("concat_axis", -1)
    if mode in {"dot", "cos"}:
        axes = given.get("dot_axes", -1)
        options.update(axes=tuple(axes) if isinstance(axes, (list, tuple)) else axes, normalize=mode == "cos")
    return getattr(keras.layers, MODES[mode])(**options)


def _by_name(what: str, order: Sequence[str], arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    if len(arguments) > len(order):
        raise JobError(f"{what} takes at most {len(order)} arguments. Received: {len(arguments)}.")
    given = {**dict(zip(order, arguments, strict=False)), **named}
    for each in given:
        if each not in order:
            raise JobError(one_of(f"argument of {what}", each, order))
    return given
