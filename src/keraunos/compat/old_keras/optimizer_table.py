"""Optimizers of Keras 0, 1 and 2: their arguments in the order of that day, and today's. Plain data.

`clipnorm` was of all gradients together, which is `global_clipnorm` today.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class OptimizerSignature:
    """One optimizer as it was called.

    Attributes:
        order: the names of its arguments in their order until Keras 2.2.
        in_tensorflow: the same for those of TensorFlow 2, where others have moved in between.
        defaults: defaults that are not today's, by today's names.
        squared: whether `epsilon` was added to the root from Keras 1 on and is added below it today, so that its square
            is meant; in Keras 0 it was below, too.
    """

    order: str
    in_tensorflow: str
    defaults: Mapping[str, Any] = field(default_factory=dict)
    squared: bool = False


OPTIMIZERS: Mapping[str, OptimizerSignature] = {
    "SGD": OptimizerSignature("lr momentum decay nesterov", "learning_rate momentum nesterov", {"learning_rate": 0.01}),
    "RMSprop": OptimizerSignature(
        "lr rho epsilon decay",
        "learning_rate rho momentum epsilon centered",
        {"learning_rate": 0.001},
        squared=True,
    ),
    "Adagrad": OptimizerSignature(
        "lr epsilon decay",
        "learning_rate initial_accumulator_value epsilon",
        {"learning_rate": 0.01, "initial_accumulator_value": 0.0},
        squared=True,
    ),
    "Adadelta": OptimizerSignature("lr rho epsilon decay", "learning_rate rho epsilon", {"learning_rate": 1.0}),
    "Adam": OptimizerSignature(
        "lr beta_1 beta_2 epsilon decay amsgrad",
        "learning_rate beta_1 beta_2 epsilon amsgrad",
        {"learning_rate": 0.001},
    ),
    "Adamax": OptimizerSignature(
        "lr beta_1 beta_2 epsilon decay", "learning_rate beta_1 beta_2 epsilon", {"learning_rate": 0.002}
    ),
}
# Its momentum followed `schedule_decay`; today's follows another schedule.
REFUSED_OPTIMIZERS: Mapping[str, str] = {
    "Nadam": "Today's follows another schedule of its momentum, without schedule_decay. Use Adam.",
    "TFOptimizer": "Use an optimizer of Keras.",
}
# `lr` is today's learning_rate; `clipnorm` counts all gradients together.
RENAMED: Mapping[str, str] = {"lr": "learning_rate", "clipnorm": "global_clipnorm"}
