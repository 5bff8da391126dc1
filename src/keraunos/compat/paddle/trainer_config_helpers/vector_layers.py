"""Layers that compute with rows without weights: products, powers, similarities, ids. On the driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keraunos.compat.paddle.trainer_config_helpers.attrs import DROPOUT, ERROR_CLIPPING, ExtraLayerAttribute
from keraunos.compat.paddle.trainer_config_helpers.defining import define, named, names_of
from keraunos.compat.paddle.trainer_config_helpers.layer_output import LayerOutput, LayerType, a_layer, some_layers

__all__ = [
    "conv_shift_layer",
    "convex_comb_layer",
    "cos_sim",
    "dropout_layer",
    "eos_layer",
    "interpolation_layer",
    "linear_comb_layer",
    "maxid_layer",
    "multiplex_layer",
    "out_prod_layer",
    "power_layer",
    "resize_layer",
    "sampling_id_layer",
    "scaling_layer",
    "slope_intercept_layer",
    "sum_to_one_norm_layer",
    "trans_layer",
]


def interpolation_layer(
    input: Sequence[LayerOutput],
    weight: LayerOutput,
    name: str | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Weight * the first + (1 - weight) * the second of two layers; `weight` is one wide."""
    layers = some_layers(input, "interpolation_layer")
    share = a_layer(weight, "interpolation_layer", "weight")
    return _plain("interpolation_layer", LayerType.INTERPOLATION_LAYER, name, [share, *layers], layer_attr)


def power_layer(
    input: LayerOutput, weight: LayerOutput, name: str | None = None, layer_attr: ExtraLayerAttribute | None = None
) -> LayerOutput:
    """Returns each row to the power of its row of `weight`, which is one wide."""
    layers = [a_layer(weight, "power_layer", "weight"), a_layer(input, "power_layer")]
    return _plain("power_layer", LayerType.POWER_LAYER, name, layers, layer_attr)


def scaling_layer(
    input: LayerOutput, weight: LayerOutput, name: str | None = None, layer_attr: ExtraLayerAttribute | None = None
) -> LayerOutput:
    """Returns each row times its row of `weight`, which is one wide."""
    layers = [a_layer(weight, "scaling_layer", "weight"), a_layer(input, "scaling_layer")]
    return _plain("scaling_layer", LayerType.SCALING_LAYER, name, layers, layer_attr)


