"""How long, in what portions and in what order a job trains. Runs on the driver and on workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from keraunos.errors import JobError


@dataclass(frozen=True)
class Schedule:
    """How long a job trains and what a step is.

    Attributes:
        batch_size: rows per worker per step.
        class_weight: the factor on the weights of a class's rows, by class.
        lap: after how many steps the workers meet the driver, besides at each epoch's end; `None` for only there.
            Validation rows are evaluated at the end of every lap, and a round ends with it, however long rounds are.
        steps: how many steps there are in all, instead of `epochs`: the last epoch may be cut short. Where workers
            do not wait for each other, each takes that many.
    """

    epochs: int = 1
    batch_size: int = 32
    seed: int = 0
    shuffle: bool = True
    validation_split: float = 0.0
    learning_rate: float | None = None
    class_weight: Mapping[int, float] = field(default_factory=dict)
    lap: int | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "lap", "steps"):
            value = getattr(self, name)
            if value is None and name in {"lap", "steps"}:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise JobError(f"`{_camel(name)}` must be a whole number of at least 1. Received: {value!r}.")
        if not 0.0 <= self.validation_split < 1.0:
            raise JobError(
                "`validationSplit` must be a fraction from 0 up to, not including, 1. "
                f"Received: {self.validation_split!r}."
            )
        if self.learning_rate is not None and not self.learning_rate > 0:
            raise JobError(f"`learningRate` must be above 0. Received: {self.learning_rate!r}.")

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` reads back."""
        return asdict(self) | {"class_weight": [[label, weight] for label, weight in self.class_weight.items()]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Schedule:
        """The schedule that `to_json` described."""
        return cls(**{**data, "class_weight": {int(label): float(weight) for label, weight in data["class_weight"]}})


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(word.title() for word in tail)
