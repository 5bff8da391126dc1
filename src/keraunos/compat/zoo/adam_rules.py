"""The formulas of Analytics Zoo's own Adams, element by element. Runs where the parameters live."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from keraunos.compat.zoo.rules import BigDLAdam
from keraunos.exchange.rules.elementwise import Block
from keraunos.exchange.rules.elementwise_optimizers import add_product
from keraunos.job.rule_spec import register_rule


class ZooAdam(BigDLAdam):
    """BigDL's `Adam` of `g + weightdecay x`."""


class ZooAdamWeightDecay(BigDLAdam):
    """`m` and `v` as of Adam; `x -= rate (m / (√v + epsilon) + weight_decay x)`."""

    def rate_at(self, step: int) -> float:
        """Returns the learning rate of a step."""
        options = self.plan.rule.options
        return warmed(options, self._rate, int(options.get("steps_before") or 0) + step - 1)

    def move(self, block: Block) -> None:
        """Move one block in place by its prepared gradient."""
        self.update_means(block)
        gradient, (mean, squares), (root, space) = block.gradient, block.slots, block.scratch
        np.sqrt(squares, out=root)
        np.add(root, self.option("epsilon"), out=root)
        np.divide(mean, root, out=gradient)
        add_product(gradient, block.parameters, self.option("weight_decay"), space)
        np.multiply(gradient, block.rate, out=gradient)
        np.subtract(block.parameters, gradient, out=block.parameters)


def warmed(options: Mapping[str, Any], rate: float, steps: int) -> float:
    """Returns the rate after this many steps: it grows over the warm-up's share of `total`, and falls then."""
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
register_rule("zoo_adam_weight_decay", f"{_HERE}:ZooAdamWeightDecay")
