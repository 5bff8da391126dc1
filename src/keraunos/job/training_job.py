"""The waist of the system: everything a fit needs, as plain data. Runs on the driver and on workers.

Every front-end writes a `TrainingJob`; the engine reads nothing else. It is frozen, holds no live object, and
round-trips through JSON plus the bytes of the model archive.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from keraunos.errors import JobError, PlanError, one_of
from keraunos.job import model_formats
from keraunos.job.columns import Columns
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.format_declaration import FormatDeclaration
from keraunos.job.placement import Placement, placement_of
from keraunos.job.schedule import Schedule

WHEN_LOST = ("stop", "continue")
# A worker gives a sign of life every two seconds; one or two of them may be late.
LEAST_PATIENCE = 5.0
DIVERGENCES = ("stop", "skip", "ignore")

_HEADER_LENGTH = struct.Struct("!Q")


@dataclass(frozen=True)
class ModelSource:
    """A model as an archive, the name of its format, and the framework that is to run it.

    `trusted` are the modules that the archive may name: whoever gets this from the driver may import them. `home` is
    where the class of a registered format is; `None` for those that are built in.
    """

    archive: bytes
    backend: str
    floatx: str = "float32"
    format: str = model_formats.KERAS
    trusted: tuple[str, ...] = ()
    home: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "trusted", tuple(self.trusted))
        object.__setattr__(self, "home", model_formats.checked_home(self.format, self.home))
        declared = model_formats.declared_here(self.format, self.home)
        if declared is not None:
            declared.check_backend(self.backend)

    @property
    def declared(self) -> FormatDeclaration:
        """What the format says about itself; an error where its class cannot be imported."""
        return model_formats.declared(self.format, self.home)

    def to_json(self) -> dict[str, Any]:
        """Everything but the archive, as plain data."""
        return {
            "backend": self.backend,
            "floatx": self.floatx,
            "format": self.format,
            "trusted": list(self.trusted),
            "home": self.home,
        }


@dataclass(frozen=True)
class TrainingJob:
    """What to train, on which columns, for how long, on how many workers, and how they share parameters.

    Attributes:
        servers: where the parameters live: `"driver"`, `"workers"` (each worker holds its part), or a number of
            servers that run as tasks of their own.
        ports: the first and the last port that servers may listen on; `None` for any.
        state_every: after how many rounds a worker leaves its optimizer's state with the driver, to continue from when
            it is lost and started again; 0 for never, `None` for every round of a synchronous plan where that is cheap,
            and every 100 otherwise. Where any live worker has the state, that one is asked.
        worker_patience: for how many seconds a worker that gives no sign of life is waited for.
        driver_patience: for how many seconds workers wait for a driver that is there but silent.
        on_worker_lost: what happens then: `"stop"` ends the fit, `"continue"` goes on without it and its rows.
        stall_report_after: after how many seconds without progress the driver logs where every worker is.
        on_divergence: what happens when a loss, or what a worker is about to share, is not finite: `"stop"` (training
            ends with the last good parameters), `"skip"` (that round is left out) or `"ignore"` (training goes on).
        placement: what follows from `servers`.
    """

    model: ModelSource
    columns: Columns
    schedule: Schedule
    exchange: ExchangePlan
    workers: int
    memory_budget: int | None = None
    servers: str | int = "driver"
    ports: tuple[int, int] | None = None
    state_every: int | None = None
    worker_patience: float = 300.0
    driver_patience: float = 300.0
    on_worker_lost: str = "stop"
    stall_report_after: float = 300.0
    on_divergence: str = "stop"
    placement: Placement = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.workers, bool) or not isinstance(self.workers, int) or self.workers < 1:
            raise JobError(f"`numWorkers` must be a whole number of at least 1. Received: {self.workers!r}.")
        if self.memory_budget is not None and self.memory_budget < 1:
            raise JobError(f"`memoryBudget` must be a number of bytes above 0. Received: {self.memory_budget!r}.")
        total = self.schedule.batch_total
        if total is not None and total < self.workers:
            raise JobError(
                f"`batchTotal` must be at least numWorkers, a row for each of {self.workers}. Received: {total!r}. "
                f"Raise it, or lower numWorkers to {total}."
            )
        declared = model_formats.declared_here(self.model.format, self.model.home)
        if declared is not None:
            declared.check_labels(self.model.format, self.columns.labels)
        object.__setattr__(self, "placement", placement_of(self.servers))
        whole = isinstance(self.state_every, int) and not isinstance(self.state_every, bool) and self.state_every >= 0
        if self.state_every is not None and not whole:
            raise JobError(f"`stateEvery` must be a whole number of at least 0. Received: {self.state_every!r}.")
        check_attendance(
            {
                "workerPatience": self.worker_patience,
                "driverPatience": self.driver_patience,
                "stallReportAfter": self.stall_report_after,
            },
            self.on_worker_lost,
        )
        if self.on_divergence not in DIVERGENCES:
            raise JobError(one_of("onDivergence", self.on_divergence, DIVERGENCES))
        if self.ports is not None:
            object.__setattr__(self, "ports", checked_ports(self.ports))
        check_compression(self.exchange, self.model.floatx)

    @property
    def needs_all_workers(self) -> bool:
        """Whether no worker can go on before all of them run, so that each needs a slot of its own at once."""
        return self.placement.needs_all_workers(self.exchange)

    @property
    def keeps_optimizer(self) -> bool:
        """Whether the trained model gets the state of an optimizer that has stepped on the workers."""
        steps_there = self.exchange.send != "gradients" or self.exchange.applies_on_workers
        return steps_there and self.model.declared.keeps_optimizer

    def facts(self) -> dict[str, Any]:
        """Everything but the model's archive, as plain data."""
        return {
            "model": self.model.to_json(),
            "columns": self.columns.to_json(),
            "schedule": self.schedule.to_json(),
            "exchange": self.exchange.to_json(),
            "workers": self.workers,
            "memory_budget": self.memory_budget,
            "servers": self.servers,
            "ports": self.ports,
            "state_every": self.state_every,
            "worker_patience": self.worker_patience,
            "driver_patience": self.driver_patience,
            "on_worker_lost": self.on_worker_lost,
            "stall_report_after": self.stall_report_after,
            "on_divergence": self.on_divergence,
        }

    def to_bytes(self) -> bytes:
        """One blob: the length of the JSON, the JSON, the model archive."""
        header = json.dumps(self.facts()).encode()
        return _HEADER_LENGTH.pack(len(header)) + header + self.model.archive

    @classmethod
    def from_bytes(cls, blob: bytes | bytearray) -> TrainingJob:
        """The job that `to_bytes` wrote."""
        start = _HEADER_LENGTH.size
        (length,) = _HEADER_LENGTH.unpack_from(blob)
        data = json.loads(blob[start : start + length])
        return cls(
            model=ModelSource(archive=bytes(memoryview(blob)[start + length :]), **data["model"]),
            columns=Columns.from_json(data["columns"]),
            schedule=Schedule.from_json(data["schedule"]),
            exchange=ExchangePlan.from_json(data["exchange"]),
            workers=data["workers"],
            memory_budget=data["memory_budget"],
            servers=data["servers"],
            ports=data["ports"],
            state_every=data["state_every"],
            worker_patience=data["worker_patience"],
            driver_patience=data["driver_patience"],
            on_worker_lost=data["on_worker_lost"],
            stall_report_after=data["stall_report_after"],
            on_divergence=data["on_divergence"],
        )


