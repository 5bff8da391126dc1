"""The events of a fit, one frozen dataclass per kind. Runs on the driver.

An event contains plain data. `to_json` returns it as an object for JSON, and `event_from_json` converts it back:
`KINDS` maps the name of each kind to its class. Epochs are counted from 0, times are seconds since 1970, and an unknown
number is `None`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any, ClassVar

from keraunos.errors import DataError, one_of

Metrics = Mapping[str, float]
Facts = Mapping[str, Any]

TRAINED, STOPPED, DIVERGED, INTERRUPTED, FAILED = OUTCOMES = (
    "trained",
    "stopped",
    "diverged",
    "interrupted",
    "failed",
)


@dataclass(frozen=True)
class RankProgress:
    """The progress of one rank.

    Attributes:
        rows: the rows that it has read, in all epochs.
        steps: the steps that it has taken, in all epochs.
        seconds_per_step: its own work per step, without waiting for others; 0 before the first measurement.
        waiting: the share of its time that it waited for others.
        bytes_sent: how many bytes it has sent over sockets, without heartbeats.
        bytes_received: how many bytes it has received over sockets, without heartbeats.
        bytes_shared: how many bytes it has exchanged, in both directions, through memory that it shares with servers
            on its host.
        staleness: how many contributions of others were applied after the worker received the parameters from which it
            computed its last contribution, and before that contribution; `None` under synchronous plans and `hogwild`.
    """

    rank: int
    host: str
    rows: int
    steps: int
    seconds_per_step: float
    waiting: float
    bytes_sent: int | None = None
    bytes_received: int | None = None
    bytes_shared: int | None = None
    staleness: int | None = None


@dataclass(frozen=True, kw_only=True)
class FitEvent:
    """The base class of all events.

    Attributes:
        fit: the name of the fit, unique and the same in all of its events.
        time: when it happened.
    """

    kind: ClassVar[str] = ""

    fit: str = ""
    time: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Returns plain data that `event_from_json` reads back; numbers that JSON cannot represent become strings."""
        return {"kind": self.kind} | {each.name: _plain(getattr(self, each.name)) for each in fields(self)}


@dataclass(frozen=True, kw_only=True)
class Started(FitEvent):
    """The first event of every fit.

    Attributes:
        job: the job as plain data: columns, schedule, patience and so on.
        plan: how workers exchange parameters.
        parameters: the number of trained and exchanged values.
        executors: the number of Spark's executors, or 1 if Spark runs only on the driver's host.
        slots: how many tasks Spark can run at once.
    """

    kind: ClassVar[str] = "started"

    job: Facts
    plan: Facts
    workers: int
    servers: str
    parameters: int | None = None
    executors: int | None = None
    slots: int | None = None


@dataclass(frozen=True, kw_only=True)
class Resumed(FitEvent):
    """The training resumes from a checkpoint or, with number 0, is launched again from its beginning.

    Everything reported before that is not in the checkpoint is done again.

    Attributes:
        checkpoint: its number.
        epochs: the metrics of the completed epochs.
    """

    kind: ClassVar[str] = "resumed"

    checkpoint: int
    epochs: tuple[Metrics, ...] = ()


@dataclass(frozen=True, kw_only=True)
class WorkerJoined(FitEvent):
    """A worker has joined, for the first time or again."""

    kind: ClassVar[str] = "worker_joined"

    rank: int
    host: str


@dataclass(frozen=True, kw_only=True)
class WorkerReady(FitEvent):
    """A worker has read its rows."""

    kind: ClassVar[str] = "worker_ready"

    rank: int
    host: str
    rows: int
    validation_rows: int


@dataclass(frozen=True, kw_only=True)
class Expected(FitEvent):
    """The amount of work, as far as it is known; published again if later workers of an asynchronous plan join.

    Attributes:
        rows: how many rows the whole training reads in all epochs.
        epochs: the number of epochs.
    """

    kind: ClassVar[str] = "expected"

    rows: int
    epochs: int


@dataclass(frozen=True, kw_only=True)
class Notice(FitEvent):
    """An event whose `message` the driver's log also contains."""

    message: str


@dataclass(frozen=True, kw_only=True)
class Warned(Notice):
    """A warning without its own kind."""

    kind: ClassVar[str] = "warning"


@dataclass(frozen=True, kw_only=True)
class WorkerSlow(Notice):
    """A worker's steps take much longer than the others'; published once per worker.

    Attributes:
        seconds_per_step: its own work per step.
        median: the median of all workers.
    """

    kind: ClassVar[str] = "worker_slow"

    rank: int
    host: str
    seconds_per_step: float
    median: float


