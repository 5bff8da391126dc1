"""Keras on torch. Runs on workers.

Steps run eagerly, or through `torch.compile` where the model was compiled with `jit_compile=True`. The model's state
lives in the Keras variables; vectors are put together in tensors that are reused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import torch

from keraunos.batch import Arrays, Batch
from keraunos.learners.captured_update import capturing
from keraunos.learners.keras_learner import KerasLearner, denominators_of, for_step
from keraunos.learners.keras_variables import parameter_variables, seeds_of, state_variables
from keraunos.learners.learner import Contribution
from keraunos.learners.loss_parts import ROWS, SUM, LossTerms, has_own_loss
from keraunos.parameters import Vector


def configure(floatx: str) -> None:
    """Nothing has to be set up for models of this float type."""
    del floatx


class KerasTorchLearner(KerasLearner):
    """A compiled Keras model run by torch."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        compiled = bool(model.jit_compile)
        self._train = torch.compile(model.train_step) if compiled else model.train_step
        self._test = torch.compile(model.test_step) if compiled else model.test_step
        self._buffers: dict[str, Any] = {}

    def prepare(self, example: Batch, *, seed: int, rank: int) -> None:
        """Build what needs to know the batches' shapes, and give this rank its own random numbers."""
        super().prepare(example, seed=seed, rank=rank)
        # Layers that were given no seed draw from torch's own generator.
        torch.manual_seed(seeds_of(1, seed=seed, rank=rank)[0])

    def read(self, out: Vector | None = None) -> Vector:
        """The parameters as one vector."""
        with torch.no_grad():
            flat = self._joined("read", [each.value for each in parameter_variables(self.model)]).cpu().numpy()
        if out is None:
            return np.array(flat)
        np.copyto(out, flat)
        return out

    def write(self, vector: Vector) -> None:
        """Set the parameters from one vector."""
        self._assign(parameter_variables(self.model), self._split(vector))

    def step(self, batch: Batch) -> None:
        """One step with the model's own optimizer; training metrics accumulate."""
        self._set_training(training=True)
        self._train(for_step(self._tensors(self._data(batch))))

    def gradient(self, batch: Batch) -> Contribution:
        """The gradient at the current parameters; float state and training metrics move, parameters do not."""
        self._set_training(training=True)
        data = self._tensors(self._data(batch))
        gradients, noted = self._captured(data) if has_own_loss(self.model) else self._differentiated(data)
        elements = [float(noted.denominator(part)) for part in noted.parts if part not in {ROWS, SUM}]
        denominators = denominators_of(noted.parts, batch.rows, elements)
        with torch.no_grad():
            tensors = [tensor for part in noted.parts for tensor in self._dense(gradients[part])]
            values = self._joined("gradient", [*tensors, *(each.value for each in state_variables(self.model))])
            size = self.layout.trainable_size
            for i, denominator in enumerate(denominators):
                values[i * size : (i + 1) * size] *= 1.0 if denominator is None else denominator
            values[len(denominators) * size :] *= batch.rows
            return Contribution(values.cpu().numpy(), denominators, batch.rows)

    def apply(self, reduced: Vector) -> None:
        """Apply a gradient with the model's own optimizer and set the float state: one vector of the whole layout."""
        values = self._split(reduced)
        count = self.layout.trainable
        with torch.no_grad():
            self.model.optimizer.apply(values[:count], self.model.trainable_variables)
        self._assign(state_variables(self.model), values[count:])

    def evaluate(self, batch: Batch) -> None:
        """Accumulate the validation metrics of a batch; nothing else changes."""
        self._set_training(training=False)
        with torch.no_grad():
            self._test(for_step(self._tensors(self._data(batch))))

    def predict(self, inputs: Arrays) -> Arrays:
        """The model's outputs in inference mode: one array, or one a name for a model with several outputs."""
        self._set_training(training=False)
        with torch.no_grad():
            outputs = self.model.predict_step((self._tensors(self._arrays(inputs)),))
        return self._named(keras.tree.map_structure(keras.ops.convert_to_numpy, outputs))

    def read_metrics(self) -> list[npt.NDArray[np.float64]]:
        """The metrics' state since they were last taken, training and validation alike."""
        variables = self.model.metrics_variables
        return [np.array(keras.ops.convert_to_numpy(variable.value), dtype=np.float64) for variable in variables]

    def take_metrics(self) -> list[npt.NDArray[np.float64]]:
        """What `read_metrics` gives; the metrics are then reset."""
        taken = self.read_metrics()
        self.model.reset_metrics()
        return taken

    def _prepared(self) -> None:
        self._buffers.clear()

    def _set_training(self, *, training: bool) -> None:
        # The walk over all modules is only worth it when the mode changes.
        if self.model.training != training:
            self.model.train(training)

    def _tensors(self, data: Any) -> Any:
        return keras.tree.map_structure(lambda array: None if array is None else _tensor(array), data)

    def _joined(self, use: str, tensors: Sequence[Any]) -> Any:
        """One vector of the tensors, in a tensor that the next one for this use takes again."""
        kind = getattr(torch, self.layout.dtype)
        flat = [tensor.detach().reshape(-1).to(kind) for tensor in tensors]
        if not flat:
            return torch.zeros(0, dtype=kind)
        size = sum(tensor.numel() for tensor in flat)
        buffer = self._buffers.get(use)
        if buffer is None or len(buffer) != size:
            buffer = self._buffers[use] = torch.empty(size, dtype=kind, device=flat[0].device)
        return torch.cat(flat, out=buffer)

    def _split(self, vector: Vector) -> list[Any]:
        layout = self.layout
        like = parameter_variables(self.model)
        parts = torch.split(_tensor(vector), list(layout.sizes))
        return [
            part.reshape(shape).to(variable.value.dtype)
            for part, shape, variable in zip(parts, layout.shapes, like, strict=True)
        ]

    def _assign(self, variables: Sequence[Any], values: Sequence[Any]) -> None:
        with torch.no_grad():
            for variable, value in zip(variables, values, strict=True):
                variable.value.copy_(value)

    def _captured(self, data: Any) -> tuple[dict[str, list[Any]], LossTerms]:
        with capturing(self.model) as captured:
            self.model.train_step(for_step(data))
        return {ROWS: captured.gradients()}, LossTerms()

    def _differentiated(self, data: Any) -> tuple[dict[str, list[Any]], LossTerms]:
        """The gradient of each part of the loss; what layers add to the loss is what the other parts leave over."""
        variables = [variable.value for variable in self.model.trainable_variables]
        loss, noted = self._observed_loss(data)
        several = len(noted.parts) > 1
        whole = torch.autograd.grad(loss, variables, retain_graph=several, allow_unused=True)
        if not several:
            return {noted.parts[0]: list(whole)}, noted
        left = self._dense(whole)
        gradients = {}
        for part in noted.parts:
            if part != ROWS:
                terms = [term.value for term in noted.terms if term.part == part]
                factors = torch.autograd.grad(loss, terms, retain_graph=True)
                found = torch.autograd.grad(terms, variables, factors, retain_graph=True, allow_unused=True)
                gradients[part] = self._dense(found)
                left = [rest - gradient for rest, gradient in zip(left, gradients[part], strict=True)]
        return {ROWS: left, **gradients}, noted

    def _dense(self, gradients: Sequence[Any]) -> list[Any]:
        # Zero where nothing flows back, as JAX has it, so that the vector has the same form on every worker.
        variables = self.model.trainable_variables
        return [
            torch.zeros_like(variable.value) if gradient is None else gradient
            for gradient, variable in zip(gradients, variables, strict=True)
        ]


def _tensor(array: npt.NDArray[Any]) -> Any:
    # torch warns of arrays that it may not write to, though nothing here does.
    return keras.ops.convert_to_tensor(array if array.flags.writeable else array.copy())
