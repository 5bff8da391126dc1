"""From Elephas's arguments to a plan and a schedule. Runs on the driver; nothing here is live.

Workers send updates: their weights before a round minus their weights after it. `mode` says how they meet, `frequency`
how long a round is, and the optimizer, if given, what the server does with an update.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from keraunos.compat.elephas.enums.frequency import Frequency
from keraunos.compat.elephas.enums.modes import Mode
from keraunos.compat.elephas.optimizers import rule_of
from keraunos.errors import JobError, one_of
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.rule_declaration import STRETCHED
from keraunos.job.schedule import Schedule

logger = logging.getLogger(__name__)

MODES = tuple(str(mode) for mode in Mode)
FREQUENCIES = tuple(str(frequency) for frequency in Frequency)
SERVER_MODES = ("http", "socket")

# What Keras's `fit` takes and a worker cannot do, each with the nearest thing that it can.
_ELSEWHERE: Mapping[str, str] = {
    "initial_epoch": "Training continues from the model's weights; say in `epochs` how many more there are to be.",
    "steps_per_epoch": "An epoch goes through all rows; sample the RDD for a shorter one.",
    "validation_steps": "Validation goes through all rows of `validation_data`; give fewer.",
    "validation_batch_size": "Validation uses `batch_size`.",
    "validation_freq": "Validation is done after each epoch.",
    "x": "The rows come from the RDD.",
    "y": "The labels come from the RDD.",
}


@dataclass(frozen=True)
class FitOptions:
    """The checked arguments of `fit` and `train`.

    Attributes:
        num_workers: in place of the constructor's; `None` leaves that.
        validation: rows to validate on, as (features, labels) or as an RDD of such pairs.
        weighted: whether elements are (features, label, weight).
    """

    epochs: int = 10
    batch_size: int = 32
    verbose: int | str = 0
    validation_split: float = 0.0
    validation: Any = None
    callbacks: tuple[Any, ...] = ()
    listeners: tuple[Any, ...] = ()
    class_weight: Mapping[int, float] = field(default_factory=dict)
    shuffle: bool = True
    seed: int = 0
    num_workers: int | None = None
    weighted: bool = False


def plan_of(mode: Any, frequency: Any, optimizer: Any = None) -> ExchangePlan:
    """How workers share parameters."""
    for name, value, known in (("mode", mode, MODES), ("frequency", frequency, FREQUENCIES)):
        if value not in known:
            raise JobError(one_of(name, value, known))
    every = "epoch" if frequency == Frequency.EPOCH else 1
    rule = rule_of(optimizer)
    meet = str(mode)
    if rule is not None:
        return ExchangePlan("updates", every, meet, rule)
    if mode != Mode.SYNCHRONOUS:
        # A batch's update is a step like any other; updates of whole epochs would overshoot if each were applied whole.
        return ExchangePlan("updates", every, meet, "add", scale=1.0 if every == 1 else STRETCHED)
    if every == 1:
        # The mean of updates of one step each, but with an optimizer that steps by the mean gradient.
        return ExchangePlan.named("allreduce")
    return ExchangePlan("updates", every, meet, "mean")


def fit_options(arguments: Mapping[str, Any], defaults: Mapping[str, Any]) -> FitOptions:
    """Returns the arguments of `fit` or `train`; names of older releases are translated."""
    given = {_NEWER.get(name, name): value for name, value in arguments.items()}
    if len(given) < len(arguments):
        raise JobError(f"`epochs` must be given once. Received: {dict(arguments)!r}.")
    for name, value in given.items():
        if name in _ELSEWHERE:
            raise JobError(f"`{name}` must be left out of a fit on Spark. Received: {value!r}. {_ELSEWHERE[name]}")
        if name not in FitOptions.__dataclass_fields__:
            close = difflib.get_close_matches(name, FitOptions.__dataclass_fields__, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            known = ", ".join(_OLDER.get(each, each) for each in FitOptions.__dataclass_fields__)
            raise JobError(f"`fit` has no argument {name!r}.{hint} Expected some of: {known}.")
    values = {**defaults, **{name: value for name, value in given.items() if value is not None}}
    if not isinstance(values.get("weighted", False), bool):
        raise JobError(
            "`sample_weight` must be True, for an RDD of (features, label, weight), or left out. Received: "
            f"{type(values['weighted']).__name__}. Put each row's weight beside it."
        )
    for name in ("callbacks", "listeners"):
        values[name] = _sequence(values.get(name, ()))
    values["validation_split"] = float(values.get("validation_split", 0.0))
    _check_workers(values.get("num_workers"))
    if values.get("validation") is not None and given.get("validation_split"):
        raise JobError(
            "`validation_data` and `validation_split` both say which rows to validate on. Expected one of them. "
            f"Received: both, validation_split={given['validation_split']!r}."
        )
    if values.get("validation") is not None:
        values["validation_split"] = 0.0
    return FitOptions(**values)


def schedule_of(options: FitOptions) -> Schedule:
    """Returns how long workers train and in what portions."""
    if not options.shuffle:
        logger.warning(
            "shuffle=False: every epoch takes a worker's rows in one order, which follows from what they hold and is "
            "not that of the RDD."
        )
    return Schedule(
        epochs=options.epochs,
        batch_size=options.batch_size,
        seed=options.seed,
        shuffle=bool(options.shuffle),
        validation_split=options.validation_split,
        class_weight=dict(options.class_weight),
    )


def workers_of(asked: int | None, partitions: int | None, slots: int) -> int:
    """How many workers train: as many as were asked for or as there are partitions, at most as many as can run."""
    _check_workers(asked)
    wanted = asked or partitions or slots
    if asked is not None and asked > slots:
        logger.warning(
            "num_workers=%d, but Spark can run %d task(s) at once: %d worker(s) train, on all rows. Give Spark more "
            "cores for more workers.", asked, slots, slots,
        )  # fmt: skip
    return max(1, min(wanted, slots))


def check_server_mode(value: Any) -> None:
    """Raises an error for a value unknown to Elephas; its two kinds of server are one here."""
    if value not in SERVER_MODES:
        raise JobError(one_of("parameter_server_mode", value, SERVER_MODES))


def _check_workers(value: Any) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise JobError(f"`num_workers` must be a whole number of at least 1, or None. Received: {value!r}.")


def _sequence(given: Any) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, (list, tuple)) else (given,)


_NEWER = {"nb_epoch": "epochs", "validation_data": "validation", "sample_weight": "weighted"}
_OLDER = {"validation": "validation_data", "weighted": "sample_weight"}
