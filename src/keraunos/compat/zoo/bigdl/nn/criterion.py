"""BigDL's criteria, of which a validation method's `Loss` uses `rows`. Runs on the driver and on executors.

A criterion here is a number for each row; `rows` counts classes from 0, as TensorFlow counts them. `forward` and
`backward`, which belong to BigDL's own modules, count them from 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from keraunos.compat.zoo.bigdl.optim.arguments import float_type
from keraunos.errors import DataError, JobError

Array = npt.NDArray[Any]


class Criterion(ABC):
    """How far an output is from its label."""

    def __init__(self, size_average: bool = True, bigdl_type: str = "float") -> None:
        float_type(bigdl_type)
        if not size_average:
            raise JobError("`size_average` must be True: a validation's loss is a mean over rows. Received: False.")

    def forward(self, input: Any, target: Any) -> float:  # noqa: A002 - BigDL's name
        """Returns the mean over rows; classes are counted from 1."""
        from keraunos.compat.zoo.bigdl.nn.criterion_losses import mean_and_gradient

        return mean_and_gradient(self, input, target)[0]

    def backward(self, input: Any, target: Any) -> Array:  # noqa: A002 - BigDL's name
        """Returns the gradient of the mean by the outputs."""
        from keraunos.compat.zoo.bigdl.nn.criterion_losses import mean_and_gradient

        return mean_and_gradient(self, input, target)[1]

    @abstractmethod
    def rows(self, output: Array, label: Array) -> npt.NDArray[np.float64]:
        """Returns the loss of each row."""


class ClassNLLCriterion(Criterion):
    """Minus the log-probability of the row's class; of probabilities with `logProbAsInput=False`."""

    def __init__(
        self,
        weights: Any = None,
        size_average: bool = True,
        logProbAsInput: bool = True,
        bigdl_type: str = "float",
    ) -> None:
        super().__init__(size_average, bigdl_type)
        if weights is not None:
            raise JobError("`weights` must be None. Received: an array. Weigh the rows in the graph's own loss.")
        self.log_prob_as_input = bool(logProbAsInput)

    def rows(self, output: Array, label: Array) -> npt.NDArray[np.float64]:
        """Returns the loss of each row."""
        picked = of_class(output, label)
        return -picked if self.log_prob_as_input else -np.log(np.maximum(picked, 1e-8))


class CrossEntropyCriterion(Criterion):
    """The same for outputs that are logits."""

    def __init__(self, weights: Any = None, size_average: bool = True, bigdl_type: str = "float") -> None:
        super().__init__(size_average, bigdl_type)
        if weights is not None:
            raise JobError("`weights` must be None. Received: an array. Weigh the rows in the graph's own loss.")

    def rows(self, output: Array, label: Array) -> npt.NDArray[np.float64]:
        """Returns the loss of each row."""
        wide = np.asarray(output, dtype=np.float64)
        top = wide.max(axis=-1, keepdims=True)
        normal = top + np.log(np.exp(wide - top).sum(axis=-1, keepdims=True))
        return -of_class(wide - normal, label)


class MSECriterion(Criterion):
    """The mean square of the difference."""

    def __init__(self, bigdl_type: Any = "float") -> None:
        # BigDL used the argument for nothing; its own programs hand over anything.
        super().__init__()

    def rows(self, output: Array, label: Array) -> npt.NDArray[np.float64]:
        """Returns the loss of each row."""
        return _row_means(difference(output, label) ** 2)


class AbsCriterion(Criterion):
    """The mean absolute difference."""

    def rows(self, output: Array, label: Array) -> npt.NDArray[np.float64]:
        """Returns the loss of each row."""
        return _row_means(np.abs(difference(output, label)))


class BCECriterion(Criterion):
    """The binary cross-entropy of probabilities."""

    def __init__(self, weights: Any = None, size_average: bool = True, bigdl_type: str = "float") -> None:
        super().__init__(size_average, bigdl_type)
        if weights is not None:
            raise JobError("`weights` must be None. Received: an array. Weigh the rows in the graph's own loss.")

    def rows(self, output: Array, label: Array) -> npt.NDArray[np.float64]:
        """Returns the loss of each row."""
        truth = np.asarray(label, dtype=np.float64)
        chance = truth - difference(label, output).reshape(truth.shape)
        return _row_means(-(truth * np.log(chance + 1e-12) + (1 - truth) * np.log(1 - chance + 1e-12)))


