"""Mixed layers: sums of projections and operators; and concat2, projections side by side. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keraunos.compat.paddle.language_projections import (
    ContextProjection,
    ConvOperator,
    ConvProjection,
    DotMulOperator,
    IdentityOffsetProjection,
    Operator,
    Projection,
)
from keraunos.compat.paddle.layer_types.draft import Draft
from keraunos.compat.paddle.layer_types.geometry import context_padding
from keraunos.compat.paddle.layer_types.images import conv_settings, conv_weights, trans_conv_weights
from keraunos.compat.paddle.layer_types.layer_type import layer_type

_CONV_CONF = "conv_conf=Conv(filter_size=…, channels=…, padding=…, stride=…, groups=…)"


@layer_type("mixed", "MixedLayer", inputs=(1, None), bias=True, positional=("name", "inputs", "size", "bias"))
def mixed(draft: Draft) -> None:
    """The sum of its projections and operators."""
    projections = [at for at, told in enumerate(draft.told) if not isinstance(told, Operator)]
    operators = [at for at, told in enumerate(draft.told) if isinstance(told, Operator)]
    draft.operators = tuple(_operator(draft, at) for at in operators)
    for each in draft.operators:
        draft.set_size(each["output_size"])
    convolved = {at: _convolution(draft, at) for at in projections}
    for at in projections:
        size = _own_size(draft, at, convolved[at])
        if size:
            draft.set_size(size)
    draft.need_size("size=… for the layer or for one of its projections")
    for at in projections:
        _complete(draft, at, draft.size, convolved[at])
    shared = isinstance(draft.told[0], ConvProjection)
    draft.attributes["shared_biases"] = shared
    draft.add_bias(int(draft.settings[0]["proj"]["num_filters"]) if shared else draft.size)


@layer_type("concat2", "ConcatenateLayer2", inputs=(1, None), bias=False, positional=("name", "inputs", "bias"))
def concat2(draft: Draft) -> None:
    """Its projections side by side."""
    total, filters = 0, 0
    for at, told in enumerate(draft.told):
        draft.check(
            isinstance(told, Projection), "inputs must be projections", repr(told), "Write IdentityProjection(…)"
        )
        convolution = _convolution(draft, at)
        size = _own_size(draft, at, convolution)
        draft.check(size > 0, f"projection {at} must say its size", "size=0", "Write size=…")
        _complete(draft, at, size, convolution)
        total += size
        filters += int(draft.settings[at]["proj"].get("num_filters", 0))
    draft.set_size(total)
    convolutions = [isinstance(told, ConvProjection) for told in draft.told]
    draft.check(
        all(convolutions) or not any(convolutions),
        "either all projections are convolutions or none is",
        f"{sum(convolutions)} of {len(convolutions)}",
    )
    draft.attributes["shared_biases"] = convolutions[0]
    draft.add_bias(filters if convolutions[0] else total)


def _own_size(draft: Draft, at: int, convolution: Mapping[str, Any] | None) -> int:
    """Returns the size that a projection itself returns; 0 where it takes the layer's."""
    told: Any = draft.told[at]
    draft.check(
        isinstance(told, Projection),
        "inputs must be projections or operators",
        repr(told),
        "Write FullMatrixProjection(…), IdentityProjection(…) …",
    )
    if told.kind in ("identity", "dot_mul", "scaling"):
        size = draft.input_size(at)
    elif told.kind == "context":
        size = draft.input_size(at) * draft.whole("context_length", told.context_length, least=1)
    elif convolution is not None:
        sides = ("img_size", "img_size_y") if told.kind == "convt" else ("output_x", "output_y")
        size = _filters(draft, told) * int(convolution[sides[0]]) * int(convolution[sides[1]])
    else:
        return draft.whole("size", told.size)
    draft.check(
        told.size in (0, size),
        f"projection {at} ({told.kind}) of {draft.feeding[at].name!r} gives size {size}",
        f"size={told.size}",
    )
    return size


