"""BigDL's validation methods, on arrays of outputs and labels. Runs on the driver and on executors.

A method returns the *state* of a batch, an array; states of any batches, from any worker, add up to the state of all
rows, from which the result is computed once. So it is the same however the rows are cut. Classes count from 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.compat.zoo.bigdl.nn.criterion import (
    AbsCriterion,
    ClassNLLCriterion,
    Criterion,
    class_of,
)
from keraunos.compat.zoo.bigdl.optim.arguments import float_type, whole
from keraunos.errors import DataError, JobError, one_of

Array = npt.NDArray[Any]
State = npt.NDArray[np.float64]


class ValidationMethod(ABC):
    """A measure of outputs, given labels."""

    def __init__(self, bigdl_type: str = "float") -> None:
        float_type(bigdl_type)

    # Whether rows must come in the order of the records, and in one piece.
    in_order = False

    @property
    def name(self) -> str:
        """The name in a program."""
        return type(self).__name__

    @property
    def tag(self) -> str:
        """The name of its results in summaries and dicts: BigDL's name, which may differ."""
        return self.name

    @abstractmethod
    def state(self, output: Array, label: Array) -> State:
        """Returns the state of a batch."""

    def merge(self, states: Iterable[State]) -> State:
        """Returns the state of all the batches together."""
        return np.asarray(sum(states, start=np.zeros(1)), dtype=np.float64)

    def result(self, state: State) -> float:
        """Returns the number; not a number if there were no rows."""
        return float(state[0] / state[1]) if state.size > 1 and state[1] else float("nan")

    def __repr__(self) -> str:
        arguments = ", ".join(f"{key}={value!r}" for key, value in vars(self).items())
        return f"{type(self).__name__}({arguments})"


class Top1Accuracy(ValidationMethod):
    """The share of rows whose class is the one with the largest output; of one output, 0.5 divides two classes."""

    def state(self, output: Array, label: Array) -> State:
        """Returns the state of a batch: right answers, and rows."""
        scores = _scores(output)
        given = (scores[:, 0] >= 0.5).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return np.array([np.count_nonzero(given == class_of(label, scores)), len(scores)], dtype=np.float64)


class Accuracy(Top1Accuracy):
    """The same under Analytics Zoo's name."""

    @property
    def tag(self) -> str:
        """That of BigDL's accuracy."""
        return "Top1Accuracy"

    def __init__(self, zero_based_label: bool = True, bigdl_type: str = "float") -> None:
        super().__init__(bigdl_type)
        if not zero_based_label:
            raise JobError("`zero_based_label` must be True. Received: False. Subtract 1 from the labels.")


class Top5Accuracy(ValidationMethod):
    """The share of rows whose class is among the five with the largest outputs."""

    def state(self, output: Array, label: Array) -> State:
        """Returns the state of a batch: right answers, and rows."""
        scores = _scores(output)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :5]
        right = (best == class_of(label, scores)[:, np.newaxis]).any(axis=1)
        return np.array([np.count_nonzero(right), len(scores)], dtype=np.float64)


class TreeNNAccuracy(Top1Accuracy):
    """The accuracy at the root, the first node, of outputs that have a row of nodes each."""

    @property
    def tag(self) -> str:
        """BigDL's name, which has parentheses."""
        return "TreeNNAccuracy()"

    def state(self, output: Array, label: Array) -> State:
        """Returns the state of a batch: right answers, and rows."""
        nodes, labels = np.asarray(output), np.asarray(label)
        if nodes.ndim != 3:
            raise DataError(
                "TreeNNAccuracy must be given outputs of rows, nodes and classes. Received: an array of the shape "
                f"{nodes.shape}. Use Top1Accuracy."
            )
        return super().state(nodes[:, 0, :], labels.reshape(len(nodes), -1)[:, 0])


