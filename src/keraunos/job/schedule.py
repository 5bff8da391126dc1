"""How long, in what portions and in what order a job trains. Runs on the driver and on workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from keraunos.errors import JobError, one_of

REMAINDERS = ("keep", "join", "drop")


@dataclass(frozen=True)
class Schedule:
    """How long a job trains and what a step is.

    Attributes:
        batch_size: rows per worker per step.
        batch_total: rows per step over all workers, instead of `batch_size`: each worker takes an equal part, the first
            ones one row more.
        remainder: what becomes of the rows behind an epoch's last whole batch. `"keep"`: they are a short batch;
            `"join"`: so they are, but a single row joins the batch before; `"drop"`: they are left out.
        first_epoch: the epoch to begin with, counted from 0, where those before it were trained earlier.
        draws: an epoch is that many batches, each a fresh random choice among the rows, instead of every row once.
        class_weight: the factor on the weights of a class's rows, by class.
        lap: after how many steps of the training, counted over epochs, the workers meet the driver, besides at each
            epoch's end; `None` for only there.
            Validation rows are evaluated at the end of every lap, and a round ends with it, however long rounds are.
        steps: how many steps there are in all, instead of `epochs`: the last epoch may be cut short. Where workers
            do not wait for each other, each takes that many.
        validation_lap: after how many steps of the training validation rows are evaluated, besides at each epoch's end;
            0 for only there, `None` for at the end of every lap. Laps must end there.
        validation_remainder: what becomes of validation rows behind their last whole batch; `None` for the same as in
            training. A graph fills up a batch that is too short for it.
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
    batch_total: int | None = None
    remainder: str = "keep"
    draws: int | None = None
    first_epoch: int = 0
    validation_lap: int | None = None
    validation_remainder: str | None = None

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "lap", "steps", "batch_total", "draws"):
            value = getattr(self, name)
            if value is None and name in {"lap", "steps", "batch_total", "draws"}:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise JobError(f"`{_camel(name)}` must be a whole number of at least 1. Received: {value!r}.")
        if self.first_epoch and (self.steps is not None or not 0 <= self.first_epoch < self.epochs):
            raise JobError(
                f"The epoch to begin with must be one of the {self.epochs} epochs. Received: {self.first_epoch!r}."
            )
        if not 0.0 <= self.validation_split < 1.0:
            raise JobError(
                "`validationSplit` must be a fraction from 0 up to, not including, 1. "
                f"Received: {self.validation_split!r}."
            )
        if self.learning_rate is not None and not self.learning_rate > 0:
            raise JobError(f"`learningRate` must be above 0. Received: {self.learning_rate!r}.")
        for name in ("remainder", "validation_remainder"):
            value = getattr(self, name)
            if value not in REMAINDERS and not (value is None and name == "validation_remainder"):
                raise JobError(one_of(name, value, REMAINDERS))

    def batch_of(self, rank: int, workers: int) -> int:
        """How many rows a batch of that rank has."""
        if self.batch_total is None:
            return self.batch_size
        part, more = divmod(self.batch_total, workers)
        return part + (1 if rank < more else 0)

    def steps_of(self, rows: int, rank: int, workers: int) -> int:
        """How many batches that rank has in an epoch, by the rows it trains on."""
        if self.draws is not None:
            return self.draws if rows else 0
        return count_batches(rows, self.batch_of(rank, workers), self.remainder)

    def rows_of(self, rows: int, rank: int, workers: int) -> int:
        """How many rows the batches of an epoch hold on that rank, which trains on `rows` different ones."""
        batch = self.batch_of(rank, workers)
        if self.draws is not None:
            return self.draws * min(rows, batch)
        return count_batches(rows, batch, self.remainder) * batch if self.remainder == "drop" else rows

    def validates_after(self, steps: int, *, ends_epoch: bool) -> bool:
        """Whether validation rows are evaluated at the end of a lap, behind so many steps of the training."""
        if self.validation_lap is None or ends_epoch:
            return True
        return bool(self.validation_lap) and steps % self.validation_lap == 0

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` reads back."""
        return asdict(self) | {"class_weight": [[label, weight] for label, weight in self.class_weight.items()]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Schedule:
        """The schedule that `to_json` described."""
        return cls(**{**data, "class_weight": {int(label): float(weight) for label, weight in data["class_weight"]}})


def count_batches(rows: int, batch_size: int, remainder: str = "keep") -> int:
    """How many batches so many rows make."""
    whole, rest = divmod(rows, batch_size)
    left_out = remainder == "drop" or (remainder == "join" and rest == 1 and whole)
    return whole if left_out else whole + (1 if rest else 0)


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(word.title() for word in tail)