def _complete(draft: Draft, at: int, size: int, convolution: Mapping[str, Any] | None) -> None:
    """The settings and the parameter of a projection, now that its size is known."""
    told: Any = draft.told[at]
    given = draft.input_size(at)
    settings: dict[str, Any] = {"type": told.kind, "input_size": given, "output_size": size}
    weights: dict[str, tuple[int, ...]] = {
        "dot_mul": (1, size), "scaling": (1, 1), "table": (given, size), "fc": (given, size), "trans_fc": (size, given),
    }  # fmt: skip
    if convolution is not None:
        filters = _filters(draft, told)
        settings |= {"conv": convolution, "num_filters": filters}
        draft.weight(
            at, trans_conv_weights(convolution) if told.kind == "convt" else conv_weights(convolution, filters)
        )
    elif isinstance(told, IdentityOffsetProjection):
        settings["offset"] = draft.whole("offset", told.offset)
        draft.check(
            told.offset + size <= given,
            "`offset` plus the layer's size must not pass the end of the input",
            f"offset={told.offset}, size {size}, input of {given}",
        )
    elif isinstance(told, ContextProjection):
        padding = context_padding(told.context_start, told.context_length)
        settings |= {
            "context_start": told.context_start,
            "context_length": told.context_length,
            "trainable_padding": bool(told.trainable_padding),
        }
        draft.weight(at, padding * given if told.trainable_padding else 0, (padding, given))
    elif told.kind in weights:
        rows, columns = weights[told.kind]
        draft.weight(at, rows * columns, (rows, columns))
    draft.settings[at]["proj"] = settings


def _convolution(draft: Draft, at: int) -> Mapping[str, Any] | None:
    told = draft.told[at]
    if not isinstance(told, ConvProjection):
        return None
    draft.check(told.conv_conf is not None, "a convolution must say its `conv_conf`", "nothing", f"Write {_CONV_CONF}")
    assert told.conv_conf is not None
    return conv_settings(draft, at, told.conv_conf, _filters(draft, told), transposed=told.kind == "convt")


def _filters(draft: Draft, told: ConvProjection | ConvOperator) -> int:
    return draft.whole("num_filters", told.num_filters, least=1)


def _operator(draft: Draft, at: int) -> Mapping[str, Any]:
    """Returns an operator's description; inputs of it beyond the first become inputs of the layer."""
    told = draft.told[at]
    assert isinstance(told, Operator)
    names = told.input_layer_names
    draft.check(isinstance(names, list | tuple) and len(names) == 2, "an operator names two layers", repr(names))
    places = (at, draft.add_input(names[1]))
    sizes = [draft.input_size(place) for place in places]
    settings: dict[str, Any] = {"type": told.kind, "input_indices": list(places), "input_sizes": sizes}
    if isinstance(told, DotMulOperator):
        draft.check(sizes[0] == sizes[1], "both inputs of a dot_mul operator must have the same size", f"sizes {sizes}")
        return {**settings, "output_size": sizes[0], "dotmul_scale": 1.0 if told.scale is None else float(told.scale)}
    assert isinstance(told, ConvOperator)
    draft.check(told.conv_conf is not None, "a convolution must say its `conv_conf`", "nothing", f"Write {_CONV_CONF}")
    assert told.conv_conf is not None
    filters = _filters(draft, told)
    transposed = told.kind == "convt"
    conv = conv_settings(draft, at, told.conv_conf, filters, transposed=transposed)
    count = trans_conv_weights(conv) if transposed else conv_weights(conv, filters)
    draft.check(
        sizes[1] == count,
        f"the second input of a conv operator holds a row's filters, {count} numbers",
        f"size {sizes[1]}",
    )
    sides = ("img_size", "img_size_y") if transposed else ("output_x", "output_y")
    size = filters * int(conv[sides[0]]) * int(conv[sides[1]])
    return {**settings, "output_size": size, "conv": conv, "num_filters": filters}
