"""The formulas of BigDL's optim methods, element by element. Runs where the parameters live.

The formulas and the names of their arguments are BigDL's; `learning_rate` is its `learningrate`. Every method
takes `clip_norm`, which scales the gradient down to a global norm, and `clip_constant`, which then cuts every element
to a range. Methods that see more than single elements are in `compat.zoo.vector_rules`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from keraunos.compat.zoo.bigdl.optim import schedules
from keraunos.errors import PlanError
from keraunos.exchange.rules import elementwise_optimizers, sums
from keraunos.exchange.rules.elementwise import BLOCK, Block, ElementwiseOptimizer
from keraunos.exchange.rules.elementwise_optimizers import add_product, power, subtract_over_root
from keraunos.exchange.rules.optimizer import Optimizer
from keraunos.exchange.rules.rule import Sent
from keraunos.exchange.sharding import Slice
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.rule_spec import register_rule
from keraunos.parameters import Vector


class Rate:
    """The learning rate of a step, by a schedule or by `learningrate_decay`; `steps_before` others have gone before."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        schedule = options.get("leaningrate_schedule")
        self._schedule = schedules.Default() if schedule is None else schedules.from_json(schedule)
        self._decay = float(options.get("learningrate_decay") or 0.0)
        self._before = int(options.get("steps_before") or 0)

    def at(self, rate: float, step: int) -> float:
        """Returns the rate of a step, counted from 1; `rate` is the initial rate."""
        return self._schedule.rate(rate, self._decay, self._before + step - 1, 0)


class GradientClipping:
    """How a rule's options clip a gradient."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.norm = options.get("clip_norm")
        self.range = options.get("clip_constant")

    def factor(self, squared_norm: float | None) -> float:
        """Returns the factor on a gradient of this norm."""
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


class BigDLRule(Optimizer):
    """Base class of all optim methods: numbers as options, a schedule, and clipping."""

    def __init__(self, plan: ExchangePlan, part: Slice, workers: int) -> None:
        super().__init__(plan, part, workers)
        self.needs_norm = self.asks_for_norm(plan)
        self._schedule = Rate(plan.rule.options)
        self._clipping = GradientClipping(plan.rule.options)

    @classmethod
    def asks_for_norm(cls, plan: ExchangePlan) -> bool:
        """Returns whether the gradient is clipped by its norm."""
        return plan.rule.option("clip_norm") is not None

    def option(self, name: str) -> float:
        """Returns a number of the method's."""
        return float(self.plan.rule.options[name])

    def rate_at(self, step: int) -> float:
        """Returns the learning rate of a step."""
        return self._schedule.at(self._rate, step)


class ElementwiseRule(BigDLRule, ElementwiseOptimizer):
    """An optim method that treats every element alone."""

    def take_step(
        self, sent: Sequence[Sent], parameters: Vector, rate: float, step: int, squared_norm: float | None
    ) -> None:
        """Move the trainable parameters in place, by a clipped gradient."""
        self._own.factor = self._clipping.factor(squared_norm)
        super().take_step(sent, parameters, rate, step, squared_norm)

    def squared_norm(self, sent: Sequence[Sent]) -> float:
        """Returns this slice's part of the squared norm of the mean gradient, or of the mean update."""
        trainable = self.part.trainable_size
        block, total = self._blocks()[0], 0.0
        for start in range(0, trainable, BLOCK):
            gradient = block[: min(BLOCK, trainable - start)]
            sums.reduced(self.plan, sent, trainable, gradient, first=start)
            total += float(np.dot(gradient, gradient))
        return total

    def prepare(self, block: Block) -> None:
        """Clip the gradient of one block, and add to it what a decay takes off the parameters."""
        self._clipping.clip(block.gradient, self._own.factor)
        decay = self.decay_of(block)
        if decay is not None:
            add_product(block.gradient, block.parameters, decay, block.scratch[0])

    def decay_of(self, block: Block) -> Vector | float | None:
        """Returns the weight decay of a block's parameters; `None` for none."""
        return self.plan.rule.option("weightdecay") or None


