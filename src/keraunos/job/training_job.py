"""The waist of the system: everything a fit needs, as plain data. Runs on the driver and on workers.

Every front-end writes a `TrainingJob`; the engine reads nothing else. It is frozen, holds no live object, and
round-trips through JSON plus the bytes of the model archive.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any

from keraunos.errors import JobError, one_of
from keraunos.job.columns import Columns
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.schedule import Schedule

BACKENDS = ("jax", "tensorflow", "torch")

_HEADER_LENGTH = struct.Struct("!Q")


@dataclass(frozen=True)
class ModelSource:
    """A compiled model as an archive, and the framework that is to run it."""

    archive: bytes
    backend: str
    floatx: str = "float32"
    format: str = "keras"

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise JobError(one_of("backend", self.backend, BACKENDS))

    def to_json(self) -> dict[str, Any]:
        """Everything but the archive, as plain data."""
        return {"backend": self.backend, "floatx": self.floatx, "format": self.format}


@dataclass(frozen=True)
class TrainingJob:
    """What to train, on which columns, for how long, on how many workers, and how they share parameters."""

    model: ModelSource
    columns: Columns
    schedule: Schedule
    exchange: ExchangePlan
    workers: int
    memory_budget: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.workers, bool) or not isinstance(self.workers, int) or self.workers < 1:
            raise JobError(f"`numWorkers` must be a whole number of at least 1. Received: {self.workers!r}.")
        if self.memory_budget is not None and self.memory_budget < 1:
            raise JobError(f"`memoryBudget` must be a number of bytes above 0. Received: {self.memory_budget!r}.")

    def to_bytes(self) -> bytes:
        """One blob: the length of the JSON, the JSON, the model archive."""
        header = json.dumps(
            {
                "model": self.model.to_json(),
                "columns": self.columns.to_json(),
                "schedule": self.schedule.to_json(),
                "exchange": self.exchange.to_json(),
                "workers": self.workers,
                "memory_budget": self.memory_budget,
            }
        ).encode()
        return _HEADER_LENGTH.pack(len(header)) + header + self.model.archive

    @classmethod
    def from_bytes(cls, blob: bytes) -> TrainingJob:
        """The job that `to_bytes` wrote."""
        start = _HEADER_LENGTH.size
        (length,) = _HEADER_LENGTH.unpack_from(blob)
        data = json.loads(blob[start : start + length])
        return cls(
            model=ModelSource(archive=blob[start + length :], **data["model"]),
            columns=Columns.from_json(data["columns"]),
            schedule=Schedule.from_json(data["schedule"]),
            exchange=ExchangePlan.from_json(data["exchange"]),
            workers=data["workers"],
            memory_budget=data["memory_budget"],
        )