def slope_intercept_layer(
    input: LayerOutput,
    name: str | None = None,
    slope: float = 1.0,
    intercept: float = 0.0,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Slope * input + intercept."""
    layers = [a_layer(input, "slope_intercept_layer")]
    kind = LayerType.SLOPE_INTERCEPT_LAYER
    return _plain("slope_intercept_layer", kind, name, layers, layer_attr, slope=slope, intercept=intercept)


def trans_layer(
    input: LayerOutput, name: str | None = None, layer_attr: ExtraLayerAttribute | None = None
) -> LayerOutput:
    """Returns the whole batch as a matrix, transposed."""
    return _plain("trans_layer", LayerType.TRANS_LAYER, name, [a_layer(input, "trans_layer")], layer_attr)


def resize_layer(
    input: LayerOutput, size: int, name: str | None = None, layer_attr: ExtraLayerAttribute | None = None
) -> LayerOutput:
    """Returns the numbers of the whole batch in rows of another width."""
    return _plain(
        "resize_layer", "resize", name, [a_layer(input, "resize_layer")], layer_attr, prefix="resize", size=size
    )


def cos_sim(
    a: LayerOutput,
    b: LayerOutput,
    scale: float = 1,
    size: int = 1,
    name: str | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns the cosine of the angle between rows, times `scale`.

    Args:
        a: a layer.
        b: a layer as wide, or `size` times as wide: then `a` is compared with each of its parts.
        scale: a factor.
        size: the width of its output.
        name: the layer's.
        layer_attr: `device` only.
    """
    layers = [a_layer(a, "cos_sim", "a"), a_layer(b, "cos_sim", "b")]
    if size == 1:
        return _plain("cos_sim", LayerType.COSINE_SIM, name, layers, layer_attr, cos_scale=scale)
    return _plain("cos_sim", LayerType.COSINE_SIM_VEC, name, layers, layer_attr, cos_scale=scale, size=size)


def conv_shift_layer(
    a: LayerOutput, b: LayerOutput, name: str | None = None, layer_attr: ExtraLayerAttribute | None = None
) -> LayerOutput:
    """Returns the circular convolution of rows of `a` with rows of `b`, which is an odd number wide."""
    layers = [a_layer(a, "conv_shift_layer", "a"), a_layer(b, "conv_shift_layer", "b")]
    return _plain("conv_shift_layer", LayerType.CONV_SHIFT_LAYER, name, layers, layer_attr)


def linear_comb_layer(
    weights: LayerOutput,
    vectors: LayerOutput,
    size: int | None = None,
    name: str | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns the sum of vectors, each times its weight.

    Args:
        weights: m wide.
        vectors: m vectors after one another.
        size: the width of one vector, which the two decide.
        name: the layer's.
        layer_attr: `device` only.
    """
    function = "linear_comb_layer"
    layers = [a_layer(weights, function, "weights"), a_layer(vectors, function, "vectors")]
    width = layers[1].size // layers[0].size if size is None else size
    return _plain(function, LayerType.LINEAR_COMBINATION_LAYER, name, layers, layer_attr, size=width)


convex_comb_layer = linear_comb_layer


def out_prod_layer(
    input1: LayerOutput, input2: LayerOutput, name: str | None = None, layer_attr: ExtraLayerAttribute | None = None
) -> LayerOutput:
    """Returns every number of a row times every number of the other."""
    layers = [a_layer(input1, "out_prod_layer", "input1"), a_layer(input2, "out_prod_layer", "input2")]
    return _plain("out_prod_layer", LayerType.OUT_PROD_LAYER, name, layers, layer_attr)


def sum_to_one_norm_layer(
    input: LayerOutput, name: str | None = None, layer_attr: ExtraLayerAttribute | None = None
) -> LayerOutput:
    """Returns each row divided by its sum."""
    layers = [a_layer(input, "sum_to_one_norm_layer")]
    return _plain("sum_to_one_norm_layer", LayerType.SUM_TO_ONE_NORM_LAYER, name, layers, layer_attr)


def multiplex_layer(
    input: Sequence[LayerOutput], name: str | None = None, layer_attr: ExtraLayerAttribute | None = None
) -> LayerOutput:
    """Returns each row of one of several layers of one size; the first of `input` says which, counted from 0."""
    layers = some_layers(input, "multiplex_layer")
    return _plain("multiplex_layer", LayerType.MULTIPLEX_LAYER, name, layers, layer_attr)


def maxid_layer(
    input: LayerOutput, name: str | None = None, layer_attr: ExtraLayerAttribute | None = None
) -> LayerOutput:
    """Returns the place of the largest number of each row."""
    return _plain(
        "maxid_layer", LayerType.MAXID_LAYER, name, [a_layer(input, "maxid_layer")], layer_attr, prefix="maxid"
    )


def sampling_id_layer(
    input: LayerOutput, name: str | None = None, layer_attr: ExtraLayerAttribute | None = None
) -> LayerOutput:
    """Returns an id drawn by the probabilities of each row."""
    layers = [a_layer(input, "sampling_id_layer")]
    return _plain("sampling_id_layer", LayerType.SAMPLING_ID_LAYER, name, layers, layer_attr)


def eos_layer(
    input: LayerOutput, eos_id: int, name: str | None = None, layer_attr: ExtraLayerAttribute | None = None
) -> LayerOutput:
    """1 where the id is the one that ends a sequence, else 0."""
    layers = [a_layer(input, "eos_layer")]
    return _plain("eos_layer", LayerType.EOSID_LAYER, name, layers, layer_attr, eos_id=eos_id)


def dropout_layer(input: LayerOutput, dropout_rate: float, name: str | None = None) -> LayerOutput:
    """Returns the layer with a share of its numbers dropped in training."""
    layer = a_layer(input, "dropout_layer")
    return define(
        "dropout_layer",
        LayerType.ADDTO_LAYER,
        named(name, "dropout"),
        [layer.name],
        [layer],
        depth=layer.num_filters,
        layer_attr=ExtraLayerAttribute(drop_rate=dropout_rate),
        supports=(DROPOUT, ERROR_CLIPPING),
        bias=False,
    )


def _plain(
    function: str,
    layer_type: str,
    name: str | None,
    layers: Sequence[LayerOutput],
    layer_attr: ExtraLayerAttribute | None,
    prefix: str | None = None,
    **arguments: Any,
) -> LayerOutput:
    own = named(name, prefix or function)
    return define(function, layer_type, own, names_of(layers), layers, layer_attr=layer_attr, **arguments)
