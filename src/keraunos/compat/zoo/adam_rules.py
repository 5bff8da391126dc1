"""What Analytics Zoo's own Adams compute, element by element. Runs where the parameters live."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from keraunos.compat.zoo.rules import Adam, BigDLRule
from keraunos.exchange.rules.elementwise import Block
from keraunos.job.rule_spec import register_rule


class ZooAdam(Adam):
    """BigDL's `Adam` of `g + weightdecay x`."""

    def update(self, block: Block) -> None:
        """Move one block in place by its clipped gradient."""
        if self.option("weightdecay"):
            np.multiply(block.parameters, self.option("weightdecay"), out=block.scratch[0])
            np.add(block.gradient, block.scratch[0], out=block.gradient)
        super().update(block)


class AdamWeightDecay(BigDLRule):
    """`m` and `v` as of Adam; `x -= rate (m / (√v + epsilon) + weight_decay x)`."""

    def first_slots(self) -> Sequence[float]:
        """The means of the gradient and of its square."""
        return [0.0, 0.0]

    def rate_at(self, step: int) -> float:
        """The learning rate of a step."""
        options = self.plan.rule.options
        return warmed(options, self._rate, int(options.get("steps_before") or 0) + step - 1)

    def update(self, block: Block) -> None:
        """Move one block in place by its clipped gradient."""
        gradient, (mean, squares), (other, *_) = block.gradient, block.slots, block.scratch
        beta1, beta2 = self.option("beta1"), self.option("beta2")
        np.multiply(gradient, 1.0 - beta1, out=other)
        np.multiply(mean, beta1, out=mean)
        np.add(mean, other, out=mean)
        np.multiply(gradient, gradient, out=gradient)
        np.multiply(gradient, 1.0 - beta2, out=gradient)
        np.multiply(squares, beta2, out=squares)
        np.add(squares, gradient, out=squares)
        np.sqrt(squares, out=other)
        np.add(other, self.option("epsilon"), out=other)
        np.divide(mean, other, out=gradient)
        np.multiply(block.parameters, self.option("weight_decay"), out=other)
        np.add(gradient, other, out=gradient)
        np.multiply(gradient, block.rate, out=gradient)
        np.subtract(block.parameters, gradient, out=block.parameters)


def warmed(options: Mapping[str, Any], rate: float, steps: int) -> float:
    """The rate after so many steps: it grows over the warm-up's share of `total`, and falls then."""
    total, portion = int(options["total"]), float(options["warmup_portion"])
    if total <= 0:
        return rate
    done = min(steps / total, 1.0)
    if done < portion:
        return rate * done / portion
    falls = {"constant": 1.0, "cosine": 0.5 * (1.0 + math.cos(math.pi * done)), "linear": 1.0 - done}
    return rate * falls[str(options["schedule"])]


_HERE = "keraunos.compat.zoo.adam_rules"
register_rule("zoo_adam", f"{_HERE}:ZooAdam")
register_rule("zoo_adam_weight_decay", f"{_HERE}:AdamWeightDecay")
