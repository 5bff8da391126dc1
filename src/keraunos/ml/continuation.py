"""What a training goes on from: an earlier one's weights, optimizer and rule. Runs on the driver."""

from __future__ import annotations

import io
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from keraunos.errors import JobError
from keraunos.formats.registry import format_named
from keraunos.job.rule_spec import RuleSpec
from keraunos.job.training_job import TrainingJob
from keraunos.launch.rule_memory import RuleMemory
from keraunos.launch.session_trust import session_trust
from keraunos.learners.archive_parts import arrays_in
from keraunos.ml.live_models import LiveModels
from keraunos.trust import trusting

if TYPE_CHECKING:
    from keraunos.ml.fitter import Fitter
    from keraunos.ml.model import FittedModel

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RuleState:
    """What the rule on the driver's server remembered when a training was over."""

    rule: RuleSpec
    arrays: tuple[npt.NDArray[Any], ...]

    def to_bytes(self) -> bytes:
        """The content of a file that `from_bytes` reads."""
        buffer = io.BytesIO()
        np.savez(buffer, **{str(place): each for place, each in enumerate(self.arrays)})  # type: ignore[arg-type]  # see numpy's stub
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, rule: Mapping[str, Any], content: bytes) -> RuleState:
        """What `to_bytes` wrote of a rule."""
        found = arrays_in(content)
        if found.keys() != {str(place) for place in range(len(found))}:
            raise JobError(
                "The state of a saved rule must be arrays that are numbered from 0. Received: "
                f"{', '.join(map(repr, sorted(found)[:5]))}. Save the model again."
            )
        return cls(RuleSpec.from_saved(rule), tuple(found[str(place)] for place in range(len(found))))


def model_to_train(params: Fitter) -> Any:
    """The model that a fit begins with: a copy of `initialModel`, with its optimizer's state, or `model`."""
    given = params.getModel()
    value = params.getInitialModel()
    if value is None:
        return given
    kind = format_named(params.live.format)
    if _is_archive(params, value):
        with trusting(*session_trust(), *params.getTrustedModules()):
            model = kind.read(Path(value).read_bytes(), params.getCustomObjects())
    else:
        fitted = fitted_of(value, params.getTrustedModules())
        if fitted.format != params.live.format:
            raise JobError(
                f"`initialModel` must be a fitted model of the format {params.live.format!r}, which this estimator "
                f"trains. Received: {value!r}, of the format {fitted.format!r}."
            )
        known = {**fitted.getCustomObjects(), **params.getCustomObjects()}
        model = kind.read(fitted._trained.archive, known, fitted._trained.trusted)
    if given is not None:
        _check_alike(params.live, given, model)
    return model


def rule_memory(params: Fitter, job: TrainingJob) -> RuleMemory | None:
    """What carries the rule's state from one fit to the next; `None` where the driver has no rule."""
    plan, value = job.exchange, params.getInitialModel()
    if plan.applies_on_workers:
        return None
    on_driver = job.placement.on_driver
    state = None if value is None or _is_archive(params, value) else _rule_of(params, value)
    goes_on = on_driver and state is not None and state.rule == plan.rule
    if value is not None and plan.rule.is_optimizer and not goes_on:
        why = "its state is carried on only where servers='driver'" if not on_driver else f"it has {_told(state)}"
        logger.warning("The rule %s begins anew behind `initialModel`: %s.", plan.rule, why)
    if not on_driver:
        return None
    return RuleMemory(list(state.arrays) if state is not None and goes_on else [])


def _told(state: RuleState | None) -> str:
    return "no state of a rule" if state is None else f"the state of another one, {state.rule}"


def _rule_of(params: Fitter, value: Any) -> RuleState | None:
    return fitted_of(value, params.getTrustedModules())._trained.rule


def fitted_of(value: Any, trusted: Sequence[str] = ()) -> FittedModel:
    """The fitted model itself, or the one at a path, alone or in a pipeline; `trusted` are modules that it may name."""
    from keraunos.ml.model import FittedModel

    if isinstance(value, FittedModel):
        return value
    from pyspark.ml.util import DefaultParamsReader
    from pyspark.sql import SparkSession

    with trusting(*trusted):
        found = DefaultParamsReader.loadParamsInstance(value, SparkSession.builder.getOrCreate())
    stages = [each for each in getattr(found, "stages", [found]) if isinstance(each, FittedModel)]
    if len(stages) != 1:
        raise JobError(
            f"`initialModel` must be the path of a fitted Keras model, or of a pipeline with one. Received: {value!r}, "
            f"which holds {type(found).__name__} with {len(stages)} of them."
        )
    return stages[0]


def _is_archive(params: Fitter, value: Any) -> bool:
    """Whether this is the path of a model's archive alone, and not of a saved stage."""
    return isinstance(value, str) and value.endswith(PurePath(format_named(params.live.format).file_name).suffix)


def _check_alike(live: LiveModels, given: Any, initial: Any) -> None:
    """Refuse a `model` that was made otherwise than the one that is trained in its place."""
    ours, theirs = live.identity(given), live.identity(initial)
    differing = [name for name in ours if ours[name] != theirs[name]]
    if differing:
        raise JobError(
            f"`model` and `initialModel` must have the same layers and be compiled alike, since the second is trained "
            f"in place of the first. Received: another {differing[0]}, {ours[differing[0]]!r} and "
            f"{theirs[differing[0]]!r}. Leave `model` out to go on with `initialModel` as it is."
        )
