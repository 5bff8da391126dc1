"""What `fit_program` is told to do, as plain data; read without any framework."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any


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
    """

    name: str
    shuffled: bool = False
    params: dict[str, Any] = field(default_factory=dict)
    slots: int = 1
    hold_at: int | None = None
    stop_at: int | None = None


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
