"""What happens in a fit, one frozen dataclass for each kind of thing. Runs on the driver.

An event holds plain data. `to_json` makes an object for JSON of it, and `event_from_json` the same event again: `KINDS`
has every kind by its name. Epochs are counted from 0, times are seconds since 1970, and a number that is not known is
`None`.
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
    """How far one rank is.

    Attributes:
        rows: the rows that it has read, in all epochs.
        steps: the steps that it has taken, in all epochs.
        seconds_per_step: of its own work, without waiting for others; 0 before there are any to measure.
        waiting: the share of its time in which it waited for others.
        bytes_sent: how many bytes it has sent over sockets, without signs of life.
        bytes_received: how many bytes it has received so.
        bytes_shared: how many bytes went through memory that it shares with servers of its host, both ways.
        staleness: how many contributions of others were applied between the parameters that its last one was computed
            with and that one; `None` under synchronous plans and `hogwild`.
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
    """Something that has happened in a fit.

    Attributes:
        fit: the fit's own name, the same in all of its events and in those of no other fit.
        time: when.
    """

    kind: ClassVar[str] = ""

    fit: str = ""
    time: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Plain data that `event_from_json` reads back; values that JSON has no number for become words."""
        return {"kind": self.kind} | {each.name: _plain(getattr(self, each.name)) for each in fields(self)}


@dataclass(frozen=True, kw_only=True)
class Started(FitEvent):
    """The first event of every fit.

    Attributes:
        job: what it is asked to do, as plain data: columns, schedule, patience and so on.
        plan: how workers share parameters.
        parameters: how many numbers are trained and shared.
        executors: how many Spark has, or 1 where it runs on the driver's host alone.
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
    """The training goes on from a checkpoint, or, from number 0, is launched again from its beginning.

    What was told of it until then and is not in the checkpoint is done again.

    Attributes:
        checkpoint: its number.
        epochs: the metrics of the epochs that are over.
    """

    kind: ClassVar[str] = "resumed"

    checkpoint: int
    epochs: tuple[Metrics, ...] = ()


@dataclass(frozen=True, kw_only=True)
class WorkerJoined(FitEvent):
    """A worker has come to the driver, for the first time or again."""

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
    """How much there is to do, as far as it is known; told again where an asynchronous plan's later workers come.

    Attributes:
        rows: how many rows the whole training reads, all epochs together.
        epochs: in how many epochs.
    """

    kind: ClassVar[str] = "expected"

    rows: int
    epochs: int


@dataclass(frozen=True, kw_only=True)
class Notice(FitEvent):
    """Something that the driver's log says, too; `message` is what it says."""

    message: str


@dataclass(frozen=True, kw_only=True)
class Warned(Notice):
    """Something that the user should know, and that has no kind of its own."""

    kind: ClassVar[str] = "warning"


@dataclass(frozen=True, kw_only=True)
class WorkerSlow(Notice):
    """A worker's steps take much longer than the others'; told once.

    Attributes:
        seconds_per_step: of its own work.
        median: that of all workers.
    """

    kind: ClassVar[str] = "worker_slow"

    rank: int
    host: str
    seconds_per_step: float
    median: float


@dataclass(frozen=True, kw_only=True)
class WorkerLost(Notice):
    """A worker, or a server of a slice, has given no sign of life for some seconds, and is waited for."""

    kind: ClassVar[str] = "worker_lost"

    rank: int
    host: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class WorkerReturned(Notice):
    """A worker is back: heard again after it was silent, or started again after its process was lost."""

    kind: ClassVar[str] = "worker_returned"

    rank: int
    host: str
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class WorkerLeftOut(Notice):
    """The training goes on without a worker and its rows, from an epoch on."""

    kind: ClassVar[str] = "worker_left_out"

    rank: int
    host: str
    epoch: int
    rows: int


@dataclass(frozen=True, kw_only=True)
class Progressed(FitEvent):
    """How far the training is; told twice a second at most.

    Attributes:
        rows: how many rows were read since the training began, by all ranks.
        metrics: those of the epoch so far, without validation.
    """

    kind: ClassVar[str] = "progress"

    epoch: int
    rows: int
    metrics: Metrics
    ranks: tuple[RankProgress, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LapClosed(FitEvent):
    """A stretch between two meetings of the workers with the driver is over.

    Attributes:
        step: how many steps have been taken since the training began.
        rows: how many rows were read since the training began, by all ranks.
        metrics: those of this lap alone, of training and validation.
        epoch_metrics: those of its epoch up to here.
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
        metrics: those of training and validation, as the history has them.
        diverged: whether training ended within it because of numbers that are not finite.
    """

    kind: ClassVar[str] = "epoch_closed"

    epoch: int
    metrics: Metrics
    diverged: bool = False


@dataclass(frozen=True, kw_only=True)
class CheckpointWritten(FitEvent):
    """A checkpoint is in its directory, whole."""

    kind: ClassVar[str] = "checkpoint_written"

    number: int


@dataclass(frozen=True, kw_only=True)
class Diverged(Notice):
    """Training ends early because numbers are not finite; `reason` says which, and where."""

    kind: ClassVar[str] = "diverged"

    reason: str


@dataclass(frozen=True, kw_only=True)
class Ended(FitEvent):
    """The last event of every fit.

    Attributes:
        how: `"trained"` (to the end of its schedule), `"stopped"` (a callback or hook said so), `"diverged"`,
            `"interrupted"` (by Ctrl-C) or `"failed"`.
        why: the reason or the error; `None` for a training that went to its end or was stopped.
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
    """The event that `to_json` described."""
    kind = str(data.get("kind"))
    if kind not in KINDS:
        raise DataError(one_of("kind", kind, KINDS))
    known = [each for each in fields(KINDS[kind]) if each.name in data]
    try:
        return KINDS[kind](**{each.name: _READERS[str(each.type)](data[each.name]) for each in known})
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise DataError(
            f"An event of kind {kind!r} must have all of its parts. Received: {data!r} ({error})."
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
