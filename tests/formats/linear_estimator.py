"""An estimator of the tests' own for their linear models: what a framework's estimator needs besides its format."""

from __future__ import annotations

from keraunos.ml.array_outputs import GivesArrays
from keraunos.ml.declaration import param
from keraunos.ml.fitter import Fitter
from keraunos.ml.live_models import LiveModels, Settled
from keraunos.ml.params import HasPredictionCols
from keraunos.ml.rendering import output_names
from keraunos.ml.signature import Port, Signature
from tests.formats.linear import NAME, LinearModel


def linear_model(value):
    if not isinstance(value, LinearModel):
        raise TypeError(f"`model` must be a linear model. Received: {value!r}.")
    return value


class LinearModels(LiveModels):
    """Linear models know their shapes."""

    format = NAME
    expected = "a linear model"

    def settings(self):
        return "numpy", "float32"

    def check_trainable(self, model, *, labelled):
        if not labelled:
            raise TypeError("A linear model needs labels.")

    def settled(self, model, read, *, seed, backend, custom_objects):
        inputs, outputs = model.weights.shape
        ports = Port("inputs", (inputs,), "float32"), Port("outputs", (outputs,), "float32")
        return Settled(model, Signature(ports[:1], ports[1:]), rows=(((inputs,), "float32"),))


class LinearFitted(GivesArrays):
    """A trained linear model."""

    format = NAME


class LinearEstimator(Fitter, HasPredictionCols):
    """Trains a linear model."""

    live = LinearModels()
    model, getModel, setModel = param("The linear model to train.", linear_model)

    def __init__(self, **params):
        super().__init__()
        self.setParams(**params)

    def _check(self, model, signature):
        output_names(signature.outputs, self.getPredictionCol())

    def _fitted(self, trained):
        return LinearFitted(trained)
