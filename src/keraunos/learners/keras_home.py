"""The driver's copy of a Keras model. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keraunos.batch import BatchSpec
from keraunos.errors import ModelError
from keraunos.job.training_job import TrainingJob
from keraunos.learners.home_model import HomeModel, MetricStates
from keraunos.learners.keras_archive import from_archive, to_archive, without_tensorflow
from keraunos.learners.keras_variables import layout_of, learning_rate_variable, read_vector, write_vector
from keraunos.learners.metric_states import MetricReader, check_mergeable
from keraunos.parameters import Vector


class KerasHome(HomeModel):
    """A compiled Keras model; `model` is the live one, which callbacks see."""

    def __init__(self, archive: bytes, custom_objects: Mapping[str, Any] | None = None) -> None:
        self._custom_objects = custom_objects
        self.model = from_archive(archive, custom_objects)
        self.layout = layout_of(self.model)

    def check(self, job: TrainingJob) -> None:
        """Refuse metrics whose states do not add up, and constraints that nobody would apply."""
        check_mergeable(self.model)
        _check_constraints(job, self.model)

    def read(self) -> Vector:
        """The parameters as one vector."""
        return read_vector(self.model)

    def write(self, vector: Vector) -> None:
        """Set the parameters from one vector."""
        write_vector(self.model, vector)

    def to_archive(self) -> bytes:
        """The model as it is now, as a `.keras` archive."""
        return to_archive(self.model, self._custom_objects)

    def identity(self) -> dict[str, Any]:
        """Its layers, optimizer and loss, by what they are and not by the names that Keras numbers them with."""
        with without_tensorflow():
            optimizer = keras.saving.serialize_keras_object(self.model.optimizer)
            compiled = self.model.get_compile_config() or {}
        options = {name: value for name, value in optimizer["config"].items() if name != "name"}
        return {
            **super().identity(),
            "layers": [type(layer).__name__ for layer in self.model.layers],
            "optimizer": {"class": optimizer["class_name"], **options},
            "loss": compiled.get("loss"),
            "loss_weights": compiled.get("loss_weights"),
        }

    def metric_states(self, spec: BatchSpec) -> MetricStates:
        """What reads the states of the model's own metrics."""
        return MetricReader(self.model, spec)

    @property
    def learning_rate(self) -> float | None:
        """The optimizer's learning rate; `None` where a schedule decides."""
        variable = learning_rate_variable(self.model)
        return None if variable is None else float(np.asarray(variable.value))

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self.model.optimizer.learning_rate = value


def _check_constraints(job: TrainingJob, model: Any) -> None:
    """Refuse what a server's optimizer, which knows vectors and no layers, would leave undone."""
    plan = job.exchange
    if plan.send != "gradients" or plan.applies_on_workers:
        return
    constrained = [variable.path for variable in model.trainable_variables if variable.constraint is not None]
    if constrained:
        raise ModelError(
            f"The model constrains {', '.join(map(repr, constrained))}, which the rule {str(plan.rule)!r} on the "
            "server cannot do. Use rule='own', with which each worker's optimizer applies the gradients, or "
            "send='updates'."
        )
