"""The releases of Keras that a program may have been written for. Runs on the driver and on workers; plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Day:
    """A span of releases that mean the same by the same call.

    Attributes:
        name: what `--keras` calls it; `tf2` is `tensorflow.keras` of TensorFlow 2.
        version: what `keras.__version__` was at its end.
        ordering: the default position of an image's channels: 'th' is first, 'tf' is last.
        fit: arguments of `fit` that have another default today.
        measure: the same for `evaluate` and the calls that predict.
        epsilons: the `epsilon` of optimizers if none is given, by class.
        accuracy: the name of a metric that was asked for as 'accuracy'.
        gates: the activation of gates in recurrent layers.
    """

    name: str
    version: str
    ordering: str = "tf"
    fit: Mapping[str, Any] = field(default_factory=dict)
    measure: Mapping[str, Any] = field(default_factory=dict)
    epsilons: Mapping[str, float] = field(default_factory=dict)
    accuracy: str = "acc"
    gates: str = "hard_sigmoid"

    @property
    def waits_longer(self) -> bool:
        """Whether patience ends an epoch later, and the first epoch is 0 in the names of files."""
        return self.name in {"0", "1"}

    @property
    def speaks_keras_2(self) -> bool:
        """Whether the arguments of layers have today's order."""
        return self.name in {"2", "tf2"}


_LATE_EPSILON = 1e-8

DAYS: Mapping[str, Day] = {
    day.name: day
    for day in (
        Day(
            "0",
            "0.3.3",
            ordering="th",
            fit={"batch_size": 128, "epochs": 100},
            measure={"batch_size": 128},
            epsilons={"RMSprop": 1e-6, "Adagrad": 1e-6, "Adadelta": 1e-6, "Adam": 1e-8, "Adamax": 1e-8},
        ),
        Day(
            "1",
            "1.2.2",
            fit={"epochs": 10},
            epsilons=dict.fromkeys(("RMSprop", "Adagrad", "Adadelta", "Adam", "Adamax"), _LATE_EPSILON),
        ),
        Day("2", "2.2.4"),
        Day("tf2", "2.4.0", accuracy="accuracy", gates="sigmoid"),
    )
}
