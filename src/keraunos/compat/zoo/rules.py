"""What BigDL's optim methods compute, element by element. Runs where the parameters live.

The formulas and the names of their arguments are BigDL's; `learning_rate` stands for its `learningrate`. Every method
takes `clip_norm`, which scales the gradient down to a global norm, and `clip_constant`, which then cuts every element
to a range. Methods that see more than single elements are in `compat.zoo.vector_rules`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakSet

import numpy as np

from keraunos.compat.zoo.bigdl.optim import schedules
from keraunos.errors import PlanError
from keraunos.exchange.rules import sums
from keraunos.exchange.rules.elementwise import BLOCK, Block, ElementwiseOptimizer
from keraunos.exchange.rules.rule import Rule, Sent
from keraunos.exchange.sharding import Slice
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.rule_spec import register_rule
from keraunos.parameters import Vector

# Rules of this process whose rate the driver changes between epochs, by the name that their plan gives them.
_LIVE: dict[str, WeakSet[Rule]] = {}


class Rate:
    """The learning rate of a step, by a schedule or by `learningrate_decay`; `steps_before` others have gone before."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        schedule = options.get("leaningrate_schedule")
        self._schedule = schedules.Default() if schedule is None else schedules.from_json(schedule)
        self._decay = float(options.get("learningrate_decay") or 0.0)
        self._before = int(options.get("steps_before") or 0)

    def at(self, rate: float, step: int) -> float:
        """The rate of a step, counted from 1, where `rate` is what it began with."""
        return self._schedule.rate(rate, self._decay, self._before + step - 1, 0)


class Clipping:
    """How a rule's options clip a gradient."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.norm = options.get("clip_norm")
        self.range = options.get("clip_constant")

    def factor(self, squared_norm: float | None) -> float:
        """What a gradient of this norm is multiplied by."""
        if self.norm is None or squared_norm is None:
            return 1.0
        norm = math.sqrt(squared_norm)
        return float(self.norm) / norm if norm > self.norm else 1.0

    def clip(self, gradient: Vector, factor: float) -> None:
        """Scale the gradient, and cut its elements to the range."""
        if factor != 1.0:
            np.multiply(gradient, gradient.dtype.type(factor), out=gradient)
        if self.range is not None:
            np.clip(gradient, *self.range, out=gradient)


class BigDLRule(ElementwiseOptimizer):
    """An optim method that treats every element alone."""

    def __init__(self, plan: ExchangePlan, part: Slice, workers: int) -> None:
        super().__init__(plan, part, workers)
        self.needs_norm = self.asks_for_norm(plan)
        self._schedule = Rate(plan.rule.options)
        self._clipping = Clipping(plan.rule.options)
        if plan.rule.option("follows"):
            _LIVE.setdefault(plan.rule.option("follows"), WeakSet()).add(self)

    @classmethod
    def asks_for_norm(cls, plan: ExchangePlan) -> bool:
        """Whether the gradient is clipped by its norm."""
        return plan.rule.option("clip_norm") is not None

    @abstractmethod
    def update(self, block: Block) -> None:
        """Move one block in place by its clipped gradient."""

    def option(self, name: str) -> float:
        """A number of the method's."""
        return float(self.plan.rule.options[name])

    def rate_at(self, step: int) -> float:
        """The learning rate of a step."""
        return self._schedule.at(self._rate, step)

    def apply(
        self, sent: Sequence[Sent], parameters: Vector, result: Vector, *, squared_norm: float | None = None
    ) -> None:
        """Step with what was sent, and move the float state."""
        self._own.factor = self._clipping.factor(squared_norm)
        super().apply(sent, parameters, result, squared_norm=squared_norm)

    def squared_norm(self, sent: Sequence[Sent]) -> float:
        """This slice's part of the squared norm of the mean gradient, or of the mean update."""
        trainable = self.part.trainable_size
        block, total = self._blocks()[0], 0.0
        for start in range(0, trainable, BLOCK):
            gradient = block[: min(BLOCK, trainable - start)]
            sums.reduced(self.plan, sent, trainable, gradient, first=start)
            total += float(np.dot(gradient, gradient))
        return total

    def move(self, block: Block) -> None:
        """Clip, and move one block."""
        self._clipping.clip(block.gradient, self._own.factor)
        self.update(block)


