"""Fitted models without a training, for tests of what comes after it."""

from __future__ import annotations

from keraunos.ml.model import Trained
from keraunos.ml.preparation import prepare
from keraunos.telemetry.history import History


def fitted_of(estimator, schema):
    """The fitted model that `estimator.fit` would give if the training changed nothing."""
    prepared = prepare(estimator, schema, workers=1, first_row=lambda: None, check=estimator._check)
    source = prepared.job.model
    head = estimator._head(prepared.model, prepared.signature)
    history = History([{"loss": 0.5}, {"loss": 0.25}])
    trained = Trained(source.archive, history, prepared.signature, source.backend, source.floatx, head)
    return estimator._copyValues(estimator._fitted(trained)._resetUid(estimator.uid))
