"""Networks of sequences: text convolution, LSTM and GRU in one or both directions, attention. On the driver."""

from __future__ import annotations

from typing import Any

from keraunos.compat.paddle.trainer_config_helpers.activations import (
    BaseActivation,
    IdentityActivation,
    LinearActivation,
    SequenceSoftmaxActivation,
    SigmoidActivation,
    TanhActivation,
)
from keraunos.compat.paddle.trainer_config_helpers.attrs import ExtraLayerAttribute, ParameterAttribute
from keraunos.compat.paddle.trainer_config_helpers.defining import named, parameter_or_none
from keraunos.compat.paddle.trainer_config_helpers.dense_layers import concat_layer, fc_layer
from keraunos.compat.paddle.trainer_config_helpers.layer_output import LayerOutput, a_layer
from keraunos.compat.paddle.trainer_config_helpers.mixed_layers import mixed_layer
from keraunos.compat.paddle.trainer_config_helpers.poolings import BasePoolingType, SumPooling
from keraunos.compat.paddle.trainer_config_helpers.projections import (
    context_projection,
    full_matrix_projection,
    identity_projection,
)
from keraunos.compat.paddle.trainer_config_helpers.sequence_layers import (
    expand_layer,
    first_seq,
    grumemory,
    last_seq,
    lstmemory,
    pooling_layer,
)
from keraunos.compat.paddle.trainer_config_helpers.vector_layers import scaling_layer
from keraunos.errors import ModelError

__all__ = [
    "bidirectional_gru",
    "bidirectional_lstm",
    "gru_group",
    "lstmemory_group",
    "sequence_conv_pool",
    "simple_attention",
    "simple_gru",
    "simple_gru2",
    "simple_lstm",
    "text_conv_pool",
]

Bias = ParameterAttribute | bool | None
Extra = ExtraLayerAttribute | None


def sequence_conv_pool(
    input: LayerOutput,
    context_len: int,
    hidden_size: int,
    name: str | None = None,
    context_start: int | None = None,
    pool_type: BasePoolingType | None = None,
    context_proj_layer_name: str | None = None,
    context_proj_param_attr: Bias = False,
    fc_layer_name: str | None = None,
    fc_param_attr: ParameterAttribute | None = None,
    fc_bias_attr: Bias = None,
    fc_act: BaseActivation | None = None,
    pool_bias_attr: Bias = None,
    fc_attr: Extra = None,
    context_attr: Extra = None,
    pool_attr: Extra = None,
) -> LayerOutput:
    """Returns each step beside its neighbours, through a fully connected layer, pooled over the sequence.

    Arguments are those of `context_projection`, `fc_layer` and `pooling_layer`; `name` is the pooling's.
    """
    own = named(name, "sequence_conv_pooling")
    layer = a_layer(input, "sequence_conv_pool")
    context = mixed_layer(
        layer.size * context_len,
        context_projection(layer, context_len, context_start, context_proj_param_attr),
        context_proj_layer_name or f"{own}_conv_proj",
        LinearActivation(),
        layer_attr=context_attr,
    )
    hidden = fc_layer(
        context,
        hidden_size,
        act=fc_act,
        name=fc_layer_name or f"{own}_conv_fc",
        param_attr=fc_param_attr,
        bias_attr=fc_bias_attr,
        layer_attr=fc_attr,
    )
    return pooling_layer(hidden, pool_type, own, pool_bias_attr, layer_attr=pool_attr)


text_conv_pool = sequence_conv_pool


def simple_lstm(
    input: LayerOutput,
    size: int,
    name: str | None = None,
    reverse: bool = False,
    mat_param_attr: ParameterAttribute | None = None,
    bias_param_attr: Bias = None,
    inner_param_attr: ParameterAttribute | None = None,
    act: BaseActivation | None = None,
    gate_act: BaseActivation | None = None,
    state_act: BaseActivation | None = None,
    mixed_layer_attr: Extra = None,
    lstm_cell_attr: Extra = None,
) -> LayerOutput:
    """`lstmemory` with its projections: `mat_param_attr` is theirs, the rest is the memory's."""
    own = named(name, "lstm")
    projected = mixed_layer(
        size * 4,
        full_matrix_projection(input, param_attr=mat_param_attr),
        f"lstm_transform_{own}",
        IdentityActivation(),
        layer_attr=mixed_layer_attr,
    )
    return lstmemory(
        projected,
        own,
        reverse,
        act,
        gate_act,
        state_act=state_act,
        bias_attr=bias_param_attr,
        param_attr=inner_param_attr,
        layer_attr=lstm_cell_attr,
    )