class Loss(ValidationMethod):
    """The mean of a criterion over the rows; of `ClassNLLCriterion` by default, which takes log-probabilities.

    For a graph with its own loss, that loss is the default.
    """

    def __init__(self, cri: Criterion | None = None, bigdl_type: str = "float") -> None:
        super().__init__(bigdl_type)
        self.by_default = cri is None
        self.criterion = ClassNLLCriterion() if cri is None else cri
        if not isinstance(self.criterion, Criterion):
            raise JobError(f"`cri` must be one of bigdl.nn.criterion's criteria. Received: {cri!r}.")

    def state(self, output: Array, label: Array) -> State:
        """Returns the state of a batch: the sum of the losses, and rows."""
        losses = self.criterion.rows(np.asarray(output), np.asarray(label))
        return np.array([losses.sum(), losses.size], dtype=np.float64)


class MAE(ValidationMethod):
    """The mean absolute difference."""

    def state(self, output: Array, label: Array) -> State:
        """Returns the state of a batch: the sum of the rows' means, and rows."""
        means = AbsCriterion().rows(np.asarray(output), np.asarray(label))
        return np.array([means.sum(), means.size], dtype=np.float64)


class AUC(ValidationMethod):
    """The area under the ROC curve of a probability, from `threshold_num` thresholds between 0 and 1.

    Of several outputs it is the mean of the areas, each output having its own label.
    """

    def __init__(self, threshold_num: int = 200, bigdl_type: str = "float") -> None:
        super().__init__(bigdl_type)
        self.threshold_num = whole("threshold_num", threshold_num, least=2)

    @property
    def tag(self) -> str:
        """BigDL's name for the area."""
        return "AucScore"

    def state(self, output: Array, label: Array) -> State:
        """Returns the state of a batch: how many rows of each class lie between two thresholds, output by output."""
        scores, truth = np.asarray(output, dtype=np.float32), np.asarray(label)
        columns = scores.shape[1] if scores.ndim == 2 else 1
        if scores.size != truth.size or scores.ndim > 2 or (columns > 1 and scores.shape != truth.shape):
            raise DataError(
                "AUC must be given one probability and one label a row, or as many of both. Received: arrays of the "
                f"shapes {np.shape(output)} and {np.shape(label)}."
            )
        if not np.isin(truth, (0, 1)).all():
            raise DataError("AUC must be given labels of 0 and 1. Received: others.")
        if scores.size and not (scores.min() >= 0 and scores.max() <= 1):
            raise DataError(
                f"AUC must be given probabilities. Received: outputs from {scores.min()} to {scores.max()}. Apply a "
                "sigmoid to the graph's output."
            )
        scores, truth = scores.reshape(-1, columns), truth.reshape(-1, columns)
        places = np.searchsorted(self.thresholds(), scores, side="right") - 1
        counts = np.zeros((columns, 2, self.threshold_num))
        np.add.at(counts, (np.arange(columns)[np.newaxis], 1 - truth.astype(np.int64), places), 1)
        return counts.reshape(-1)

    def thresholds(self) -> npt.NDArray[np.float32]:
        """BigDL's: between the two ends it leaves out the first of even ones, and has 1."""
        inner = np.arange(2, self.threshold_num, dtype=np.float32) / np.float32(self.threshold_num - 1)
        return np.concatenate([[-1e-7], inner, [1 + 1e-7]]).astype(np.float32)

    def result(self, state: State) -> float:
        """Returns the area, or the mean of areas; not a number unless there were rows of both classes."""
        if state.size % (2 * self.threshold_num) or not state.size:
            return float("nan")
        counts = state.reshape(-1, 2, self.threshold_num)[:, :, ::-1]
        totals = counts.sum(axis=2)
        if not totals.all():
            return float("nan")
        shares = np.cumsum(counts, axis=2) / totals[:, :, np.newaxis]
        return float(np.mean([np.trapezoid(found, mistaken) for found, mistaken in shares]))


