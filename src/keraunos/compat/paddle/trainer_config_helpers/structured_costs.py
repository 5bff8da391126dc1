"""Costs with their own structure: crf, ctc, nce, hsigmoid. On the driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keraunos.compat.paddle import config_parser as raw
from keraunos.compat.paddle.trainer_config_helpers.activations import BaseActivation, SigmoidActivation
from keraunos.compat.paddle.trainer_config_helpers.attrs import ExtraLayerAttribute, ParameterAttribute
from keraunos.compat.paddle.trainer_config_helpers.defining import bias, define, named, parameter, parameters, weighted
from keraunos.compat.paddle.trainer_config_helpers.layer_output import (
    LayerOutput,
    LayerType,
    a_layer,
    an_activation,
    some_layers,
)
from keraunos.errors import ModelError

__all__ = ["crf_decoding_layer", "crf_layer", "ctc_layer", "hsigmoid", "nce_layer", "warp_ctc_layer"]

ParamAttrs = ParameterAttribute | Sequence[ParameterAttribute | None] | None


def crf_layer(
    input: LayerOutput,
    label: LayerOutput,
    size: int | None = None,
    weight: LayerOutput | None = None,
    param_attr: ParameterAttribute | None = None,
    name: str | None = None,
    coeff: float = 1.0,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns the cost of a sequence of classes under a linear chain.

    Args:
        input: a sequence of scores, one for each class.
        label: the classes, as long.
        size: how many classes, which `input` decides.
        weight: of each sequence, one wide.
        param_attr: of the scores between classes; `crf_decoding_layer` shares them by their name.
        name: the layer's.
        coeff: a factor on the gradient.
        layer_attr: `device` only.
    """
    layers = [a_layer(input, "crf_layer"), a_layer(label, "crf_layer", "label")]
    classes = layers[0].size if size is None else size
    if classes != layers[0].size or layers[1].size != classes:
        raise ModelError(
            "`input`, `label` and `size` of `crf_layer` must agree on how many classes there are. "
            f"Received: {layers[0]!r}, {layers[1]!r}, size={size!r}."
        )
    if weight is not None:
        layers.append(a_layer(weight, "crf_layer", "weight"))
    made = define(
        "crf_layer",
        LayerType.CRF_LAYER,
        named(name, "crf_layer"),
        [weighted(layers[0], parameter(param_attr)), *(raw.Input(layer.name) for layer in layers[1:])],
        layers,
        layer_attr=layer_attr,
        size=classes,
        coeff=coeff,
    )
    return _one_wide(made)