def check_compression(plan: ExchangePlan, dtype: str) -> None:
    """Refuse to compress a model whose parameters have more precision than travels."""
    if plan.compression is not None and dtype == "float64":
        raise PlanError(
            "`compression` must be left out for a float64 model: it would give up the precision that float64 is "
            f"there for. Received: {plan.compression!r}."
        )


def check_attendance(seconds: Mapping[str, Any], when_lost: Any) -> None:
    """Refuse what is no time to wait, or nothing to do when a worker is lost."""
    for name, value in seconds.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not value >= LEAST_PATIENCE:
            raise JobError(f"`{name}` must be a number of seconds of at least {LEAST_PATIENCE:g}. Received: {value!r}.")
    if when_lost not in WHEN_LOST:
        raise JobError(one_of("onWorkerLost", when_lost, WHEN_LOST))


def checked_ports(ports: Any, name: str = "ports") -> tuple[int, int]:
    """The range of ports; `name` is what an error calls it."""
    pair = tuple(ports) if isinstance(ports, (tuple, list)) else ()
    whole = all(isinstance(port, int) and not isinstance(port, bool) for port in pair)
    if len(pair) != 2 or not whole or not 1 <= pair[0] <= pair[1] <= 65535:
        raise JobError(
            f"`{name}` must be the first and the last port that servers may listen on, from 1 to 65535. "
            f"Received: {ports!r}."
        )
    return pair[0], pair[1]