class _Ranking(ValidationMethod):
    """Where the one right item stands among `neg_num` others.

    Outputs have a row of `neg_num` + 1 scores for each question, or one score per row, the questions behind each other;
    the label of the right item is 1.
    """

    def __init__(self, k: int = 10, neg_num: int = 100, bigdl_type: str = "float") -> None:
        super().__init__(bigdl_type)
        self.k = whole("k", k)
        self.neg_num = whole("neg_num", neg_num)

    # A question's rows lie behind each other.
    in_order = True

    @abstractmethod
    def gain(self, ranks: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Returns the gains of ranks, counted from 1."""

    def state(self, output: Array, label: Array) -> State:
        """Returns the state of a batch: the gains, and questions."""
        length = self.neg_num + 1
        scores, truth = np.asarray(output, dtype=np.float64), np.asarray(label)
        if scores.size % length or scores.size != truth.size:
            raise DataError(
                f"{self.name} must be given whole questions of `neg_num` + 1 = {length} scores, and a label each. "
                f"Received: arrays of the shapes {scores.shape} and {truth.shape}."
            )
        scores, right = scores.reshape(-1, length), truth.reshape(-1, length) == 1
        if not (right.sum(axis=1) == 1).all():
            raise DataError(f"{self.name} must be given one right item a question. Received: another number of them.")
        mine = scores[right][:, np.newaxis]
        ranks = 1 + (scores > mine).sum(axis=1)
        return np.array([self.gain(ranks).sum(), len(ranks)], dtype=np.float64)


class HitRatio(_Ranking):
    """The share of questions whose right item is among the `k` best."""

    @property
    def tag(self) -> str:
        """BigDL's name, with the actual number; BigDL always uses 10."""
        return f"HitRate@{self.k}"

    def gain(self, ranks: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """1 for a hit."""
        return np.asarray(ranks <= self.k, dtype=np.float64)


class NDCG(_Ranking):
    """The same, a hit at rank r counting `log 2 / log(r + 1)`."""

    def gain(self, ranks: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Returns the gain of a hit."""
        return np.asarray(np.where(ranks <= self.k, np.log(2) / np.log(ranks + 1), 0.0))


class MeanAveragePrecision:
    """Refused when it is made: it is no sum over rows."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        raise JobError(
            f"`{type(self).__name__}` is not there: a mean average precision needs all scores at once, and is no sum "
            f"over rows. Received: {arguments!r}, {named!r}. Use AUC or Top1Accuracy, or predict and compute it from "
            "the predictions."
        )


class MeanAveragePrecisionObjectDetection(MeanAveragePrecision):
    """Refused when it is made: it is no sum over rows."""


_NAMES: Mapping[str, type[ValidationMethod]] = {
    "acc": Accuracy,
    "accuracy": Accuracy,
    "top1accuracy": Top1Accuracy,
    "top5acc": Top5Accuracy,
    "top5accuracy": Top5Accuracy,
    "treennaccuracy": TreeNNAccuracy,
    "mae": MAE,
    "auc": AUC,
    "loss": Loss,
}


def validation_method(value: Any) -> ValidationMethod:
    """Returns the given method, or the one of a name such as `"acc"`, `"mae"` or `"Top1Accuracy"`."""
    if isinstance(value, ValidationMethod):
        return value
    if isinstance(value, str) and value.lower() in _NAMES:
        return _NAMES[value.lower()]()
    raise JobError(one_of("val_method", value, _NAMES) + " Or give one of bigdl.optim.optimizer's objects.")


def _scores(output: Array) -> Array:
    """Outputs as one column per class."""
    scores = np.asarray(output)
    if scores.ndim == 1:
        scores = scores[:, np.newaxis]
    if scores.ndim != 2:
        raise DataError(
            "An accuracy must be given outputs of rows and classes. Received: an array of the shape "
            f"{np.shape(output)}."
        )
    return scores
