"""Fitted models without a training, for tests of what comes after it."""

from __future__ import annotations

from keraunos.launch.training_result import TrainingResult
from keraunos.ml.preparation import prepare
from keraunos.telemetry.history import History


def fitted_of(estimator, schema):
    """The fitted model that `estimator.fit` would give if the training changed nothing."""
    prepared = prepare(estimator, schema, workers=1, first_row=lambda: None, check=estimator._check)
    history = History([{"loss": 0.5}, {"loss": 0.25}])
    return estimator._model_of(prepared, TrainingResult(lambda: prepared.job.model.archive, history))