class SGD(BigDLRule):
    """`g += weightdecay x`; `v = momentum v + (1 - dampening) g`, from `v = g`; `x -= rate v`.

    With Nesterov's momentum it is `x -= rate (g + momentum v)`.
    """

    def __init__(self, plan: ExchangePlan, part: Slice, workers: int) -> None:
        super().__init__(plan, part, workers)
        self._each = {
            name: self._own_numbers(name) for name in ("learningrates", "weightdecays") if plan.rule.option(name)
        }
        self._slots += list(self._each.values())

    def first_slots(self) -> Sequence[float]:
        """The momentum, where there is one."""
        return [0.0] if self.plan.rule.option("momentum") else []

    def update(self, block: Block) -> None:
        """Move one block in place by its clipped gradient."""
        parameters, gradient, slots, (other, *_) = block.parameters, block.gradient, block.slots, block.scratch
        decay, momentum = self.option("weightdecay"), self.option("momentum")
        own = dict(zip(self._each, slots[len(slots) - len(self._each) :], strict=True))
        if decay or "weightdecays" in own:
            np.multiply(parameters, own.get("weightdecays", decay), out=other)
            np.add(gradient, other, out=gradient)
        if momentum:
            self._gather(slots[0], gradient, other, block.step)
            if self.plan.rule.options["nesterov"]:
                np.multiply(slots[0], momentum, out=other)
                np.add(gradient, other, out=gradient)
            else:
                gradient = slots[0]
        np.multiply(gradient, block.rate, out=other)
        if "learningrates" in own:
            np.multiply(other, own["learningrates"], out=other)
        np.subtract(parameters, other, out=parameters)

    def _gather(self, velocity: Vector, gradient: Vector, other: Vector, step: int) -> None:
        if step == 1:
            np.copyto(velocity, gradient)
            return
        np.multiply(velocity, self.option("momentum"), out=velocity)
        np.multiply(gradient, 1.0 - self.option("dampening"), out=other)
        np.add(velocity, other, out=velocity)

    def _own_numbers(self, name: str) -> Vector:
        given = self.plan.rule.options[name]
        if len(given) != self.part.layout.trainable_size:
            raise PlanError(
                f"`{name}` must have one number for each parameter that is trained. Expected: "
                f"{self.part.layout.trainable_size}. Received: {len(given)}."
            )
        mine = given[self.part.start : self.part.start + self.part.trainable_size]
        return np.array(mine, self.part.layout.dtype)


class Adagrad(BigDLRule):
    """`g += weightdecay x`; `s += g²`; `x -= rate g / (√s + 1e-10)`."""

    def first_slots(self) -> Sequence[float]:
        """The sum of squares."""
        return [0.0]

    def update(self, block: Block) -> None:
        """Move one block in place by its clipped gradient."""
        gradient, (squares,), (other, *_) = block.gradient, block.slots, block.scratch
        if self.option("weightdecay"):
            np.multiply(block.parameters, self.option("weightdecay"), out=other)
            np.add(gradient, other, out=gradient)
        np.multiply(gradient, gradient, out=other)
        np.add(squares, other, out=squares)
        np.sqrt(squares, out=other)
        np.add(other, 1e-10, out=other)
        _subtract_quotient(block.parameters, gradient, other, block.rate, gradient)