def lstmemory_group(
    input: LayerOutput,
    size: int | None = None,
    name: str | None = None,
    reverse: bool = False,
    param_attr: ParameterAttribute | None = None,
    act: BaseActivation | None = None,
    gate_act: BaseActivation | None = None,
    state_act: BaseActivation | None = None,
    mixed_bias_attr: Bias = None,
    lstm_bias_attr: Bias = None,
    mixed_layer_attr: Extra = None,
    lstm_layer_attr: Extra = None,
    get_output_layer_attr: Extra = None,
) -> LayerOutput:
    """`lstmemory` under the name of Paddle's step-by-step one, whose mathematics is the same.

    Paddle's has two biases, of the gates (`mixed_bias_attr`, without which there is none) and of the peepholes
    (`lstm_bias_attr`), whereas `lstmemory` has one for both. It is therefore supported only if both are given and
    equal.

    Args:
        input: a sequence four times as wide as the memory.
        size: the memory's width, which the input decides.
        name: the layer's.
        reverse: from the end of the sequence.
        param_attr: of the matrix between steps.
        act: of what is written to the cell; tanh by default.
        gate_act: of the gates; sigmoid by default.
        state_act: of the cell where it is read; sigmoid by default, unlike `lstmemory`'s.
        mixed_bias_attr: of the gates; none by default, `True` for one that starts at 0.
        lstm_bias_attr: of the peepholes; by default one that starts at 0.
        mixed_layer_attr: refused; there is no such layer.
        lstm_layer_attr: `device` only.
        get_output_layer_attr: refused; there is no such layer.
    """
    gates = _one_bias(mixed_bias_attr, lstm_bias_attr)
    for argument, attr in {
        "mixed_layer_attr": mixed_layer_attr,
        "get_output_layer_attr": get_output_layer_attr,
    }.items():
        if attr is not None:
            raise ModelError(
                f"`{argument}` of `lstmemory_group` is about a layer inside Paddle's group, which is not there. "
                f"Received: {attr!r}. Use lstm_layer_attr, or lstmemory with layer_attr."
            )
    return lstmemory(
        input,
        named(name, "lstm_group"),
        reverse,
        act,
        gate_act,
        size,
        SigmoidActivation() if state_act is None else state_act,
        gates,
        param_attr,
        _device_only("lstmemory_group", "lstm_layer_attr", lstm_layer_attr),
    )


def gru_group(
    input: LayerOutput,
    size: int | None = None,
    name: str | None = None,
    reverse: bool = False,
    gru_bias_attr: Bias = None,
    gru_param_attr: ParameterAttribute | None = None,
    act: BaseActivation | None = None,
    gate_act: BaseActivation | None = None,
    gru_layer_attr: Extra = None,
    naive: bool = False,
) -> LayerOutput:
    """`grumemory` under the name of Paddle's step-by-step one, whose mathematics and parameters are the same.

    Args:
        input: a sequence three times as wide as the unit.
        size: the unit's width, which the input decides.
        name: the layer's.
        reverse: from the end of the sequence.
        gru_bias_attr: a bias that starts at 0 by default; `False` for none.
        gru_param_attr: of the matrices between steps.
        act: of the candidate; tanh by default.
        gate_act: of the gates; sigmoid by default.
        gru_layer_attr: `device` only.
        naive: refused; it divides the parameters otherwise.
    """
    if naive:
        raise ModelError(
            "`naive` of `gru_group` makes Paddle keep the matrices of the gates and of the candidate apart, which "
            "grumemory does not. Received: naive=True. Leave it out: the mathematics is the same."
        )
    extra = _device_only("gru_group", "gru_layer_attr", gru_layer_attr)
    own = named(name, "gru_group")
    return grumemory(input, size, own, reverse, act, gate_act, gru_bias_attr, gru_param_attr, extra)


def simple_gru(
    input: LayerOutput,
    size: int,
    name: str | None = None,
    reverse: bool = False,
    mixed_param_attr: ParameterAttribute | None = None,
    mixed_bias_param_attr: Bias = None,
    mixed_layer_attr: Extra = None,
    gru_bias_attr: Bias = None,
    gru_param_attr: ParameterAttribute | None = None,
    act: BaseActivation | None = None,
    gate_act: BaseActivation | None = None,
    gru_layer_attr: Extra = None,
    naive: bool = False,
) -> LayerOutput:
    """`gru_group` with its projections: the `mixed_` arguments are theirs, the rest is the unit's."""
    own = named(name, "simple_gru")
    projection = full_matrix_projection(input, param_attr=mixed_param_attr)
    projected = mixed_layer(
        size * 3, projection, f"{own}_transform", bias_attr=mixed_bias_param_attr, layer_attr=mixed_layer_attr
    )
    return gru_group(projected, size, own, reverse, gru_bias_attr, gru_param_attr, act, gate_act, gru_layer_attr, naive)


