"""A fit that has been prepared and not yet run. Runs on the driver.

Estimators that can say beforehand what a fit would do have a method `plan_fit(dataset, workers=None)` that gives a
`FitPlan`: whoever has it can run the job on Spark, or in one task of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from keraunos.job.saving import Checkpoints
from keraunos.job.training_job import TrainingJob
from keraunos.launch.rule_memory import RuleMemory
from keraunos.launch.training_result import TrainingResult


@dataclass(frozen=True)
class FitPlan:
    """A job, the rows it reads, and what makes a fitted model of its result.

    `callbacks` and `listeners` are live objects of the driver, so that a plan with some runs on Spark only.
    `checkpoints` are for one training, so that a search, which is many, refuses them. `memory` carries what a server's
    rule remembers into the fit and out of it.
    """

    job: TrainingJob
    rows: Any
    finish: Callable[[TrainingResult], Any]
    custom_objects: Mapping[str, Any] = field(default_factory=dict)
    callbacks: Sequence[Any] = ()
    listeners: Sequence[Any] = ()
    checkpoints: Checkpoints | None = None
    memory: RuleMemory | None = None