class BigDLSGD(ElementwiseRule):
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
        """Returns the momentum, if there is one."""
        return [0.0] if self.plan.rule.option("momentum") else []

    def move(self, block: Block) -> None:
        """Move one block in place by its prepared gradient."""
        gradient, (other, *_), momentum = block.gradient, block.scratch, self.option("momentum")
        if momentum:
            velocity = block.slots[0]
            self._gather(velocity, gradient, other, block.step)
            if self.plan.rule.options["nesterov"]:
                add_product(gradient, velocity, momentum, other)
            else:
                gradient = velocity
        np.multiply(gradient, block.rate, out=other)
        if "learningrates" in self._each:
            np.multiply(other, self._own_of(block)["learningrates"], out=other)
        np.subtract(block.parameters, other, out=block.parameters)

    def decay_of(self, block: Block) -> Vector | float | None:
        """Returns the weight decay of a block's parameters; `None` for none."""
        return self._own_of(block)["weightdecays"] if "weightdecays" in self._each else super().decay_of(block)

    def _own_of(self, block: Block) -> dict[str, Vector]:
        """Returns the numbers that each of a block's elements has for itself."""
        return dict(zip(self._each, block.slots[len(block.slots) - len(self._each) :], strict=True))

    def _gather(self, velocity: Vector, gradient: Vector, other: Vector, step: int) -> None:
        if step == 1:
            np.copyto(velocity, gradient)
            return
        np.multiply(velocity, self.option("momentum"), out=velocity)
        add_product(velocity, gradient, 1.0 - self.option("dampening"), other)

    def _own_numbers(self, name: str) -> Vector:
        given = self.plan.rule.options[name]
        if len(given) != self.part.layout.trainable_size:
            raise PlanError(
                f"`{name}` must have one number for each parameter that is trained. Expected: "
                f"{self.part.layout.trainable_size}. Received: {len(given)}."
            )
        mine = given[self.part.start : self.part.start + self.part.trainable_size]
        return np.array(mine, self.part.layout.dtype)


class BigDLAdagrad(ElementwiseRule, elementwise_optimizers.Adagrad):
    """`g += weightdecay x`; `s += g²`; `x -= rate g / (√s + 1e-10)`."""

    epsilon = 1e-10


class BigDLAdadelta(ElementwiseRule, elementwise_optimizers.Adadelta):
    """`s = decayrate s + (1 - decayrate) g²`; `u = √(a + epsilon) / √(s + epsilon) g`; `x -= u`; `a` as `s`, of `u`."""


class BigDLAdam(ElementwiseRule, elementwise_optimizers.Adam):
    """`m = beta1 m + (1 - beta1) g`; `v = beta2 v + (1 - beta2) g²`; `x -= rate c m / (√v + epsilon)`.

    In step t, `c = √(1 - beta2ᵗ) / (1 - beta1ᵗ)`.
    """


class BigDLAdamax(ElementwiseRule, elementwise_optimizers.Averaging):
    """`m = beta1 m + (1 - beta1) g`; `u = max(beta2 u, |g| + epsilon)`; `x -= rate / (1 - beta1ᵗ) m / u`."""

    def first_slots(self) -> Sequence[float]:
        """Returns the mean of the gradient, and the norm."""
        return [0.0, 0.0]

    def move(self, block: Block) -> None:
        """Move one block in place by its prepared gradient."""
        gradient, (mean, norm), (other, *_) = block.gradient, block.slots, block.scratch
        beta1 = self.option("beta1")
        self.average(mean, gradient, beta1, other)
        np.abs(gradient, out=gradient)
        # The default epsilon is below the smallest normal number, which a processor may treat as zero.
        np.add(gradient, max(self.option("epsilon"), float(np.finfo(gradient.dtype).tiny)), out=gradient)
        np.multiply(norm, self.option("beta2"), out=norm)
        np.maximum(norm, gradient, out=norm)
        np.multiply(mean, block.rate / (1.0 - beta1**block.step), out=gradient)
        np.divide(gradient, norm, out=gradient)
        np.subtract(block.parameters, gradient, out=block.parameters)


