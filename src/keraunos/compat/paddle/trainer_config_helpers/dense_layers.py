"""Data layers, and layers of whole rows with weights: fc, selective_fc, tensor, addto, concat. On the driver."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from keraunos.compat.paddle import config_parser as raw
from keraunos.compat.paddle.trainer_config_helpers.activations import (
    BaseActivation,
    IdentityActivation,
    LinearActivation,
    TanhActivation,
)
from keraunos.compat.paddle.trainer_config_helpers.attrs import (
    DROPOUT,
    ERROR_CLIPPING,
    ExtraLayerAttribute,
    ParameterAttribute,
)
from keraunos.compat.paddle.trainer_config_helpers.defining import (
    bias,
    define,
    named,
    names_of,
    parameter,
    parameters,
    weighted,
)
from keraunos.compat.paddle.trainer_config_helpers.layer_output import (
    LayerOutput,
    LayerType,
    a_layer,
    an_activation,
    some_layers,
)
from keraunos.compat.paddle.trainer_config_helpers.projections import MixedProjection
from keraunos.errors import ModelError

__all__ = [
    "addto_layer",
    "concat_layer",
    "data_layer",
    "fc_layer",
    "prelu_layer",
    "print_layer",
    "selective_fc_layer",
    "tensor_layer",
]

logger = logging.getLogger(__name__)

ParamAttrs = ParameterAttribute | Sequence[ParameterAttribute | None] | None


def data_layer(
    name: str,
    size: int,
    height: int | None = None,
    width: int | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns an input of the network.

    Args:
        name: the layer's; columns are mapped to it.
        size: the width of its rows; for ids, how many there are; for a label, how many classes.
        height: of an image.
        width: of an image; without both, an image is taken to be square.
        layer_attr: `device` only.
    """
    depth = size // (height * width) if height and width else None
    return define(
        "data_layer",
        LayerType.DATA,
        name,
        [],
        [],
        layer_attr=layer_attr,
        depth=depth,
        size=size,
        height=height,
        width=width,
    )


