"""`zoo.pipeline.api.keras.metrics`: validation methods under Analytics Zoo's names. Runs on driver and executors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.compat.zoo.bigdl.nn.criterion import MSECriterion
from keraunos.compat.zoo.bigdl.optim.validation import AUC, MAE, Accuracy, Array, Loss, Top1Accuracy
from keraunos.compat.zoo.bigdl.optim.validation import Top5Accuracy as _Top5Accuracy
from keraunos.compat.zoo.bigdl.util import common as _bigdl
from keraunos.errors import JobError

__all__ = [
    "AUC",
    "MAE",
    "MSE",
    "Accuracy",
    "BinaryAccuracy",
    "CategoricalAccuracy",
    "Loss",
    "SparseCategoricalAccuracy",
    "Top1Accuracy",
    "Top5Accuracy",
]
# Imported from BigDL; a star import of this module re-exported them.
__all__ += _bigdl.__all__


def __getattr__(name: str) -> Any:
    return _bigdl.passed_on("zoo.pipeline.api.keras.metrics", name)


class MSE(MAE):
    """The mean square of the difference."""

    def state(self, output: Array, label: Array) -> npt.NDArray[np.float64]:
        """Returns the state of a batch: the sum of the rows' means, and rows."""
        means = MSECriterion().rows(np.asarray(output), np.asarray(label))
        return np.array([means.sum(), means.size], dtype=np.float64)


class Top5Accuracy(_Top5Accuracy):
    """The share of rows whose class, counted from 0, is among the five with the largest outputs."""

    def __init__(self, zero_based_label: bool = True, bigdl_type: str = "float") -> None:
        super().__init__(bigdl_type)
        if not zero_based_label:
            raise JobError("`zero_based_label` must be True. Received: False. Subtract 1 from the labels.")


class SparseCategoricalAccuracy(Top1Accuracy):
    """The share of rows whose class has the largest output; labels are classes."""


class CategoricalAccuracy(Top1Accuracy):
    """The same for labels that are one-hot."""


class BinaryAccuracy(Top1Accuracy):
    """The share of outputs on the label's side of 0.5."""