def simple_gru2(
    input: LayerOutput,
    size: int,
    name: str | None = None,
    reverse: bool = False,
    mixed_param_attr: ParameterAttribute | None = None,
    mixed_bias_attr: Bias = None,
    gru_param_attr: ParameterAttribute | None = None,
    gru_bias_attr: Bias = None,
    act: BaseActivation | None = None,
    gate_act: BaseActivation | None = None,
    mixed_layer_attr: Extra = None,
    gru_cell_attr: Extra = None,
) -> LayerOutput:
    """`grumemory` with its projections: the `mixed_` arguments are theirs, the rest is the unit's."""
    own = named(name, "simple_gru2")
    projection = full_matrix_projection(input, param_attr=mixed_param_attr)
    projected = mixed_layer(
        size * 3, projection, f"{own}_transform", bias_attr=mixed_bias_attr, layer_attr=mixed_layer_attr
    )
    return grumemory(projected, size, own, reverse, act, gate_act, gru_bias_attr, gru_param_attr, gru_cell_attr)


def bidirectional_gru(
    input: LayerOutput,
    size: int,
    name: str | None = None,
    return_seq: bool = False,
    last_seq_attr: Extra = None,
    first_seq_attr: Extra = None,
    concat_attr: Extra = None,
    concat_act: BaseActivation | None = None,
    **directions: Any,
) -> LayerOutput:
    """Returns a GRU from each end, side by side: their sequences, or the last step that each comes to.

    Args:
        input: a sequence.
        size: the width of each.
        name: the layer's.
        return_seq: the whole sequences.
        last_seq_attr: of the last step of the forward one.
        first_seq_attr: of the first step of the backward one.
        concat_attr: of the layer that puts them side by side.
        concat_act: its activation.
        directions: `simple_gru2`'s arguments with `fwd_` or `bwd_` in front.
    """
    own = named(name, "bidirectional_gru")
    forward, backward = _directions("bidirectional_gru", directions, _GRU_ARGUMENTS)
    ahead = simple_gru2(input, size, f"{own}_fw", **forward)
    back = simple_gru2(input, size, f"{own}_bw", reverse=True, **backward)
    return _both(own, ahead, back, return_seq, last_seq_attr, first_seq_attr, concat_attr, concat_act)


def bidirectional_lstm(
    input: LayerOutput,
    size: int,
    name: str | None = None,
    return_seq: bool = False,
    last_seq_attr: Extra = None,
    first_seq_attr: Extra = None,
    concat_attr: Extra = None,
    concat_act: BaseActivation | None = None,
    **directions: Any,
) -> LayerOutput:
    """Returns an LSTM from each end, side by side: their sequences, or the last step that each comes to.

    Args:
        input: a sequence.
        size: the width of each.
        name: the layer's.
        return_seq: the whole sequences.
        last_seq_attr: of the last step of the forward one.
        first_seq_attr: of the first step of the backward one.
        concat_attr: of the layer that puts them side by side.
        concat_act: its activation.
        directions: `simple_lstm`'s arguments with `fwd_` or `bwd_` in front.
    """
    own = named(name, "bidirectional_lstm")
    forward, backward = _directions("bidirectional_lstm", directions, _LSTM_ARGUMENTS)
    ahead = simple_lstm(input, size, f"{own}_fw", **forward)
    back = simple_lstm(input, size, f"{own}_bw", reverse=True, **backward)
    return _both(own, ahead, back, return_seq, last_seq_attr, first_seq_attr, concat_attr, concat_act)


