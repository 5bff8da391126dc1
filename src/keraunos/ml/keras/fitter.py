"""What the estimators of Keras models share. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keraunos.ml.fitter import Fitter
from keraunos.ml.keras.models import KerasModels
from keraunos.ml.keras.params import HasCallbacks, HasModel


class KerasFitter(HasModel, HasCallbacks, Fitter):
    """A compiled Keras model as a spark.ml Estimator."""

    live = KerasModels()

    def _given_callbacks(self) -> Sequence[Any]:
        callbacks: Sequence[Any] = self.getCallbacks()
        return callbacks

    def _unsaved(self) -> Mapping[str, Sequence[Any]]:
        return {"callbacks": self.getCallbacks(), **super()._unsaved()}
