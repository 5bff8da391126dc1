"""Layers of sequences: the recurrent ones, pooling over steps, and changes of their length. On the driver."""

from __future__ import annotations

from typing import Any

from keraunos.compat.paddle import config_parser as raw
from keraunos.compat.paddle.trainer_config_helpers.activations import (
    BaseActivation,
    IdentityActivation,
    SigmoidActivation,
    TanhActivation,
)
from keraunos.compat.paddle.trainer_config_helpers.attrs import (
    DROPOUT,
    ERROR_CLIPPING,
    ExtraLayerAttribute,
    ParameterAttribute,
)
from keraunos.compat.paddle.trainer_config_helpers.defining import bias, define, named, names_of, parameter, weighted
from keraunos.compat.paddle.trainer_config_helpers.layer_output import (
    AggregateLevel,
    ExpandLevel,
    LayerOutput,
    LayerType,
    a_layer,
    an_activation,
)
from keraunos.compat.paddle.trainer_config_helpers.poolings import AvgPooling, BasePoolingType, MaxPooling
from keraunos.errors import ModelError

__all__ = [
    "expand_layer",
    "first_seq",
    "get_output_layer",
    "grumemory",
    "last_seq",
    "lstmemory",
    "pooling_layer",
    "recurrent_layer",
    "repeat_layer",
    "seq_concat_layer",
    "seq_reshape_layer",
]


