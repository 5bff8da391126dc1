"""Costs of a row or of a step: what the training makes small. On the driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from keraunos.compat.paddle.language_state import current
from keraunos.compat.paddle.trainer_config_helpers.activations import SoftmaxActivation
from keraunos.compat.paddle.trainer_config_helpers.attrs import ExtraLayerAttribute
from keraunos.compat.paddle.trainer_config_helpers.defining import define, named, names_of
from keraunos.compat.paddle.trainer_config_helpers.evaluators import classification_error_evaluator
from keraunos.compat.paddle.trainer_config_helpers.layer_output import LayerOutput, LayerType, a_layer
from keraunos.errors import ModelError

__all__ = [
    "classification_cost",
    "cross_entropy",
    "cross_entropy_with_selfnorm",
    "huber_cost",
    "lambda_cost",
    "mse_cost",
    "multi_binary_label_cross_entropy",
    "rank_cost",
    "regression_cost",
    "smooth_l1_cost",
    "soft_binary_class_cross_entropy",
    "sum_cost",
]


def mse_cost(
    input: LayerOutput,
    label: LayerOutput,
    weight: LayerOutput | None = None,
    name: str | None = None,
    coeff: float = 1.0,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns the sum of the squared differences of a row.

    Args:
        input: the prediction.
        label: the truth, as wide.
        weight: of each row, one wide.
        name: the layer's.
        coeff: a factor on the gradient.
        layer_attr: `device` only.
    """
    return _cost("mse_cost", "square_error", name, [input, label, weight], layer_attr, coeff)


regression_cost = mse_cost


def classification_cost(
    input: LayerOutput,
    label: LayerOutput,
    weight: LayerOutput | None = None,
    name: str | None = None,
    evaluator: Callable[..., None] | Sequence[Callable[..., None]] = classification_error_evaluator,
    layer_attr: ExtraLayerAttribute | None = None,
    coeff: float = 1.0,
    top_k: int | None = None,
) -> LayerOutput:
    """Cross entropy of a softmax with a class, and the share of wrong answers measured beside it.

    Args:
        input: a layer that ends with a softmax.
        label: the class, a data layer.
        weight: of each row, one wide.
        name: the layer's.
        evaluator: what is measured: one of this package's evaluators for classes, or several.
        layer_attr: `device` only.
        coeff: a factor on the gradient.
        top_k: an answer is right if the class is among the k first.
    """
    layer, truth = a_layer(input, "classification_cost"), a_layer(label, "classification_cost", "label")
    if not isinstance(layer.activation, SoftmaxActivation):
        raise ModelError(
            "`input` of `classification_cost` must end with a softmax. "
            f"Received: {layer!r} with {layer.activation!r}. Give that layer act=SoftmaxActivation()."
        )
    if truth.layer_type != LayerType.DATA:
        raise ModelError(f"`label` of `classification_cost` must be a data layer. Received: {truth!r}.")
    made = _cost("cost", LayerType.CROSS_ENTROPY, name, [layer, truth, weight], layer_attr, coeff)
    for each in evaluator if isinstance(evaluator, Sequence) else [evaluator]:
        if not getattr(each, "for_classification", False):
            raise ModelError(
                "`evaluator` of `classification_cost` must be one of the evaluators for classes, such as "
                f"classification_error_evaluator. Received: {each!r}."
            )
        chosen = {} if top_k is None else {"top_k": top_k}
        # Paddle calls every such evaluator by its function's name; a second cost needs another.
        taken = each.__name__ in current("classification_cost").evaluators
        name_of_it = named(None if taken else each.__name__, each.__name__)
        each(name=name_of_it, input=layer, label=truth, weight=weight, **chosen)
    return made