@dataclass(frozen=True, kw_only=True)
class WorkerLost(Notice):
    """A worker, or the server of a slice, has sent no heartbeat for some seconds; the fit waits for it."""

    kind: ClassVar[str] = "worker_lost"

    rank: int
    host: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class WorkerReturned(Notice):
    """A worker is back: it sends heartbeats again, or was started again after its process was lost."""

    kind: ClassVar[str] = "worker_returned"

    rank: int
    host: str
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class WorkerLeftOut(Notice):
    """The training continues without a worker and its rows, from an epoch on."""

    kind: ClassVar[str] = "worker_left_out"

    rank: int
    host: str
    epoch: int
    rows: int


@dataclass(frozen=True, kw_only=True)
class Progressed(FitEvent):
    """The progress of the training; published at most twice a second.

    Attributes:
        rows: how many rows were read since the training began, by all ranks.
        metrics: the metrics of the epoch so far, without validation.
    """

    kind: ClassVar[str] = "progress"

    epoch: int
    rows: int
    metrics: Metrics
    ranks: tuple[RankProgress, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LapClosed(FitEvent):
    """A lap is over.

    Attributes:
        step: how many steps have been taken since the training began.
        rows: how many rows were read since the training began, by all ranks.
        metrics: the metrics of this lap alone, of training and validation.
        epoch_metrics: the metrics of its epoch up to here.
        last: whether training ends here.
    """

    kind: ClassVar[str] = "lap_closed"

    epoch: int
    step: int
    rows: int
    metrics: Metrics
    epoch_metrics: Metrics
    last: bool


@dataclass(frozen=True, kw_only=True)
class EpochClosed(FitEvent):
    """An epoch is over, or training has ended within it.

    Attributes:
        metrics: the metrics of training and validation, as in the history.
        diverged: whether training ended in this epoch because values were not finite.
    """

    kind: ClassVar[str] = "epoch_closed"

    epoch: int
    metrics: Metrics
    diverged: bool = False


@dataclass(frozen=True, kw_only=True)
class CheckpointWritten(FitEvent):
    """A checkpoint was written completely."""

    kind: ClassVar[str] = "checkpoint_written"

    number: int


@dataclass(frozen=True, kw_only=True)
class Diverged(Notice):
    """Training ends early because values are not finite; `reason` says which, and where."""

    kind: ClassVar[str] = "diverged"

    reason: str


@dataclass(frozen=True, kw_only=True)
class Ended(FitEvent):
    """The last event of every fit.

    Attributes:
        how: `"trained"` (to the end of its schedule), `"stopped"` (by a callback or hook), `"diverged"`,
            `"interrupted"` (by Ctrl-C) or `"failed"`.
        why: the reason or the error; `None` for a training that was completed or stopped.
        skipped_rows: as in the history.
        lost_rows: as in the history.
    """

    kind: ClassVar[str] = "ended"

    how: str
    why: str | None = None
    skipped_rows: int = 0
    lost_rows: int = 0


KINDS: Mapping[str, type[FitEvent]] = {
    each.kind: each
    for each in (
        Started,
        Resumed,
        WorkerJoined,
        WorkerReady,
        Expected,
        Warned,
        WorkerSlow,
        WorkerLost,
        WorkerReturned,
        WorkerLeftOut,
        Progressed,
        LapClosed,
        EpochClosed,
        CheckpointWritten,
        Diverged,
        Ended,
    )
}


def event_from_json(data: Facts) -> FitEvent:
    """Returns the event that `to_json` described."""
    kind = str(data.get("kind"))
    if kind not in KINDS:
        raise DataError(one_of("kind", kind, KINDS))
    known = [each for each in fields(KINDS[kind]) if each.name in data]
    try:
        return KINDS[kind](**{each.name: _READERS[str(each.type)](data[each.name]) for each in known})
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise DataError(
            f"An event of kind {kind!r} must have all of its fields. Received: {data!r} ({error})."
        ) from error


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _optional(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


def _metrics(data: Facts) -> dict[str, float]:
    return {str(name): float(value) for name, value in data.items()}


def _rank(data: Facts) -> RankProgress:
    known = [each for each in fields(RankProgress) if each.name in data]
    return RankProgress(**{each.name: _READERS[str(each.type)](data[each.name]) for each in known})


# By the annotation of a field.
_READERS: Mapping[str, Callable[[Any], Any]] = {
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "int | None": _optional(int),
    "float | None": _optional(float),
    "str | None": _optional(str),
    "Facts": dict,
    "Metrics": _metrics,
    "tuple[Metrics, ...]": lambda rows: tuple(map(_metrics, rows)),
    "tuple[RankProgress, ...]": lambda ranks: tuple(map(_rank, ranks)),
}