def fc_layer(
    input: LayerOutput | Sequence[LayerOutput],
    size: int,
    act: BaseActivation | None = None,
    name: str | None = None,
    param_attr: ParamAttrs = None,
    bias_attr: ParameterAttribute | bool | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns the sum of each input times its own matrix, plus a bias, through an activation.

    Args:
        input: one layer, or several.
        size: the width of its rows.
        act: tanh by default.
        name: the layer's.
        param_attr: of the matrices; one for all inputs, or one for each.
        bias_attr: a bias that starts at 0 by default; `False` for none.
        layer_attr: error clipping and dropout.
    """
    layers = some_layers(input, "fc_layer")
    attrs = parameters(param_attr, len(layers), "fc_layer")
    return define(
        "fc_layer",
        LayerType.FC_LAYER,
        named(name, "fc_layer"),
        [weighted(layer, attr) for layer, attr in zip(layers, attrs)],
        layers,
        activation=an_activation(act, TanhActivation(), "fc_layer"),
        layer_attr=layer_attr,
        supports=(ERROR_CLIPPING, DROPOUT),
        size=size,
        bias=bias(bias_attr),
    )


def selective_fc_layer(
    input: LayerOutput | Sequence[LayerOutput],
    size: int,
    select: LayerOutput | None = None,
    act: BaseActivation | None = None,
    name: str | None = None,
    pass_generation: bool = False,
    has_selected_colums: bool = True,
    mul_ratio: float = 0.02,
    param_attr: ParamAttrs = None,
    bias_attr: ParameterAttribute | bool | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """`fc_layer` of which each row computes only the columns that its row of `select` names.

    Args:
        input: one layer, or several.
        size: the width of its rows.
        select: a layer as wide, not zero where a column is wanted.
        act: tanh by default.
        name: the layer's.
        pass_generation: refused; sequences are not generated here.
        has_selected_colums: whether `select` is there.
        mul_ratio: from which share of columns on Paddle multiplies the whole matrix; the result is the same.
        param_attr: of the matrices.
        bias_attr: a bias that starts at 0 by default; `False` for none.
        layer_attr: `device` only.
    """
    function = "selective_fc_layer"
    if pass_generation:
        raise ModelError(
            f"`pass_generation` of `{function}` is for the generation of sequences, which is not supported here. "
            "Received: pass_generation=True. Leave it out."
        )
    layers = some_layers(input, function)
    attrs = parameters(param_attr, len(layers), function)
    inputs = [weighted(layer, attr) for layer, attr in zip(layers, attrs)]
    if (select is not None) != has_selected_colums:
        raise ModelError(
            f"`{function}` takes its columns from `select`; expected it with has_selected_colums=True, or neither. "
            f"Received: select={select!r}, has_selected_colums={has_selected_colums!r}. Without `select`, say "
            "has_selected_colums=False, or use fc_layer."
        )
    if select is not None:
        chosen = a_layer(select, function, "select")
        layers, inputs = [*layers, chosen], [*inputs, raw.Input(chosen.name)]
    return define(
        function,
        LayerType.SEL_FC_LAYER,
        named(name, function),
        inputs,
        layers,
        activation=an_activation(act, TanhActivation(), function),
        layer_attr=layer_attr,
        size=size,
        bias=bias(bias_attr),
        has_selected_colums=has_selected_colums,
        selective_fc_full_mul_ratio=mul_ratio,
    )


def tensor_layer(
    a: LayerOutput,
    b: LayerOutput,
    size: int,
    act: BaseActivation | None = None,
    name: str | None = None,
    param_attr: ParameterAttribute | None = None,
    bias_attr: ParameterAttribute | bool | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """For each of `size` columns, a times a matrix times b.

    Args:
        a: one layer.
        b: the other.
        size: the width of its rows.
        act: linear by default.
        name: the layer's.
        param_attr: of the matrices.
        bias_attr: a bias that starts at 0 by default; `False` for none.
        layer_attr: error clipping and dropout.
    """
    left, right = a_layer(a, "tensor_layer", "a"), a_layer(b, "tensor_layer", "b")
    return define(
        "tensor_layer",
        LayerType.TENSOR_LAYER,
        named(name, "tensor_layer"),
        [weighted(left, parameter(param_attr)), raw.Input(right.name)],
        [left, right],
        activation=an_activation(act, LinearActivation(), "tensor_layer"),
        layer_attr=layer_attr,
        supports=(ERROR_CLIPPING, DROPOUT),
        size=size,
        bias=bias(bias_attr),
    )


def addto_layer(
    input: LayerOutput | Sequence[LayerOutput],
    act: BaseActivation | None = None,
    name: str | None = None,
    bias_attr: ParameterAttribute | bool | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns the sum of layers of one size, through an activation.

    Args:
        input: one layer, or several.
        act: linear by default.
        name: the layer's.
        bias_attr: none by default; `True` for one that starts at 0.
        layer_attr: error clipping and dropout.
    """
    layers = some_layers(input, "addto_layer")
    return define(
        "addto_layer",
        LayerType.ADDTO_LAYER,
        named(name, "addto"),
        names_of(layers),
        layers,
        activation=an_activation(act, LinearActivation(), "addto_layer"),
        depth=next((layer.num_filters for layer in layers if layer.num_filters is not None), None),
        layer_attr=layer_attr,
        supports=(ERROR_CLIPPING, DROPOUT),
        bias=bias(bias_attr, has_bias=False),
    )


def concat_layer(
    input: LayerOutput | MixedProjection | Sequence[LayerOutput] | Sequence[MixedProjection],
    act: BaseActivation | None = None,
    name: str | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
    bias_attr: ParameterAttribute | bool | None = None,
) -> LayerOutput:
    """Layers, or projections, side by side.

    Args:
        input: all layers, or all projections.
        act: linear by default.
        name: the layer's.
        layer_attr: error clipping and dropout.
        bias_attr: of projections only; none by default, `True` for one that starts at 0.
    """
    given = list(input) if isinstance(input, Sequence) else [input]
    projected = [each for each in given if isinstance(each, MixedProjection)]
    if projected and len(projected) != len(given):
        raise ModelError(
            f"`concat_layer` puts layers side by side, or projections, not both. Received: {given!r}. "
            "Wrap the layers in identity_projection(…)."
        )
    own_bias = bias(bias_attr, has_bias=False)
    if own_bias and not projected:
        raise ModelError(
            f"`concat_layer` of layers has no bias; only one of projections has. Received: bias_attr={bias_attr!r}. "
            "Wrap the layers in identity_projection(…), or leave `bias_attr` out."
        )
    layers = [each.origin[0] for each in projected] or some_layers(given, "concat_layer")
    depths = [layer.num_filters for layer in layers]
    return define(
        "concat_layer",
        LayerType.CONCAT_PROJ_LAYER if projected else LayerType.CONCAT_LAYER,
        named(name, "concat"),
        [each.raw for each in projected] or names_of(layers),
        layers,
        activation=an_activation(act, IdentityActivation(), "concat_layer"),
        depth=None if projected or None in depths else sum(depth for depth in depths if depth),
        layer_attr=layer_attr,
        supports=(ERROR_CLIPPING, DROPOUT),
        bias=own_bias if projected else None,
    )


def prelu_layer(
    input: LayerOutput,
    name: str | None = None,
    partial_sum: int = 1,
    param_attr: ParameterAttribute | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns the positive part, and a learned share of the negative.

    Args:
        input: a layer.
        name: the layer's.
        partial_sum: how many columns in a row share one slope.
        param_attr: of the slopes; 0.25 to start with.
        layer_attr: error clipping and dropout.
    """
    layer = a_layer(input, "prelu_layer")
    attr = ParameterAttribute(initial_mean=0.25, initial_std=0.0) if param_attr is None else parameter(param_attr)
    return define(
        "prelu_layer",
        LayerType.PRELU,
        named(name, "prelu_layer"),
        [weighted(layer, attr)],
        [layer],
        depth=layer.num_filters,
        layer_attr=layer_attr,
        supports=(ERROR_CLIPPING, DROPOUT),
        partial_sum=partial_sum,
    )


def print_layer(input: LayerOutput | Sequence[LayerOutput], format: str | None = None, name: str | None = None) -> None:
    """Accepted, with a note in the log: workers print no values, and nothing else reads this layer.

    Args:
        input: the layers that Paddle would print.
        format: how it would.
        name: the layer's.
    """
    layers = some_layers(input, "print_layer")
    logger.info(
        "print_layer(%r) of %s is accepted and prints nothing: take the lowered Keras model to look at values.",
        named(name, "print") if format is None else format, ", ".join(names_of(layers)),
    )  # fmt: skip
