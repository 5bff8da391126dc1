"""How long, in what portions and in what order a job trains. Runs on the driver and on workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from keraunos.errors import JobError


@dataclass(frozen=True)
class Schedule:
    """`batch_size` is rows per worker per step; `class_weight` maps a class to the factor on its rows' weights."""

    epochs: int = 1
    batch_size: int = 32
    seed: int = 0
    shuffle: bool = True
    validation_split: float = 0.0
    learning_rate: float | None = None
    class_weight: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            value = getattr(self, name)
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
