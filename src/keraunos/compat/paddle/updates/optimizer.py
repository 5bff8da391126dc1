"""Paddle's learning methods as a Keras optimizer, for steps that a trainer takes by itself. Runs on driver and workers.

Samples are counted by steps: a step counts as `samples_per_step`, the batches of all trainers. It runs on every
backend of Keras.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import keras

from keraunos.compat.paddle.model_config import OptimizationConfig
from keraunos.compat.paddle.updates import formulas
from keraunos.compat.paddle.updates.rule import attributes_of
from keraunos.compat.paddle.updates.schedules import rate_at


@dataclass(frozen=True)
class _Told:
    """The constructor's arguments, out of reach of what backends do to containers that an optimizer holds."""

    opt: OptimizationConfig
    parameters: Mapping[str, Mapping[str, Any]]
    samples_per_step: int
    samples_per_pass: int | None

    @property
    def steps_per_pass(self) -> int | None:
        return None if self.samples_per_pass is None else math.ceil(self.samples_per_pass / self.samples_per_step)


@dataclass(frozen=True)
class _Held:
    """One variable's attributes and slots."""

    own: formulas.Attributes
    slots: Mapping[str, Any]


class _Store:
    """The state per variable, hidden from Keras in the same way."""

    def __init__(self) -> None:
        self.held: list[_Held] = []


@keras.saving.register_keras_serializable(package="keraunos.paddle")
class PaddleOptimizer(keras.optimizers.Optimizer):  # type: ignore[misc]  # Keras is untyped
    """The learning method of the settings, with each parameter's own attributes.

    Args:
        learning_rate: the rate of the settings; a callback may change it.
        settings: the fields of an `OptimizationConfig`.
        parameters: by name, what differs from the defaults of `formulas.Attributes`.
        samples_per_step: the rows of a step over all trainers.
        samples_per_pass: the rows of a pass over all trainers, for schedules that go by passes.
    """

    def __init__(
        self,
        learning_rate: float,
        settings: Mapping[str, Any],
        parameters: Mapping[str, Mapping[str, Any]],
        samples_per_step: int,
        samples_per_pass: int | None = None,
        name: str = "paddle",
    ) -> None:
        super().__init__(learning_rate=float(learning_rate), name=name)
        self._told = _Told(OptimizationConfig(**settings), dict(parameters), samples_per_step, samples_per_pass)
        self._store = _Store()

    def build(self, variables: Sequence[Any]) -> None:
        """Make the slots of every variable."""
        if self.built:
            return
        super().build(variables)
        for variable in variables:
            own = attributes_of(self._told.parameters, variable.path)
            names = formulas.slots_of(self._told.opt.learning_method, own)
            slots = {name: self.add_variable_from_reference(variable, name=name) for name in names}
            self._store.held.append(_Held(own, slots))

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Move one variable and its slots."""
        ops, held = keras.ops, self._store.held[self._get_variable_index(variable)]
        value = ops.convert_to_tensor(variable)
        if hasattr(gradient, "indices"):
            # A gradient of some rows only: the methods move all.
            gradient = ops.add(gradient, ops.zeros_like(value))
        gradient = ops.cast(gradient, value.dtype)
        slots = {name: ops.convert_to_tensor(slot) for name, slot in held.slots.items()}
        now = self._now(learning_rate, value.dtype)
        after = formulas.moved(ops, self._told.opt, held.own, now, value, gradient, slots)
        for name, slot in held.slots.items():
            self.assign(slot, after.slots[name])
        self.assign(variable, after.value)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        told = self._told
        return {
            "learning_rate": float(keras.ops.convert_to_numpy(self.learning_rate)),
            "settings": asdict(told.opt),
            "parameters": {name: dict(own) for name, own in told.parameters.items()},
            "samples_per_step": told.samples_per_step,
            "samples_per_pass": told.samples_per_pass,
            "name": self.name,
        }

    def _now(self, learning_rate: Any, dtype: Any) -> formulas.Now:
        ops, told = keras.ops, self._told
        before = ops.convert_to_tensor(self.iterations)
        step = ops.cast(before, dtype) + 1.0
        passes = 0.0 if told.steps_per_pass is None else ops.cast(before // told.steps_per_pass, dtype)
        rate = rate_at(ops, told.opt, ops.cast(learning_rate, dtype), step * float(told.samples_per_step), passes)

        def owed(every: int) -> Any:
            batch = before + 1 if told.steps_per_pass is None else before % told.steps_per_pass + 1
            rest = ops.cast(batch % every, dtype)
            left = 0.0 if told.steps_per_pass is None else ops.where(batch == told.steps_per_pass, rest, 0.0)
            return ops.cast(ops.where(rest == 0, float(every), left), dtype)

        return formulas.Now(ops.cast(rate, dtype), step, ops.cast(before == 0, dtype), owed)