class Adadelta(BigDLRule):
    """`s = decayrate s + (1 - decayrate) g²`; `u = √(a + epsilon) / √(s + epsilon) g`; `x -= u`; `a` as `s`, of `u`."""

    def first_slots(self) -> Sequence[float]:
        """The mean squares of the gradient and of the moves."""
        return [0.0, 0.0]

    def update(self, block: Block) -> None:
        """Move one block in place by its clipped gradient."""
        gradient, (squares, moves), (other, *_) = block.gradient, block.slots, block.scratch
        decay, epsilon = self.option("decayrate"), self.option("epsilon")
        _average_square(squares, gradient, decay, other)
        np.add(squares, epsilon, out=other)
        np.sqrt(other, out=other)
        np.divide(gradient, other, out=gradient)
        np.add(moves, epsilon, out=other)
        np.sqrt(other, out=other)
        np.multiply(gradient, other, out=gradient)
        _average_square(moves, gradient, decay, other)
        np.multiply(gradient, block.rate, out=gradient)
        np.subtract(block.parameters, gradient, out=block.parameters)


class Adam(BigDLRule):
    """`m = beta1 m + (1 - beta1) g`; `v = beta2 v + (1 - beta2) g²`; `x -= rate c m / (√v + epsilon)`.

    In step t, `c = √(1 - beta2ᵗ) / (1 - beta1ᵗ)`.
    """

    def first_slots(self) -> Sequence[float]:
        """The means of the gradient and of its square."""
        return [0.0, 0.0]

    def update(self, block: Block) -> None:
        """Move one block in place by its clipped gradient."""
        gradient, (mean, squares), (other, *_) = block.gradient, block.slots, block.scratch
        beta1, beta2 = self.option("beta1"), self.option("beta2")
        _average(mean, gradient, beta1, other)
        _average_square(squares, gradient, beta2, other)
        np.sqrt(squares, out=other)
        np.add(other, self.option("epsilon"), out=other)
        size = block.rate * math.sqrt(1.0 - beta2**block.step) / (1.0 - beta1**block.step)
        _subtract_quotient(block.parameters, mean, other, size, gradient)


class Adamax(BigDLRule):
    """`m = beta1 m + (1 - beta1) g`; `u = max(beta2 u, |g| + epsilon)`; `x -= rate / (1 - beta1ᵗ) m / u`."""

    def first_slots(self) -> Sequence[float]:
        """The mean of the gradient, and the norm."""
        return [0.0, 0.0]

    def update(self, block: Block) -> None:
        """Move one block in place by its clipped gradient."""
        gradient, (mean, norm), (other, *_) = block.gradient, block.slots, block.scratch
        beta1 = self.option("beta1")
        _average(mean, gradient, beta1, other)
        np.abs(gradient, out=gradient)
        # The default epsilon is less than the least normal number, which a processor may take for zero.
        np.add(gradient, max(self.option("epsilon"), float(np.finfo(gradient.dtype).tiny)), out=gradient)
        np.multiply(norm, self.option("beta2"), out=norm)
        np.maximum(norm, gradient, out=norm)
        _subtract_quotient(block.parameters, mean, norm, block.rate / (1.0 - beta1**block.step), gradient)


class RMSprop(BigDLRule):
    """`s = decayrate s + (1 - decayrate) g²`; `x -= rate g / (√s + epsilon)`."""

    def first_slots(self) -> Sequence[float]:
        """The mean of the squares."""
        return [0.0]

    def update(self, block: Block) -> None:
        """Move one block in place by its clipped gradient."""
        gradient, (squares,), (other, *_) = block.gradient, block.slots, block.scratch
        _average_square(squares, gradient, self.option("decayrate"), other)
        np.sqrt(squares, out=other)
        np.add(other, self.option("epsilon"), out=other)
        _subtract_quotient(block.parameters, gradient, other, block.rate, gradient)