def of_class(output: Array, label: Array) -> npt.NDArray[np.float64]:
    """Returns each row's output for the class that the label names."""
    wide = np.asarray(output, dtype=np.float64)
    if wide.ndim != 2:
        raise DataError(f"An output must have one column a class. Received: an array of the shape {wide.shape}.")
    classes = class_of(label, wide)
    if classes.size and not (classes.min() >= 0 and classes.max() < wide.shape[1]):
        raise DataError(
            f"A label must be a class from 0 to {wide.shape[1] - 1}. Received: classes from {classes.min()} to "
            f"{classes.max()}."
        )
    return np.asarray(wide[np.arange(len(wide)), classes])


def class_of(label: Array, output: Array) -> npt.NDArray[np.int64]:
    """The classes that labels name: as a number, in one column, or as one of the output's columns being the largest."""
    found = np.asarray(label)
    if found.ndim == 2 and found.shape[1] > 1 and found.shape == output.shape:
        return np.asarray(found.argmax(axis=1), dtype=np.int64)
    flat = found.reshape(-1)
    if flat.size != len(output):
        raise DataError(
            "Labels must be one class a row, or of the output's shape. Expected: "
            f"{len(output)} rows. Received: an array of the shape {found.shape}."
        )
    return np.asarray(np.rint(flat), dtype=np.int64)


def difference(output: Array, label: Array) -> npt.NDArray[np.float64]:
    """Returns the output minus the label, element by element."""
    left, right = np.asarray(output, dtype=np.float64), np.asarray(label, dtype=np.float64)
    if left.size != right.size or len(left) != len(right):
        raise DataError(f"Outputs and labels must have one shape. Received: {left.shape} and {right.shape}.")
    return left.reshape(len(left), -1) - right.reshape(len(left), -1)


def _row_means(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    flat = values.reshape(len(values), -1)
    return np.asarray(flat.mean(axis=1) if flat.shape[1] else np.zeros(len(flat)))


_ELSEWHERE = frozenset(
    [
        "CategoricalCrossEntropy",
        "ClassSimplexCriterion",
        "CosineDistanceCriterion",
        "CosineEmbeddingCriterion",
        "CosineProximityCriterion",
        "DiceCoefficientCriterion",
        "DistKLDivCriterion",
        "DotProductCriterion",
        "GaussianCriterion",
        "HingeEmbeddingCriterion",
        "KLDCriterion",
        "KullbackLeiblerDivergenceCriterion",
        "L1Cost",
        "L1HingeEmbeddingCriterion",
        "MarginCriterion",
        "MarginRankingCriterion",
        "MeanAbsolutePercentageCriterion",
        "MeanSquaredLogarithmicCriterion",
        "MultiCriterion",
        "MultiLabelMarginCriterion",
        "MultiLabelSoftMarginCriterion",
        "MultiMarginCriterion",
        "PGCriterion",
        "ParallelCriterion",
        "PoissonCriterion",
        "SmoothL1Criterion",
        "SmoothL1CriterionWithWeights",
        "SoftMarginCriterion",
        "SoftmaxWithCriterion",
        "TimeDistributedCriterion",
        "TimeDistributedMaskCriterion",
        "TransformerCriterion",
    ]
)


def _refused(name: str) -> Callable[..., NoReturn]:
    def refuse(*_given: object, **_named: object) -> NoReturn:
        raise JobError(
            f"The criterion {name!r} is not among bigdl.nn.criterion here. Received: a call of it. A Sequential of "
            "zoo.pipeline.api.keras.models takes BigDL's modules in a KerasLayerWrapper, and any loss of Keras."
        )

    return refuse


# A star import finds them; creating one raises an error.
globals().update({name: _refused(name) for name in _ELSEWHERE})
