"""What `fit_program` is told to do, as plain data; read without any framework."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

# The stages of a fit, in their order. All but two are functions of the driver's, at which it can be held.
LAUNCH = "launch"  # before the thread of the Spark job starts
GATHER = "gather"  # workers start and join
LOAD = "load"  # workers read their rows
TRAIN = "train"
CHECKPOINT = "checkpoint"  # the driver writes what is saved
COLLECT = "collect"  # the trained parameters are fetched
END = "end"  # workers are let go
STAGES = (LAUNCH, GATHER, LOAD, TRAIN, CHECKPOINT, COLLECT, END)
HELD = (LAUNCH, GATHER, CHECKPOINT, COLLECT, END)


@dataclass(frozen=True)
class FitSpec:
    """One fit.

    Attributes:
        shuffled: whether the rows come out of a shuffle: a lost executor then takes a part of them with it, and Spark
            starts every rank again, not only the lost one.
        params: of the estimator, besides the model and the columns.
        slots: the fit begins when Spark has so many; an executor that was lost before takes a while to come back.
        hold_at: the epoch after which the driver waits for a line on its stdin.
        stop_at: the epoch after which another thread stops the SparkContext.
        holds: the stages, of those in `HELD`, at which the driver waits for a line on its stdin, once each.
        slow_rows: the milliseconds that it takes to compute a row.
        settings: of Spark's, for this fit; where they are others than the last fit's, Spark is started anew.
    """

    name: str
    shuffled: bool = False
    params: dict[str, Any] = field(default_factory=dict)
    slots: int = 1
    hold_at: int | None = None
    stop_at: int | None = None
    holds: tuple[str, ...] = ()
    slow_rows: int = 0
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ProgramSpec:
    """Which Spark the program uses; `save` is the folder for the trained parameters."""

    master: str
    host: str
    save: str
    settings: dict[str, str] = field(default_factory=dict)


def to_line(spec: FitSpec | ProgramSpec) -> str:
    """One line of JSON, the spec's fields."""
    return json.dumps(asdict(spec))