def lstmemory(
    input: LayerOutput,
    name: str | None = None,
    reverse: bool = False,
    act: BaseActivation | None = None,
    gate_act: BaseActivation | None = None,
    size: int | None = None,
    state_act: BaseActivation | None = None,
    bias_attr: ParameterAttribute | bool | None = None,
    param_attr: ParameterAttribute | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """A long short-term memory with peepholes, over a sequence whose projections to the gates are worked out before it.

    Args:
        input: a sequence four times as wide as the memory; `simple_lstm` puts it in front.
        name: the layer's.
        reverse: from the end of the sequence.
        act: of what is written to the cell; tanh by default.
        gate_act: of the gates; sigmoid by default.
        size: the memory's width, which the input decides.
        state_act: of the cell where it is read; tanh by default.
        bias_attr: of gates and peepholes, 7 times the width; zeros to start with by default.
        param_attr: of the matrix between steps.
        layer_attr: dropout.
    """
    layer = a_layer(input, "lstmemory")
    _check_width("lstmemory", layer, size, 4)
    return define(
        "lstmemory",
        LayerType.LSTMEMORY,
        named(name, "lstmemory"),
        [weighted(layer, parameter(param_attr))],
        [layer],
        activation=an_activation(act, TanhActivation(), "lstmemory"),
        layer_attr=layer_attr,
        supports=(DROPOUT,),
        reverse=reverse,
        active_gate_type=an_activation(gate_act, SigmoidActivation(), "lstmemory").name,
        active_state_type=an_activation(state_act, TanhActivation(), "lstmemory").name,
        reversed=reverse,
        bias=bias(bias_attr),
    )


def grumemory(
    input: LayerOutput,
    size: int | None = None,
    name: str | None = None,
    reverse: bool = False,
    act: BaseActivation | None = None,
    gate_act: BaseActivation | None = None,
    bias_attr: ParameterAttribute | bool | None = None,
    param_attr: ParameterAttribute | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns a gated recurrent unit, over a sequence whose projections to the gates are worked out before it.

    Args:
        input: a sequence three times as wide as the unit; `simple_gru2` puts it in front.
        size: the unit's width, which the input decides.
        name: the layer's.
        reverse: from the end of the sequence.
        act: of the candidate; tanh by default.
        gate_act: of the gates; sigmoid by default.
        bias_attr: of the gates and the candidate; zeros to start with by default.
        param_attr: of the matrices between steps.
        layer_attr: dropout.
    """
    layer = a_layer(input, "grumemory")
    _check_width("grumemory", layer, size, 3)
    return define(
        "grumemory",
        LayerType.GRUMEMORY,
        named(name, "gru"),
        [weighted(layer, parameter(param_attr))],
        [layer],
        activation=an_activation(act, TanhActivation(), "grumemory"),
        layer_attr=layer_attr,
        supports=(DROPOUT,),
        reverse=reverse,
        active_gate_type=an_activation(gate_act, SigmoidActivation(), "grumemory").name,
        reversed=reverse,
        bias=bias(bias_attr),
    )


def recurrent_layer(
    input: LayerOutput,
    act: BaseActivation | None = None,
    bias_attr: ParameterAttribute | bool | None = None,
    param_attr: ParameterAttribute | None = None,
    name: str | None = None,
    reverse: bool = False,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns each step is the input's plus the step before it times a matrix, through an activation.

    Args:
        input: a sequence, as wide as this layer.
        act: tanh by default.
        bias_attr: a bias that starts at 0 by default; `False` for none.
        param_attr: of the matrix.
        name: the layer's.
        reverse: from the end of the sequence.
        layer_attr: `device` only.
    """
    layer = a_layer(input, "recurrent_layer")
    return define(
        "recurrent_layer",
        LayerType.RECURRENT_LAYER,
        named(name, "recurrent_layer"),
        [weighted(layer, parameter(param_attr))],
        [layer],
        activation=an_activation(act, TanhActivation(), "recurrent_layer"),
        layer_attr=layer_attr,
        reverse=reverse,
        reversed=reverse,
        bias=bias(bias_attr),
    )


def get_output_layer(
    input: LayerOutput, arg_name: str, name: str | None = None, layer_attr: ExtraLayerAttribute | None = None
) -> LayerOutput:
    """Returns an output of a layer that is not its first, by name, such as the `state` of an lstmemory."""
    layer = a_layer(input, "get_output_layer")
    return define(
        "get_output_layer",
        LayerType.GET_OUTPUT_LAYER,
        named(name, "get_output_layer"),
        [raw.Input(layer.name, input_layer_argument=arg_name)],
        [layer],
        layer_attr=layer_attr,
        size=layer.size,
    )


def pooling_layer(
    input: LayerOutput,
    pooling_type: BasePoolingType | None = None,
    name: str | None = None,
    bias_attr: ParameterAttribute | bool | None = None,
    agg_level: str = AggregateLevel.TO_NO_SEQUENCE,
    stride: int = -1,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns one row of all steps of a sequence.

    Args:
        input: a sequence.
        pooling_type: `MaxPooling()` by default; or `AvgPooling()`, `SumPooling()`, `SquareRootNPooling()`.
        name: the layer's.
        bias_attr: none by default; `True` for one that starts at 0.
        agg_level: one row of all of it, or of each inner sequence.
        stride: one row of each this many steps; -1 for one of all.
        layer_attr: `device` only.
    """
    layer = a_layer(input, "pooling_layer")
    kind = MaxPooling() if pooling_type is None else pooling_type
    own: dict[str, Any]
    if isinstance(kind, MaxPooling):
        own = {"output_max_index": kind.output_max_index}
    elif isinstance(kind, AvgPooling):
        own = {"average_strategy": kind.strategy}
    else:
        raise ModelError(
            "`pooling_layer` pools a sequence by MaxPooling(), AvgPooling(), SumPooling() or SquareRootNPooling(). "
            f"Received: {kind!r}. cuDNN's poolings are for img_pool_layer."
        )
    return define(
        "pooling_layer",
        kind.name,
        named(name, "seq_pooling"),
        [raw.Input(layer.name)],
        [layer],
        layer_attr=layer_attr,
        trans_type=agg_level,
        bias=bias(bias_attr, has_bias=False),
        stride=stride,
        **own,
    )


def last_seq(
    input: LayerOutput,
    name: str | None = None,
    agg_level: str = AggregateLevel.TO_NO_SEQUENCE,
    stride: int = -1,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns the last step of a sequence (of each this many steps, with `stride`)."""
    return _one_step("last_seq", LayerType.SEQUENCE_LAST_INSTANCE, input, name, agg_level, stride, layer_attr)


def first_seq(
    input: LayerOutput,
    name: str | None = None,
    agg_level: str = AggregateLevel.TO_NO_SEQUENCE,
    stride: int = -1,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns the first step of a sequence (of each this many steps, with `stride`)."""
    return _one_step("first_seq", LayerType.SEQUENCE_FIRST_INSTANCE, input, name, agg_level, stride, layer_attr)


def expand_layer(
    input: LayerOutput,
    expand_as: LayerOutput,
    name: str | None = None,
    bias_attr: ParameterAttribute | bool | None = False,
    expand_level: str = ExpandLevel.FROM_NO_SEQUENCE,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns a row repeated for each step of a sequence.

    Args:
        input: one row for each sequence.
        expand_as: the sequence.
        name: the layer's.
        bias_attr: none by default; `True` for one that starts at 0.
        expand_level: from one row, or from a row for each inner sequence.
        layer_attr: `device` only.
    """
    layer, pattern = a_layer(input, "expand_layer"), a_layer(expand_as, "expand_layer", "expand_as")
    return define(
        "expand_layer",
        LayerType.EXPAND_LAYER,
        named(name, "expand_layer"),
        names_of([layer, pattern]),
        [layer, pattern],
        layer_attr=layer_attr,
        trans_type=expand_level,
        bias=bias(bias_attr, has_bias=False),
    )


def repeat_layer(
    input: LayerOutput,
    num_repeats: int,
    as_row_vector: bool = True,
    act: BaseActivation | None = None,
    name: str | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns a row `num_repeats` times.

    Args:
        input: a layer.
        num_repeats: how many times.
        as_row_vector: the whole row after itself, instead of each number after itself.
        act: linear by default.
        name: the layer's.
        layer_attr: `device` only.
    """
    layer = a_layer(input, "repeat_layer")
    return define(
        "repeat_layer",
        LayerType.FEATURE_MAP_EXPAND_LAYER,
        named(name, "repeat_layer"),
        [layer.name],
        [layer],
        activation=an_activation(act, IdentityActivation(), "repeat_layer"),
        layer_attr=layer_attr,
        num_filters=num_repeats,
        as_row_vector=as_row_vector,
    )


def seq_concat_layer(
    a: LayerOutput,
    b: LayerOutput,
    act: BaseActivation | None = None,
    name: str | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
    bias_attr: ParameterAttribute | bool | None = None,
) -> LayerOutput:
    """Returns the steps of `a`, then those of `b`, which is as wide.

    Args:
        a: a sequence.
        b: another.
        act: linear by default.
        name: the layer's.
        layer_attr: `device` only.
        bias_attr: none by default; `True` for one that starts at 0.
    """
    first, second = a_layer(a, "seq_concat_layer", "a"), a_layer(b, "seq_concat_layer", "b")
    return define(
        "seq_concat_layer",
        LayerType.SEQUENCE_CONCAT_LAYER,
        named(name, "seqconcat"),
        names_of([first, second]),
        [first, second],
        activation=an_activation(act, IdentityActivation(), "seq_concat_layer"),
        layer_attr=layer_attr,
        supports=(ERROR_CLIPPING, DROPOUT),
        bias=bias(bias_attr, has_bias=False),
    )


def seq_reshape_layer(
    input: LayerOutput,
    reshape_size: int,
    act: BaseActivation | None = None,
    name: str | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
    bias_attr: ParameterAttribute | bool | None = None,
) -> LayerOutput:
    """Returns the numbers of a sequence in steps of another width.

    Args:
        input: a sequence.
        reshape_size: the new width.
        act: linear by default.
        name: the layer's.
        layer_attr: error clipping and dropout.
        bias_attr: none by default; `True` for one that starts at 0.
    """
    layer = a_layer(input, "seq_reshape_layer")
    return define(
        "seq_reshape_layer",
        LayerType.SEQUENCE_RESHAPE,
        named(name, "seqreshape"),
        [layer.name],
        [layer],
        activation=an_activation(act, IdentityActivation(), "seq_reshape_layer"),
        layer_attr=layer_attr,
        supports=(ERROR_CLIPPING, DROPOUT),
        size=reshape_size,
        bias=bias(bias_attr, has_bias=False),
    )


def _one_step(
    function: str,
    layer_type: str,
    input: LayerOutput,
    name: str | None,
    agg_level: str,
    stride: int,
    layer_attr: ExtraLayerAttribute | None,
) -> LayerOutput:
    layer = a_layer(input, function)
    return define(
        function,
        layer_type,
        named(name, function),
        [layer.name],
        [layer],
        layer_attr=layer_attr,
        trans_type=agg_level,
        stride=stride,
    )


def _check_width(function: str, layer: LayerOutput, size: int | None, parts: int) -> None:
    if layer.size % parts or (size is not None and size * parts != layer.size):
        expected = f"a multiple of {parts}" if size is None else f"{parts} * size = {parts * size}"
        made = "simple_lstm" if parts == 4 else "simple_gru2"
        raise ModelError(
            f"The input of `{function}` must be {expected} wide: the gates' projections are worked out before it. "
            f"Received: {layer!r}, size={size!r}. Put a mixed_layer in front of it, or use {made}."
        )