class BigDLRMSprop(ElementwiseRule, elementwise_optimizers.Averaging):
    """`s = decayrate s + (1 - decayrate) g²`; `x -= rate g / (√s + epsilon)`."""

    def first_slots(self) -> Sequence[float]:
        """Returns the mean of the squares."""
        return [0.0]

    def move(self, block: Block) -> None:
        """Move one block in place by its prepared gradient."""
        gradient, (squares,) = block.gradient, block.slots
        self.average_square(squares, gradient, self.option("decayrate"), block.scratch)
        subtract_over_root(block, gradient, squares, block.rate, self.option("epsilon"))


class BigDLFtrl(ElementwiseRule):
    """`g += 2 l2_shrinkage x`; `b = a + g²`; `z += g - (b^p - a^p) / rate x`, with `p = -learningrate_power`.

    Then `x = (sign(z) l1 - z) / (b^p / rate + 2 l2)` where `|z| > l1`, else 0; and `a = b`.
    """

    scratch_blocks = 2

    def first_slots(self) -> Sequence[float]:
        """Returns the sum of squares, and the linear term."""
        return [self.option("initial_accumulator_value"), 0.0]

    def move(self, block: Block) -> None:
        """Move one block in place by its prepared gradient."""
        parameters, gradient, rate = block.parameters, block.gradient, block.rate
        (squares, linear), (other, root, *_) = block.slots, block.scratch
        root_power = -self.option("learningrate_power")
        shrink, l1 = self.option("l2_shrinkage_regularization_strength"), self.option("l1_regularization_strength")
        if shrink:
            add_product(gradient, parameters, 2.0 * shrink, other)
        np.add(linear, gradient, out=linear)
        power(squares, root_power, out=other)
        add_product(squares, gradient, gradient, root)
        power(squares, root_power, out=root)
        np.divide(root, rate, out=root)
        np.divide(other, rate, out=other)
        np.subtract(root, other, out=other)
        np.multiply(other, parameters, out=other)
        np.subtract(linear, other, out=linear)
        np.add(root, 2.0 * self.option("l2_regularization_strength"), out=root)
        np.clip(linear, -l1, l1, out=other)
        np.subtract(other, linear, out=other)
        parameters.fill(0.0)
        np.divide(other, root, out=parameters, where=np.abs(linear) > l1)


def rate_at(options: Mapping[str, Any], step: int) -> float:
    """Returns the learning rate that a method with these options has in a step, counted from 1."""
    return Rate(options).at(float(options["learning_rate"]), step)


_HERE, _VECTOR = "keraunos.compat.zoo.rules", "keraunos.compat.zoo.vector_rules"
_HOMES: Mapping[str, str] = {
    "bigdl_sgd": f"{_HERE}:BigDLSGD",
    "bigdl_adagrad": f"{_HERE}:BigDLAdagrad",
    "bigdl_adadelta": f"{_HERE}:BigDLAdadelta",
    "bigdl_adam": f"{_HERE}:BigDLAdam",
    "bigdl_adamax": f"{_HERE}:BigDLAdamax",
    "bigdl_rmsprop": f"{_HERE}:BigDLRMSprop",
    "bigdl_ftrl": f"{_HERE}:BigDLFtrl",
    "bigdl_lars_sgd": f"{_VECTOR}:BigDLLarsSGD",
    "bigdl_lbfgs": f"{_VECTOR}:BigDLLBFGS",
    "bigdl_by_prefix": f"{_VECTOR}:ByPrefix",
}

for _name, _home in _HOMES.items():
    register_rule(_name, _home)
