"""`zoo.pipeline.api.keras.metrics`: BigDL's validation methods under Analytics Zoo's names. Runs on the driver."""

from __future__ import annotations

from keraunos.compat.zoo.bigdl.optim.validation import AUC, MAE, Accuracy, Loss, Top1Accuracy, Top5Accuracy

__all__ = ["AUC", "MAE", "Accuracy", "Loss", "Top1Accuracy", "Top5Accuracy"]