def cross_entropy(
    input: LayerOutput,
    label: LayerOutput,
    name: str | None = None,
    coeff: float = 1.0,
    weight: LayerOutput | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Cross entropy of probabilities with a class.

    Args:
        input: probabilities, the output of a softmax.
        label: the class.
        name: the layer's.
        coeff: a factor on the gradient.
        weight: of each row, one wide.
        layer_attr: `device` only.
    """
    return _cost("cross_entropy", LayerType.CROSS_ENTROPY, name, [input, label, weight], layer_attr, coeff)


def cross_entropy_with_selfnorm(
    input: LayerOutput,
    label: LayerOutput,
    name: str | None = None,
    coeff: float = 1.0,
    softmax_selfnorm_alpha: float = 0.1,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Cross entropy of positive numbers with a class, with a pull of their sum towards 1.

    Args:
        input: positive numbers, the output of an exponential.
        label: the class.
        name: the layer's.
        coeff: a factor on the gradient.
        softmax_selfnorm_alpha: how strong the pull is.
        layer_attr: `device` only.
    """
    function, kind = "cross_entropy_with_selfnorm", LayerType.CROSS_ENTROPY_WITH_SELFNORM
    own = {"softmax_selfnorm_alpha": softmax_selfnorm_alpha}
    return _cost(function, kind, name, [input, label], layer_attr, coeff, **own)


def soft_binary_class_cross_entropy(
    input: LayerOutput,
    label: LayerOutput,
    name: str | None = None,
    coeff: float = 1.0,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Cross entropy of probabilities with probabilities, column by column, summed."""
    function, kind = "soft_binary_class_cross_entropy", LayerType.SOFT_BIN_CLASS_CROSS_ENTROPY
    return _cost(function, kind, name, [input, label], layer_attr, coeff)


def multi_binary_label_cross_entropy(
    input: LayerOutput,
    label: LayerOutput,
    name: str | None = None,
    coeff: float = 1.0,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Cross entropy of probabilities with any number of classes at once, summed."""
    function, kind = "multi_binary_label_cross_entropy", LayerType.MULTI_BIN_LABEL_CROSS_ENTROPY
    return _cost(function, kind, name, [input, label], layer_attr, coeff)


def huber_cost(
    input: LayerOutput,
    label: LayerOutput,
    name: str | None = None,
    coeff: float = 1.0,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns the Huber cost of two classes: `input` is one wide, `label` 0 or 1."""
    return _cost("huber_cost", LayerType.HUBER, name, [input, label], layer_attr, coeff)


def smooth_l1_cost(
    input: LayerOutput,
    label: LayerOutput,
    name: str | None = None,
    coeff: float = 1.0,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Squared differences up to 1, plain ones beyond, summed."""
    return _cost("smooth_l1_cost", "smooth_l1", name, [input, label], layer_attr, coeff)


def sum_cost(input: LayerOutput, name: str | None = None, layer_attr: ExtraLayerAttribute | None = None) -> LayerOutput:
    """Returns a cost layer whose cost is the sum of a row."""
    return _cost("sum_cost", LayerType.SUM_COST, name, [input], layer_attr)


def rank_cost(
    left: LayerOutput,
    right: LayerOutput,
    label: LayerOutput,
    weight: LayerOutput | None = None,
    name: str | None = None,
    coeff: float = 1.0,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """How wrong two scores order a pair.

    Args:
        left: one score, one wide.
        right: the other, one wide.
        label: 1 if the left one belongs first, 0 if the right one.
        weight: of each row, one wide.
        name: the layer's.
        coeff: a factor on the gradient.
        layer_attr: `device` only.
    """
    return _cost("rank_cost", LayerType.RANK_COST, name, [left, right, label, weight], layer_attr, coeff)


def lambda_cost(
    input: LayerOutput,
    score: LayerOutput,
    name: str | None = None,
    NDCG_num: int = 5,
    max_sort_size: int = -1,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """LambdaRank: how wrong scores order the lists.

    Args:
        input: the scores, sequences one wide: a list each.
        score: the truth, as long.
        name: the layer's.
        NDCG_num: how many places of a list count.
        max_sort_size: how many positions the gradient considers; -1 for all.
        layer_attr: `device` only.
    """
    own = {"NDCG_num": NDCG_num, "max_sort_size": max_sort_size}
    return _cost("lambda_cost", LayerType.LAMBDA_COST, name, [input, score], layer_attr, **own)


def _cost(
    function: str,
    layer_type: str,
    name: str | None,
    inputs: Sequence[LayerOutput | None],
    layer_attr: ExtraLayerAttribute | None,
    coeff: float | None = None,
    **arguments: Any,
) -> LayerOutput:
    layers = [a_layer(layer, function) for at, layer in enumerate(inputs) if layer is not None or at < 2]
    if coeff is not None:
        arguments["coeff"] = coeff
    made = named(name, function)
    return define(function, layer_type, made, names_of(layers), layers, layer_attr=layer_attr, **arguments)
