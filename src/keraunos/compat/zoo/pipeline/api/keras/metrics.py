"""`zoo.pipeline.api.keras.metrics`: validation methods under Analytics Zoo's names. Runs on driver and executors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from keraunos.compat.zoo.bigdl.nn.criterion import MSECriterion
from keraunos.compat.zoo.bigdl.optim.validation import AUC, MAE, Accuracy, Array, Loss, Top1Accuracy, Top5Accuracy

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


class MSE(MAE):
    """The mean square of the difference."""

    def state(self, output: Array, label: Array) -> npt.NDArray[np.float64]:
        """What a batch adds: the sum of the rows' means, and rows."""
        means = MSECriterion().rows(np.asarray(output), np.asarray(label))
        return np.array([means.sum(), means.size], dtype=np.float64)


class SparseCategoricalAccuracy(Top1Accuracy):
    """The share of rows whose class has the largest output; labels are classes."""


class CategoricalAccuracy(Top1Accuracy):
    """The same for labels that are one-hot."""


class BinaryAccuracy(Top1Accuracy):
    """The share of outputs on the label's side of 0.5."""