def crf_decoding_layer(
    input: LayerOutput,
    size: int,
    label: LayerOutput | None = None,
    param_attr: ParameterAttribute | None = None,
    name: str | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns the best sequence of classes under a linear chain; with `label`, 1 for each step that is wrong."""
    layers = [a_layer(input, "crf_decoding_layer")]
    if label is not None:
        layers.append(a_layer(label, "crf_decoding_layer", "label"))
    made = define(
        "crf_decoding_layer",
        LayerType.CRF_DECODING_LAYER,
        named(name, "crf_decoding_layer"),
        [weighted(layers[0], parameter(param_attr)), *(raw.Input(layer.name) for layer in layers[1:])],
        layers,
        layer_attr=layer_attr,
        size=size,
    )
    return _one_wide(made)


def ctc_layer(
    input: LayerOutput,
    label: LayerOutput,
    size: int | None = None,
    name: str | None = None,
    norm_by_times: bool = False,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns the cost of a sequence of classes whose places are unknown; the blank is the last class.

    Args:
        input: a sequence of probabilities, one more than classes.
        label: the classes.
        size: the number of classes and one, which `label` decides.
        name: the layer's.
        norm_by_times: whether the gradient is divided by the length.
        layer_attr: `device` only.
    """
    return _ctc("ctc_layer", LayerType.CTC_LAYER, input, label, size, name, layer_attr, norm_by_times=norm_by_times)


def warp_ctc_layer(
    input: LayerOutput,
    label: LayerOutput,
    size: int | None = None,
    name: str | None = None,
    blank: int = 0,
    norm_by_times: bool = False,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns the cost of a sequence of classes whose places are unknown, over scores before a softmax.

    Args:
        input: a sequence of scores, one more than classes.
        label: the classes.
        size: the number of classes and one, which `label` decides.
        name: the layer's.
        blank: the class that is none.
        norm_by_times: whether the gradient is divided by the length.
        layer_attr: `device` only.
    """
    own = {"blank": blank, "norm_by_times": norm_by_times}
    return _ctc("warp_ctc_layer", LayerType.WARP_CTC_LAYER, input, label, size, name, layer_attr, **own)


def nce_layer(
    input: LayerOutput | Sequence[LayerOutput],
    label: LayerOutput,
    num_classes: int | None = None,
    act: BaseActivation | None = None,
    param_attr: ParamAttrs = None,
    weight: LayerOutput | None = None,
    num_neg_samples: int = 10,
    neg_distribution: Sequence[float] | None = None,
    name: str | None = None,
    bias_attr: ParameterAttribute | bool | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Noise-contrastive estimation: the class against a few that are drawn.

    Args:
        input: one layer, or several.
        label: the class.
        num_classes: how many there are, which `label` decides.
        act: sigmoid, which is the only one.
        param_attr: of the matrices.
        weight: of each row, one wide.
        num_neg_samples: how many are drawn.
        neg_distribution: how often each class is drawn; evenly by default.
        name: the layer's.
        bias_attr: a bias that starts at 0 by default; `False` for none.
        layer_attr: `device` only.
    """
    function = "nce_layer"
    layers, truth = some_layers(input, function), a_layer(label, function, "label")
    classes = truth.size if num_classes is None else num_classes
    attrs = parameters(param_attr, len(layers), function)
    others = [truth] if weight is None else [truth, a_layer(weight, function, "weight")]
    return define(
        function,
        LayerType.NCE_LAYER,
        named(name, function),
        [weighted(layer, attr) for layer, attr in zip(layers, attrs)] + [raw.Input(layer.name) for layer in others],
        [*layers, *others],
        activation=an_activation(act, SigmoidActivation(), function),
        layer_attr=layer_attr,
        num_classes=classes,
        num_neg_samples=num_neg_samples,
        neg_sampling_dist=None if neg_distribution is None else list(neg_distribution),
        bias=bias(bias_attr),
    )


def hsigmoid(
    input: LayerOutput | Sequence[LayerOutput],
    label: LayerOutput,
    num_classes: int | None = None,
    name: str | None = None,
    bias_attr: ParameterAttribute | bool | None = None,
    param_attr: ParamAttrs = None,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns the way to the class through a binary tree of sigmoids.

    Args:
        input: one layer, or several.
        label: the class.
        num_classes: how many there are, which `label` decides.
        name: the layer's.
        bias_attr: a bias that starts at 0 by default; `False` for none.
        param_attr: of the matrices.
        layer_attr: `device` only.
    """
    layers, truth = some_layers(input, "hsigmoid"), a_layer(label, "hsigmoid", "label")
    attrs = parameters(param_attr, len(layers), "hsigmoid")
    return define(
        "hsigmoid",
        LayerType.HSIGMOID,
        named(name, "hsigmoid"),
        [*(weighted(layer, attr) for layer, attr in zip(layers, attrs)), raw.Input(truth.name)],
        [*layers, truth],
        layer_attr=layer_attr,
        num_classes=truth.size if num_classes is None else num_classes,
        bias=bias(bias_attr),
    )


def _ctc(
    function: str,
    layer_type: str,
    input: LayerOutput,
    label: LayerOutput,
    size: int | None,
    name: str | None,
    layer_attr: ExtraLayerAttribute | None,
    **arguments: Any,
) -> LayerOutput:
    layers = [a_layer(input, function), a_layer(label, function, "label")]
    classes = layers[1].size + 1
    if size not in (None, classes):
        raise ModelError(
            f"`size` of `{function}` must be one more than the classes of `label`: {classes}. Received: {size!r}."
        )
    names = [layer.name for layer in layers]
    return define(
        function, layer_type, named(name, function), names, layers, layer_attr=layer_attr, size=classes, **arguments
    )


def _one_wide(made: LayerOutput) -> LayerOutput:
    """Returns the layer with size 1: the raw layer's size counts classes, but its output is one number."""
    made.size = 1
    return made
