"""What the Keras learners share, whatever framework runs the model. Runs on workers."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from keraunos.batch import Array, Arrays, Batch, BatchSpec
from keraunos.errors import ModelError
from keraunos.learners.keras_archive import arrange_targets, build, check_trainable
from keraunos.learners.keras_variables import has_schedule, layout_of, learning_rate_variable, reseed, seed_variables
from keraunos.learners.learner import Learner
from keraunos.learners.loss_parts import ROWS, SUM, LossTerms, has_own_loss, noting


class KerasLearner(Learner):
    """A compiled Keras model; a subclass knows how its framework steps and where the numbers are.

    A learner that only predicts needs no `prepare`.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self._floatx = keras.config.floatx()
        if model.built:
            self.layout = layout_of(model)

    def prepare(self, example: Batch, *, seed: int, rank: int) -> None:
        """Build what needs to know the batches' shapes, and give this rank its own random numbers."""
        check_trainable(self.model, labelled=example.targets is not None)
        build(self.model, BatchSpec.of(example))
        self.layout = layout_of(self.model)
        reseed(self.model, seed=seed, rank=rank)
        self.model.reset_metrics()
        self._prepared()

    def skip_random(self, example: Batch, steps: int, take: Callable[[Batch], object]) -> None:
        """Leave out the random numbers that so many steps draw: every step draws as many as any other."""
        before = self._seed_states()
        if not before or not steps:
            return
        parameters, optimizer = self.read(), self.optimizer_state()
        take(example)
        drawn = [after[1:] - now[1:] for now, after in zip(before, self._seed_states(), strict=True)]
        self._set_seed_states(
            [np.concatenate([now[:1], now[1:] + each * steps]) for now, each in zip(before, drawn, strict=True)]
        )
        self.write(parameters)
        self.restore_optimizer(optimizer)
        self.take_metrics()

    def _seed_states(self) -> list[npt.NDArray[Any]]:
        """The states of the random-number generators: a seed, and a count of what was drawn."""
        return [np.array(keras.ops.convert_to_numpy(each.value)) for each in seed_variables(self.model)]

    def _set_seed_states(self, states: Sequence[npt.NDArray[Any]]) -> None:
        for variable, state in zip(seed_variables(self.model), states, strict=True):
            variable.assign(state)

    @abstractmethod
    def _prepared(self) -> None:
        """Take up the model's variables, all of which exist now."""

    def count_parts(self, batch: Batch) -> int:
        """How many parts the contribution for such a batch has; nothing changes."""
        model = self.model
        if has_own_loss(model):
            return 1
        variables = model.metrics_variables
        before = [keras.ops.convert_to_numpy(variable.value) for variable in variables]
        inputs, targets, weights = keras.tree.map_structure(
            lambda array: None if array is None else keras.ops.convert_to_tensor(array), self._data(batch)
        )
        with noting(model) as noted:
            # In inference mode: the parts are the same, and neither statistics nor random numbers move.
            outputs = model(inputs, training=False)
            model.compute_loss(x=inputs, y=targets, y_pred=outputs, sample_weight=weights, training=False)
        for variable, value in zip(variables, before, strict=True):
            variable.assign(np.array(value))
        return len(noted.parts)

    def loss_is_finite(self) -> bool:
        """Whether the sum of losses that Keras keeps is finite; a model with its own `train_step` may keep none."""
        at = self._loss_at
        return at is None or math.isfinite(self._metric_value(at))

    @property
    def expects_overflow(self) -> bool:
        """As Keras's LossScaleOptimizer does."""
        return isinstance(self.model.optimizer, keras.optimizers.LossScaleOptimizer)

    @property
    def learning_rate(self) -> float:
        """The optimizer's learning rate as it is now."""
        return self._read_learning_rate()

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        if has_schedule(self.model):
            raise ModelError(
                "The learning rate cannot be set where the optimizer computes it from a schedule. Received: "
                f"{value!r} for {type(self.model.optimizer).__name__}. Compile the model with a number instead."
            )
        self._write_learning_rate(value)

    def optimizer_state(self) -> list[npt.NDArray[Any]]:
        """The optimizer's variables."""
        return [np.array(keras.ops.convert_to_numpy(variable.value)) for variable in self.model.optimizer.variables]

    def restore_optimizer(self, state: Sequence[npt.NDArray[Any]]) -> None:
        """Set the optimizer's variables to what `optimizer_state` gave."""
        for variable, value in zip(self.model.optimizer.variables, state, strict=True):
            variable.assign(np.array(value))

    @cached_property
    def _loss_at(self) -> int | None:
        """Where among the metrics' variables the sum of the losses is."""
        tracker = next((metric for metric in self.model.metrics if metric.name == "loss"), None)
        if not isinstance(tracker, keras.metrics.Mean):
            return None
        return next(i for i, variable in enumerate(self.model.metrics_variables) if variable is tracker.total)

    def _metric_value(self, at: int) -> float:
        return float(keras.ops.convert_to_numpy(self.model.metrics_variables[at].value))

    def _read_learning_rate(self) -> float:
        return float(keras.ops.convert_to_numpy(self.model.optimizer.learning_rate))

    def _write_learning_rate(self, value: float) -> None:
        rate = learning_rate_variable(self.model)
        assert rate is not None
        rate.assign(value)

    def _learning_rate_index(self) -> int:
        rate = learning_rate_variable(self.model)
        return next(i for i, variable in enumerate(self.model.optimizer.variables) if variable is rate)

    def _observed_loss(self, data: tuple[Any, Any, Any]) -> tuple[Any, LossTerms]:
        """The scaled loss of a training batch and its terms; metrics and float state move.

        What the default `train_step` does before it differentiates, for the frameworks that keep values in variables.
        """
        inputs, targets, weights = data
        model = self.model
        with noting(model) as noted:
            outputs = model(inputs, training=True)
            loss = model.compute_loss(x=inputs, y=targets, y_pred=outputs, sample_weight=weights, training=True)
        tracker = next((metric for metric in model.metrics if metric.name == "loss"), None)
        if tracker is not None:
            tracker.update_state(loss, sample_weight=keras.ops.shape(keras.tree.flatten(inputs)[0])[0])
        model.compute_metrics(inputs, targets, outputs, sample_weight=weights)
        return model.optimizer.scale_loss(loss), noted

    def _data(self, batch: Batch) -> tuple[Any, Any, Any]:
        """A batch as Keras's steps take it."""
        targets = arrange_targets(self.model, batch.targets)
        weights = batch.weights
        return self._arrays(batch.inputs), self._arrays(targets), None if weights is None else self._array(weights)

    def _arrays(self, arrays: Any) -> Any:
        if isinstance(arrays, dict):
            return {name: self._arrays(array) for name, array in arrays.items()}
        if isinstance(arrays, list):
            return [self._arrays(array) for array in arrays]
        return None if arrays is None else self._array(arrays)

    def _array(self, array: Array) -> Array:
        return array.astype(self._floatx) if array.dtype == np.float64 else array

    def _named(self, outputs: Any) -> Arrays:
        """A model's outputs as one array, or as one a name."""
        if isinstance(outputs, dict):
            return {str(name): np.array(output) for name, output in outputs.items()}
        if not isinstance(outputs, (list, tuple)):
            return np.array(outputs)
        if len(outputs) == 1:
            return np.array(outputs[0])
        names = getattr(self.model, "output_names", None) or [f"output_{i + 1}" for i in range(len(outputs))]
        return {name: np.array(output) for name, output in zip(names, outputs, strict=True)}


def for_step(data: tuple[Any, Any, Any]) -> Any:
    """A batch as `fit` hands it to `train_step` and `test_step`: the inputs alone where there are no targets."""
    inputs, targets, weights = data
    return data if targets is not None or weights is not None else keras.utils.pack_x_y_sample_weight(inputs)


def denominators_of(parts: tuple[str, ...], rows: int, elements: Any) -> tuple[float | None, ...]:
    """The denominators of a contribution; `elements` holds those that had to be computed, in the parts' order."""
    computed = iter(elements)
    known: dict[str, float | None] = {ROWS: float(rows), SUM: None}
    return tuple(known[part] if part in known else float(next(computed)) for part in parts)
