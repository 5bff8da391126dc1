"""Costs, each one number per row. Runs on the driver."""

from __future__ import annotations

from typing import Any

from keraunos.compat.paddle.layer_types.arithmetic import one_wide
from keraunos.compat.paddle.layer_types.draft import Draft
from keraunos.compat.paddle.layer_types.layer_type import layer_type

_COST: dict[str, Any] = {"is_cost": True, "positional": ("name", "inputs", "coeff")}
_LABELLED: dict[str, Any] = {"inputs": (2, 3), **_COST}


@layer_type("multi-class-cross-entropy", "MultiClassCrossEntropy", **_LABELLED)
def multi_class_cross_entropy(draft: Draft) -> None:
    """The shortfall of the label's class; a third input weighs the rows."""
    _weight(draft, 2)
    draft.set_size(1)


@layer_type(
    "multi_class_cross_entropy_with_selfnorm",
    "MultiClassCrossEntropySelfNormCostLayer",
    attributes={"softmax_selfnorm_alpha": 0.1},
    inputs=(2, 2),
    is_cost=True,
    positional=("name", "inputs", "softmax_selfnorm_alpha"),
)
def multi_class_cross_entropy_with_selfnorm(draft: Draft) -> None:
    """The same for outputs that are not normalized, which are drawn towards it."""
    draft.set_size(1)


@layer_type("square_error", "SumOfSquaresCostLayer", **_LABELLED)
def square_error(draft: Draft) -> None:
    """The sum of squared differences."""
    _same_width(draft)


@layer_type("smooth_l1", "SmoothL1Cost", **_LABELLED)
def smooth_l1(draft: Draft) -> None:
    """Squares of small differences; large ones unchanged."""
    _same_width(draft)


@layer_type("soft_binary_class_cross_entropy", "SoftBinaryClassCrossEntropy", **_LABELLED)
def soft_binary_class_cross_entropy(draft: Draft) -> None:
    """Cross entropy of each column with a probability."""
    _same_width(draft)


@layer_type("multi_binary_label_cross_entropy", "MultiBinaryLabelCrossEntropy", **_LABELLED)
def multi_binary_label_cross_entropy(draft: Draft) -> None:
    """Cross entropy of each column with a yes or no."""
    _same_width(draft)


@layer_type("huber", "HuberTwoClass", **_LABELLED)
def huber(draft: Draft) -> None:
    """Two classes by the sign of one number."""
    one_wide(draft, 0)
    _weight(draft, 2)
    draft.set_size(1)


@layer_type("rank-cost", "RankingCost", inputs=(3, 4), **_COST)
def rank_cost(draft: Draft) -> None:
    """Which of two scores should be the higher."""
    for at in range(2):
        one_wide(draft, at)
    _weight(draft, 3)
    draft.set_size(1)


@layer_type("sum_cost", "SumCost", inputs=(1, 1), **_COST)
def sum_cost(draft: Draft) -> None:
    """The sum of its input."""
    draft.set_size(1)


@layer_type(
    "lambda_cost",
    "LambdaCost",
    attributes={"NDCG_num": 5, "max_sort_size": -1},
    inputs=(2, 2),
    is_cost=True,
    positional=("name", "inputs", "NDCG_num", "max_sort_size"),
)
def lambda_cost(draft: Draft) -> None:
    """Gradients by what the exchange of two documents would change in a ranking."""
    for at in range(2):
        one_wide(draft, at)
    best = draft.count("NDCG_num", least=1)
    sort = draft.attributes["max_sort_size"]
    draft.check(
        sort == -1 or sort >= best,
        "`max_sort_size` must be -1 or at least `NDCG_num`",
        f"max_sort_size={sort}, NDCG_num={best}",
    )
    draft.set_size(1)


@layer_type("auc-validation", "AucValidation", **_LABELLED)
def auc_validation(draft: Draft) -> None:
    """The area under the curve, measured as the rows pass."""
    draft.set_size(1)


@layer_type("pnpair-validation", "PnpairValidation", inputs=(3, 4), **_COST)
def pnpair_validation(draft: Draft) -> None:
    """Pairs in the right and in the wrong order, counted as the rows pass."""
    draft.set_size(1)


def _same_width(draft: Draft) -> None:
    first, second = draft.feeding[0], draft.feeding[1]
    draft.check(
        first.size == second.size,
        "output and label must have the same size",
        f"{first.name!r} of size {first.size}, {second.name!r} of size {second.size}",
    )
    _weight(draft, 2)
    draft.set_size(1)


def _weight(draft: Draft, at: int) -> None:
    if len(draft.feeding) > at:
        one_wide(draft, at)
