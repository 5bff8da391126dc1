"""The driver's copy of a Keras model. Runs on the driver."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from keraunos.batch import BatchSpec, Front
from keraunos.errors import ColumnError, ModelError
from keraunos.job.training_job import TrainingJob
from keraunos.learners import tensorflow_layers
from keraunos.learners.home_model import HomeModel, MetricStates, State
from keraunos.learners.keras_archive import from_archive, to_archive, without_tensorflow
from keraunos.learners.keras_front import parted
from keraunos.learners.keras_variables import (
    keeps_averages,
    layout_of,
    learning_rate_variable,
    read_vector,
    write_vector,
)
from keraunos.learners.metric_states import MetricReader, check_mergeable
from keraunos.parameters import Vector

logger = logging.getLogger(__name__)


class KerasHome(HomeModel):
    """A compiled Keras model; `model` is the live one, which callbacks see."""

    takes_callbacks = True

    def __init__(
        self, archive: bytes, custom_objects: Mapping[str, Any] | None = None, trusted: Sequence[str] = ()
    ) -> None:
        self._custom_objects = custom_objects
        self.model = from_archive(archive, custom_objects, trusted)
        # What learners step, with the layers of the whole model.
        self._stepped, self._front = parted(self.model) if tensorflow_layers.in_archive(archive) else (self.model, None)
        self.layout = layout_of(self._stepped)

    def check(self, job: TrainingJob) -> None:
        """Refuse metrics that do not add up, constraints and averages that nobody sees to, strings nobody reads."""
        check_mergeable(self.model)
        _check_constraints(job, self.model)
        _check_averages(job, self.model)
        _check_strings(job, self.model, self._front)

    def read(self) -> Vector:
        """The parameters as one vector."""
        return read_vector(self._stepped)

    def write(self, vector: Vector) -> None:
        """Set the parameters from one vector."""
        # JAX's arrays may lie where numpy's do, and the vector is the caller's to change.
        write_vector(self._stepped, np.array(vector))

    def settle(self, optimizer: State | None) -> None:
        """Take over the optimizer's state; where it keeps averages, they take the place of the weights, as in `fit`."""
        own = self.model.optimizer
        if optimizer is None:
            if keeps_averages(self.model):
                logger.warning(
                    "The averages of `use_ema` are lost with the worker that kept them, or because training ended "
                    "early; the model has its weights as they were last."
                )
            return
        if not own.built:
            own.build(self.model.trainable_variables)
        for variable, value in zip(own.variables, optimizer, strict=True):
            variable.assign(value)
        own.finalize_variable_values(self.model.trainable_weights)

    def to_archive(self) -> bytes:
        """The model as it is now, as a `.keras` archive."""
        return to_archive(self.model, self._custom_objects)

    def identity(self) -> dict[str, Any]:
        """Its layers, optimizer and loss, by what they are and not by the names that Keras numbers them with."""
        return {**super().identity(), **compiled_identity(self.model)}

    def metric_states(self, spec: BatchSpec) -> MetricStates:
        """What reads the states of the model's own metrics."""
        return MetricReader(self._stepped, spec)

    @property
    def learning_rate(self) -> float | None:
        """The optimizer's learning rate; `None` where a schedule decides."""
        variable = learning_rate_variable(self.model)
        return None if variable is None else float(np.asarray(variable.value))

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self.model.optimizer.learning_rate = value

    @property
    def iterations(self) -> int:
        """How many steps the optimizer has counted; a schedule's learning rate follows from it."""
        return int(np.asarray(self.model.optimizer.iterations.value))

    @iterations.setter
    def iterations(self, steps: int) -> None:
        optimizer = self.model.optimizer
        for each in (optimizer, getattr(optimizer, "inner_optimizer", None)):
            if each is not None:
                each.iterations.assign(steps)


def compiled_identity(model: Any) -> dict[str, Any]:
    """The layers, the optimizer and the loss of a compiled model, as plain data without made-up names."""
    with without_tensorflow():
        optimizer = keras.saving.serialize_keras_object(model.optimizer)
        compiled = model.get_compile_config() or {}
    options = {name: value for name, value in optimizer["config"].items() if name != "name"}
    return {
        "layers": [type(layer).__name__ for layer in model.layers],
        "optimizer": {"class": optimizer["class_name"], **options},
        "loss": compiled.get("loss"),
        "loss_weights": compiled.get("loss_weights"),
    }


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


def _check_averages(job: TrainingJob, model: Any) -> None:
    """Refuse averages of weights that no optimizer steps with, or that are not those of the result."""
    plan = job.exchange
    if not keeps_averages(model):
        return
    if plan.pulls_on_workers:
        raise ModelError(
            f"The model's optimizer averages its weights (`use_ema=True`), but under `{plan.rule.name}` the result is "
            "the center, which is no worker's weights. Compile the model without `use_ema`, or use another exchange."
        )
    if not job.keeps_optimizer:
        raise ModelError(
            f"The model's optimizer averages its weights (`use_ema=True`), but takes no step: the rule "
            f"{str(plan.rule)!r} on the servers applies the gradients. Compile the model without it, and give the "
            "rule use_ema=True instead."
        )


def _check_strings(job: TrainingJob, model: Any, front: Front | None) -> None:
    """Refuse a column of strings for an input of numbers, and images for layers that take strings."""
    for slot in job.columns.features:
        reads = front is not None and (slot.name is None or slot.name in front.reads)
        if slot.kind == "bytes" and (front is None or not reads):
            raise ColumnError(
                f"Column {slot.columns[0]!r} holds strings, which the model {model.name!r} does not take there. "
                "Expected: numbers, or a model with a layer such as TextVectorization on that input. Received: a "
                "column of kind 'bytes'. Encode strings first, for instance with StringIndexer."
            )
        if slot.kind == "image" and reads:
            raise ColumnError(
                f"Column {slot.columns[0]!r} holds images, and the model {model.name!r} looks its input up as strings. "
                "Expected: strings or whole numbers. Received: a column of kind 'image'."
            )