def simple_attention(
    encoded_sequence: LayerOutput,
    encoded_proj: LayerOutput,
    decoder_state: LayerOutput,
    transform_param_attr: ParameterAttribute | None = None,
    softmax_param_attr: ParameterAttribute | None = None,
    weight_act: BaseActivation | None = None,
    name: str | None = None,
) -> LayerOutput:
    """Returns the steps of a sequence summed by how well each fits a row.

    Args:
        encoded_sequence: the sequence.
        encoded_proj: the same, projected to the width of `decoder_state`.
        decoder_state: a row for each sequence.
        transform_param_attr: of the matrix on `decoder_state`.
        softmax_param_attr: of the matrix that makes a number of each step.
        weight_act: before that matrix; tanh by default.
        name: the layer's.
    """
    own = named(name, "simple_attention")
    projected, state = a_layer(encoded_proj, "simple_attention", "encoded_proj"), decoder_state
    if projected.size != a_layer(state, "simple_attention", "decoder_state").size:
        raise ModelError(
            f"`encoded_proj` and `decoder_state` of `simple_attention` must be of one size. "
            f"Received: {projected!r} and {state!r}."
        )
    moved = mixed_layer(
        projected.size, full_matrix_projection(state, param_attr=transform_param_attr), f"{own}_transform"
    )
    expanded = expand_layer(moved, encoded_sequence, f"{own}_expand")
    act = TanhActivation() if weight_act is None else weight_act
    terms = [identity_projection(expanded), identity_projection(projected)]
    combined = mixed_layer(projected.size, terms, f"{own}_combine", act)
    weight = fc_layer(
        combined,
        1,
        act=SequenceSoftmaxActivation(),
        name=f"{own}_softmax",
        param_attr=softmax_param_attr,
        bias_attr=False,
    )
    scaled = scaling_layer(encoded_sequence, weight, f"{own}_scaling")
    return pooling_layer(scaled, SumPooling(), f"{own}_pooling")


_COMMON = ("act", "gate_act", "mixed_layer_attr")
_LSTM_ARGUMENTS = (
    *_COMMON, "mat_param_attr", "bias_param_attr", "inner_param_attr", "state_act", "lstm_cell_attr",
)  # fmt: skip
_GRU_ARGUMENTS = (
    *_COMMON, "mixed_param_attr", "mixed_bias_attr", "gru_param_attr", "gru_bias_attr", "gru_cell_attr",
)  # fmt: skip


def _directions(function: str, given: dict[str, Any], known: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the arguments of each direction, without their `fwd_` and `bwd_`."""
    ways: dict[str, dict[str, Any]] = {"fwd": {}, "bwd": {}}
    for argument, value in given.items():
        way, _, word = argument.partition("_")
        if way not in ways or word not in known:
            words = ", ".join(sorted(known))
            raise ModelError(
                f"`{function}` knows no argument `{argument}`; each direction takes `fwd_` or `bwd_` before one of "
                f"{words}. Received: {argument}={value!r}."
            )
        ways[way][word] = value
    return ways["fwd"], ways["bwd"]


def _both(
    name: str,
    forward: LayerOutput,
    backward: LayerOutput,
    return_seq: bool,
    last_seq_attr: Extra,
    first_seq_attr: Extra,
    concat_attr: Extra,
    concat_act: BaseActivation | None,
) -> LayerOutput:
    if return_seq:
        return concat_layer([forward, backward], name=name, act=concat_act, layer_attr=concat_attr)
    last = last_seq(forward, f"{name}_fw_last", layer_attr=last_seq_attr)
    first = first_seq(backward, f"{name}_bw_last", layer_attr=first_seq_attr)
    return concat_layer([last, first], name=name, act=concat_act, layer_attr=concat_attr)


def _one_bias(mixed_bias_attr: Bias, lstm_bias_attr: Bias) -> ParameterAttribute:
    """Returns the attributes of both biases of Paddle's group, if they are one."""
    gates = parameter_or_none(mixed_bias_attr, has_default=False)
    peepholes = parameter_or_none(lstm_bias_attr, has_default=True)
    if gates is None or gates != peepholes:
        raise ModelError(
            "`lstmemory_group` runs here as `lstmemory`, which has one bias for gates and peepholes: both must be "
            f"there, with the same attributes. Received: mixed_bias_attr={mixed_bias_attr!r}, "
            f"lstm_bias_attr={lstm_bias_attr!r}. "
            "Give mixed_bias_attr=True, or use lstmemory or simple_lstm."
        )
    if "parameter_name" in gates.attr:
        raise ModelError(
            "The biases of `lstmemory_group` are one parameter here, and cannot be shared by name with others of "
            f"Paddle's sizes. Received: mixed_bias_attr={mixed_bias_attr!r}. Leave the name out."
        )
    return gates


def _device_only(function: str, argument: str, attr: Extra) -> Extra:
    """`layer_attr` of a layer that Paddle's group refuses dropout to."""
    for key in attr.attr if attr is not None else ():
        if key != "device":
            raise ModelError(
                f"`{argument}` of `{function}` may hold `device` alone. Received: {attr!r}. Put a dropout_layer behind."
            )
    return attr
