"""Keras on TensorFlow. Runs on workers.

Every operation is one call of a graph, unless the model was compiled to run eagerly; flattening happens inside it.
The model's state lives in the Keras variables.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from keraunos.batch import Arrays, Batch
from keraunos.learners.captured_update import capturing
from keraunos.learners.keras_learner import KerasLearner, denominators_of, for_step
from keraunos.learners.keras_variables import parameter_variables, state_variables
from keraunos.learners.learner import Contribution
from keraunos.learners.loss_parts import ROWS, SUM, LossTerms, has_own_loss
from keraunos.parameters import Vector


def configure(floatx: str) -> None:
    """Nothing has to be set up for models of this float type."""
    del floatx


class KerasTensorFlowLearner(KerasLearner):
    """A compiled Keras model run by TensorFlow."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._parts: dict[bool, tuple[str, ...]] = {}
        self._predict = self._graph(lambda inputs: model.predict_step((inputs,)))
        self._read = self._graph(lambda: self._joined([each.value for each in parameter_variables(model)]))
        self._write = self._graph(self._assign)

    def read(self, out: Vector | None = None) -> Vector:
        """The parameters as one vector."""
        flat = self._read().numpy()
        if out is None:
            return np.array(flat)
        np.copyto(out, flat)
        return out

    def write(self, vector: Vector) -> None:
        """Set the parameters from one vector."""
        self._write(self._owned(vector))

    def step(self, batch: Batch) -> None:
        """One step with the model's own optimizer; training metrics accumulate."""
        self._step(self._tensors(self._data(batch)))

    def gradient(self, batch: Batch) -> Contribution:
        """The gradient at the current parameters; float state and training metrics move, parameters do not."""
        values, elements = self._gradient(self._tensors(self._data(batch)))
        parts = self._parts[batch.weights is not None]
        return Contribution(values.numpy(), denominators_of(parts, batch.rows, elements), batch.rows)

    def apply(self, reduced: Vector) -> None:
        """Apply a gradient with the model's own optimizer and set the float state: one vector of the whole layout."""
        self._apply(self._owned(reduced))

    def evaluate(self, batch: Batch) -> None:
        """Accumulate the validation metrics of a batch; nothing else changes."""
        self._test(self._tensors(self._data(batch)))

    def predict(self, inputs: Arrays) -> Arrays:
        """The model's outputs in inference mode: one array, or one a name for a model with several outputs."""
        return self._named(self._predict(self._tensors(self._arrays(inputs))))

    def read_metrics(self) -> list[npt.NDArray[np.float64]]:
        """The metrics' state since they were last taken, training and validation alike."""
        return [np.array(variable.value, dtype=np.float64) for variable in self.model.metrics_variables]

    def take_metrics(self) -> list[npt.NDArray[np.float64]]:
        """What `read_metrics` gives; the metrics are then reset."""
        taken = self.read_metrics()
        self._reset()
        return taken

    def _prepared(self) -> None:
        model = self.model
        self._step = self._graph(lambda data: _nothing(model.train_step(for_step(data))))
        self._gradient = self._graph(self._contribution)
        self._apply = self._graph(self._update)
        self._test = self._graph(lambda data: _nothing(model.test_step(for_step(data))))
        self._reset = self._graph(lambda: _nothing(model.reset_metrics()))

    def _graph(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if self.model.run_eagerly:
            return function
        # TensorFlow counts how often a piece of code is traced, and warns of code that every model of a process runs. A
        # partial is counted by itself: a warning then is about this model.
        graph: Callable[..., Any] = tf.function(
            functools.partial(function), autograph=False, reduce_retracing=True, jit_compile=self.model.jit_compile
        )
        return graph

    def _tensors(self, data: Any) -> Any:
        return tf.nest.map_structure(lambda array: None if array is None else tf.convert_to_tensor(array), data)

    def _owned(self, vector: Vector) -> Any:
        # A tensor may look into the caller's array, and a variable that takes it whole would go on doing so.
        return tf.convert_to_tensor(vector.copy() if len(self.layout.shapes) == 1 else vector)

    def _joined(self, tensors: Sequence[Any]) -> Any:
        flat = [tf.reshape(tf.cast(tensor, self.layout.dtype), [-1]) for tensor in tensors]
        return tf.concat(flat, axis=0) if flat else tf.zeros([0], self.layout.dtype)

    def _split(self, vector: Any) -> list[Any]:
        layout = self.layout
        parts = tf.split(vector, list(layout.sizes))
        like = parameter_variables(self.model)
        return [
            tf.cast(tf.reshape(part, shape), variable.dtype)
            for part, shape, variable in zip(parts, layout.shapes, like, strict=True)
        ]

    def _assign(self, vector: Any) -> None:
        for variable, value in zip(parameter_variables(self.model), self._split(vector), strict=True):
            variable.assign(value)

    def _update(self, reduced: Any) -> None:
        values = self._split(reduced)
        count = self.layout.trainable
        self.model.optimizer.apply(values[:count], self.model.trainable_variables)
        for variable, value in zip(state_variables(self.model), values[count:], strict=True):
            variable.assign(value)

    def _contribution(self, data: Any) -> tuple[Any, list[Any]]:
        """Traced: the contribution's values and its computed denominators."""
        rows = tf.cast(tf.shape(tf.nest.flatten(data)[0])[0], self.layout.dtype)
        own_loss = has_own_loss(self.model)
        gradients, noted = self._captured(data) if own_loss else self._differentiated(data)
        self._parts[data[2] is not None] = noted.parts
        numerators, elements = [], []
        for part in noted.parts:
            numerator = self._joined(self._dense(gradients[part]))
            if part == ROWS:
                numerator *= rows
            elif part != SUM:
                elements.append(noted.denominator(part))
                numerator *= tf.cast(elements[-1], numerator.dtype)
            numerators.append(numerator)
        moved = self._joined([variable.value for variable in state_variables(self.model)]) * rows
        return tf.concat([*numerators, moved], axis=0), elements

    def _captured(self, data: Any) -> tuple[dict[str, list[Any]], LossTerms]:
        with capturing(self.model) as captured:
            self.model.train_step(for_step(data))
        return {ROWS: captured.gradients()}, LossTerms()

    def _differentiated(self, data: Any) -> tuple[dict[str, list[Any]], LossTerms]:
        """The gradient of each part of the loss; what layers add to the loss is what the other parts leave over."""
        variables = [variable.value for variable in self.model.trainable_variables]
        with tf.GradientTape(persistent=True) as tape:
            loss, noted = self._observed_loss(data)
        whole = tape.gradient(loss, variables)
        if len(noted.parts) == 1:
            return {noted.parts[0]: whole}, noted
        left = self._dense(whole)
        gradients = {}
        for part in noted.parts:
            if part != ROWS:
                terms = [term.value for term in noted.terms if term.part == part]
                gradients[part] = self._dense(tape.gradient(terms, variables, tape.gradient(loss, terms)))
                left = [rest - gradient for rest, gradient in zip(left, gradients[part], strict=True)]
        return {ROWS: left, **gradients}, noted

    def _dense(self, gradients: Sequence[Any]) -> list[Any]:
        # Zero where nothing flows back, as JAX has it, so that the vector has the same form on every worker.
        variables = self.model.trainable_variables
        return [
            tf.zeros_like(variable.value) if gradient is None else tf.convert_to_tensor(gradient)
            for gradient, variable in zip(gradients, variables, strict=True)
        ]


def _nothing(_: Any) -> None:
    """Drop a step's logs, so that the graph does not compute them."""