class Ftrl(BigDLRule):
    """`g += 2 l2_shrinkage x`; `b = a + g²`; `z += g - (b^p - a^p) / rate x`, with `p = -learningrate_power`.

    Then `x = (sign(z) l1 - z) / (b^p / rate + 2 l2)` where `|z| > l1`, else 0; and `a = b`.
    """

    scratch_blocks = 2

    def first_slots(self) -> Sequence[float]:
        """The sum of squares, and the linear term."""
        return [self.option("initial_accumulator_value"), 0.0]

    def update(self, block: Block) -> None:
        """Move one block in place by its clipped gradient."""
        parameters, gradient, rate = block.parameters, block.gradient, block.rate
        (squares, linear), (other, power, *_) = block.slots, block.scratch
        shrink, l1 = self.option("l2_shrinkage_regularization_strength"), self.option("l1_regularization_strength")
        if shrink:
            np.multiply(parameters, 2.0 * shrink, out=other)
            np.add(gradient, other, out=gradient)
        np.add(linear, gradient, out=linear)
        self._power(squares, other)
        np.multiply(gradient, gradient, out=gradient)
        np.add(squares, gradient, out=squares)
        self._power(squares, power)
        np.divide(power, rate, out=power)
        np.divide(other, rate, out=other)
        np.subtract(power, other, out=other)
        np.multiply(other, parameters, out=other)
        np.subtract(linear, other, out=linear)
        np.add(power, 2.0 * self.option("l2_regularization_strength"), out=power)
        np.clip(linear, -l1, l1, out=other)
        np.subtract(other, linear, out=other)
        parameters.fill(0.0)
        np.divide(other, power, out=parameters, where=np.abs(linear) > l1)

    def _power(self, base: Vector, out: Vector) -> None:
        power = -self.option("learningrate_power")
        if power == 0.5:
            np.sqrt(base, out=out)
        else:
            np.power(base, power, out=out)


def set_rate(follows: str, rate: float) -> int:
    """Set the learning rate of the rules in this process whose option `follows` this is; how many there are.

    Only while no worker trains: rules are not asked whether they are at work.
    """
    found = list(_LIVE.get(follows, ()))
    for rule in found:
        rule.learning_rate = rate
    return len(found)


def rate_at(options: Mapping[str, Any], step: int) -> float:
    """The learning rate that a method with these options has in a step, counted from 1."""
    return Rate(options).at(float(options["learning_rate"]), step)


def _average(mean: Vector, values: Vector, decay: float, scratch: Vector) -> None:
    np.multiply(mean, decay, out=mean)
    np.multiply(values, 1.0 - decay, out=scratch)
    np.add(mean, scratch, out=mean)


def _average_square(mean: Vector, values: Vector, decay: float, scratch: Vector) -> None:
    np.multiply(mean, decay, out=mean)
    np.multiply(values, values, out=scratch)
    np.multiply(scratch, 1.0 - decay, out=scratch)
    np.add(mean, scratch, out=mean)


def _subtract_quotient(parameters: Vector, above: Vector, below: Vector, rate: float, scratch: Vector) -> None:
    np.multiply(above, rate, out=scratch)
    np.divide(scratch, below, out=scratch)
    np.subtract(parameters, scratch, out=parameters)


_HERE, _VECTOR = "keraunos.compat.zoo.rules", "keraunos.compat.zoo.vector_rules"
_HOMES: Mapping[str, str] = {
    "bigdl_sgd": f"{_HERE}:SGD",
    "bigdl_adagrad": f"{_HERE}:Adagrad",
    "bigdl_adadelta": f"{_HERE}:Adadelta",
    "bigdl_adam": f"{_HERE}:Adam",
    "bigdl_adamax": f"{_HERE}:Adamax",
    "bigdl_rmsprop": f"{_HERE}:RMSprop",
    "bigdl_ftrl": f"{_HERE}:Ftrl",
    "bigdl_lars_sgd": f"{_VECTOR}:LarsSGD",
    "bigdl_lbfgs": f"{_VECTOR}:LBFGS",
    "bigdl_by_prefix": f"{_VECTOR}:ByPrefix",
}

for _name, _home in _HOMES.items():
    register_rule(_name, _home)
