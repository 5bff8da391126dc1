"""What a Param accepts, and what it makes of it. Runs on the driver.

Each function here returns a spark.ml type converter: it takes what a user wrote, returns a value that shares no
mutable container with it, and raises a `JobError` that names the Param. Its annotations say what a user should write
and what is kept; the Param's setter and getter have them from here. Values are checked when they are set, so that the
error points at the line that set them. The answers of an exchange plan have converters without a name: the plan itself
is asked, and names the answer in its message.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from keraunos.errors import ColumnError, JobError, PlanError, one_of
from keraunos.job.columns import ColumnsArgument, Slot
from keraunos.job.exchange_plan import PRESETS, ExchangePlan
from keraunos.job.pixels import Pixels
from keraunos.job.placement import placement_of
from keraunos.job.rule_spec import RuleSpec
from keraunos.job.saving import SaveEvery
from keraunos.job.training_job import checked_ports
from keraunos.launch.fit_events import check_listeners
from keraunos.trust import trusted_names

V = TypeVar("V")
T = TypeVar("T")
Converter = Callable[[V], T]
Columns = ColumnsArgument

BALANCED = "balanced"
VERBOSITIES = ("auto", 0, 1, 2)


def whole_number(name: str, at_least: int | None = None) -> Converter[int, int]:
    """A whole number, numpy's included, no smaller than `at_least`."""

    def convert(value: int) -> int:
        is_whole = isinstance(value, numbers.Integral) or (isinstance(value, float) and float(value).is_integer())
        if isinstance(value, bool | np.bool_) or not is_whole or (at_least is not None and value < at_least):
            bound = "" if at_least is None else f" of at least {at_least}"
            raise JobError(f"`{name}` must be a whole number{bound}. Received: {value!r}.")
        return int(value)

    return convert


def text(name: str) -> Converter[str, str | None]:
    """A text that is not empty, a path object included; `None` for none."""

    def convert(value: str) -> str | None:
        if value is None:
            return None
        plain = os.fspath(value) if isinstance(value, os.PathLike) else value
        if not isinstance(plain, str) or not plain:
            raise JobError(f"`{name}` must be a path. Received: {value!r}.")
        return plain

    return convert


def save_every(value: int | str) -> int | str:
    """How often to save, as it was written."""
    SaveEvery.of(value)
    return value


def positive_number(name: str) -> Converter[float, float]:
    """A number above 0."""

    def convert(value: float) -> float:
        if not _is_number(value) or not value > 0:
            raise JobError(f"`{name}` must be a number above 0. Received: {value!r}.")
        return float(value)

    return convert


def seconds(name: str, at_least: float) -> Converter[float, float]:
    """A time of at least so many seconds."""

    def convert(value: float) -> float:
        if not _is_number(value) or not value >= at_least:
            raise JobError(f"`{name}` must be a number of seconds of at least {at_least:g}. Received: {value!r}.")
        return float(value)

    return convert


def fraction(name: str) -> Converter[float, float]:
    """A number from 0 up to, not including, 1."""

    def convert(value: float) -> float:
        if not _is_number(value) or not 0 <= value < 1:
            raise JobError(f"`{name}` must be a fraction from 0 up to, not including, 1. Received: {value!r}.")
        return float(value)

    return convert


def boolean(name: str) -> Converter[bool, bool]:
    """True or False."""

    def convert(value: bool) -> bool:
        if not isinstance(value, bool | np.bool_):
            raise JobError(f"`{name}` must be True or False. Received: {value!r}.")
        return bool(value)

    return convert


def choice(name: str, known: Sequence[str]) -> Converter[str, str]:
    """One of a few words."""

    def convert(value: str) -> str:
        if type(value) is not str or value not in known:
            raise JobError(one_of(name, value, known))
        return value

    return convert


def verbosity(name: str) -> Converter[int | str, int | str]:
    """How much is shown."""

    def convert(value: int | str) -> int | str:
        if not any(type(value) is type(each) and value == each for each in VERBOSITIES):
            raise JobError(f"`{name}` must be one of {', '.join(map(repr, VERBOSITIES))}. Received: {value!r}.")
        return value

    return convert


def column_name(name: str) -> Converter[str, str]:
    """One column, or an empty string for none."""

    def convert(value: str) -> str:
        if not isinstance(value, str):
            raise ColumnError(f"`{name}` must be the name of a column. Received: {value!r}.")
        return value

    return convert


def if_named(value: str) -> str | None:
    """The name of a column; `None` in place of an empty one."""
    return value or None


def columns(name: str) -> Converter[Columns, Columns]:
    """A column, a list of scalar columns, or a dict from model input or output name to either."""

    def convert(value: Columns) -> Columns:
        Slot.all_from(value, name)
        if isinstance(value, Mapping):
            return {str(key): _one_or_list(each) for key, each in value.items()}
        return _one_or_list(value)

    return convert


def optional_columns(name: str) -> Converter[Columns | None, Columns | None]:
    """The same, or `None`."""
    given = columns(name)

    def convert(value: Columns | None) -> Columns | None:
        return None if value is None else given(value)

    return convert


def output_columns(name: str) -> Converter[str | Mapping[str, str], str | dict[str, str]]:
    """A column, or a dict from model output name to column."""

    def convert(value: str | Mapping[str, str]) -> str | dict[str, str]:
        if isinstance(value, str):
            return value
        if isinstance(value, Mapping) and value and all(isinstance(each, str) for each in value.values()):
            return {str(key): each for key, each in value.items()}
        raise ColumnError(
            f"`{name}` must be a column name, or a dict from model output name to column name. Received: {value!r}."
        )

    return convert


def pixels(value: Mapping[str, Any]) -> dict[str, Any]:
    """How images become numbers: a dict of some options, all of which are kept."""
    return Pixels.of(value).to_json()


def initial_model(name: str) -> Converter[Any, Any]:
    """A fitted model, kept as it is, or a path."""

    def convert(value: Any) -> Any:
        from keraunos.ml.model import FittedModel

        if isinstance(value, FittedModel):
            return value
        if not isinstance(value, str | os.PathLike) or not os.fspath(value):
            raise JobError(
                f"`{name}` must be a fitted Keras model or the path of a saved one. Received: {type(value)!r}. Hand a "
                "Keras model over in `model`; of a fitted pipeline take the stage, as in pipeline.stages[-1]."
            )
        return os.fspath(value)

    return convert


def exchange_plan(name: str) -> Converter[str | ExchangePlan, str | ExchangePlan]:
    """The name of a preset, or an `ExchangePlan`; JSON that a plan wrote is read back."""

    def convert(value: str | ExchangePlan) -> str | ExchangePlan:
        if isinstance(value, ExchangePlan):
            return value
        if isinstance(value, Mapping):
            return ExchangePlan.from_json(value)
        if not isinstance(value, str) or value not in PRESETS:
            raise PlanError(one_of(name, value, PRESETS))
        return str(value)

    return convert


def round_length(name: str) -> Converter[int | str, int | str]:
    """A number of steps, or 'epoch'."""
    steps = whole_number(name, at_least=1)

    def convert(value: int | str) -> int | str:
        if isinstance(value, str):
            if value != "epoch":
                raise JobError(
                    f"`{name}` must be a whole number of steps of at least 1, or 'epoch'. Received: {value!r}."
                )
            return value
        return int(steps(value))

    return convert


def meeting(value: str) -> str:
    """How workers meet, a bound written with it; `bounded` alone may find its bound in the plan that it refines."""
    # Any meeting goes with this plan, so that it refuses nothing else.
    ExchangePlan("gradients", 1, value, "sgd", bound=0 if value == "bounded" else None)
    return str(value)


def rule(value: Any) -> str | RuleSpec:
    """A rule as it is written; what cannot be written in a line (an optimizer object) as its `RuleSpec`."""
    spec = RuleSpec.of(value)
    # A registered rule is kept with its home: who loads it later need not have registered it.
    return value if isinstance(value, str) and spec.home is None else spec


def scale(value: float | str) -> float | str:
    """A factor on contributions, or the name of what gives it."""
    given: float | str = float(value) if _is_number(value) else value
    ExchangePlan("updates", 1, "asynchronous", "add", scale=given)
    return given


def compression(value: str) -> str:
    """How vectors travel."""
    ExchangePlan("updates", 1, "asynchronous", "add", compression=value)
    return str(value)


def servers(value: str | int) -> str | int:
    """A place, or a number of servers."""
    given: str | int = int(value) if isinstance(value, np.integer) else value
    placement_of(given)
    return given


def port_range(name: str) -> Converter[tuple[int, int], list[int]]:
    """The first and the last port; in a list, because spark.ml cannot explain a tuple."""

    def convert(value: tuple[int, int]) -> list[int]:
        return list(checked_ports(value, name))

    return convert


def class_weights(name: str) -> Converter[Mapping[int, float] | str, dict[int, float] | str]:
    """A dict from class to the factor on its rows, or 'balanced'; pairs, as JSON keeps them, do as well."""

    def convert(value: Mapping[int, float] | str) -> dict[int, float] | str:
        if isinstance(value, str) and value == BALANCED:
            return value
        pairs: Any = value
        try:
            weights = {int(label): float(weight) for label, weight in dict(pairs).items()}
        except (TypeError, ValueError):
            weights = {}
        if not weights or any(not weight >= 0 for weight in weights.values()):
            raise JobError(
                f"`{name}` must be a dict from class number to a factor of at least 0, such as {{0: 1.0, 1: 4.0}}, "
                f"or {BALANCED!r}. Received: {value!r}."
            )
        return weights

    return convert


def thresholds(name: str) -> Converter[Sequence[float], list[float]]:
    """One number for each class, none below 0 and at most one of them 0."""

    def convert(value: Sequence[float]) -> list[float]:
        given = list(value) if isinstance(value, list | tuple | np.ndarray) else []
        right = bool(given) and all(_is_number(each) and each >= 0 for each in given)
        if not right or sum(each == 0 for each in given) > 1:
            raise JobError(
                f"`{name}` must be a list with a number for each class, none below 0 and at most one of them 0. "
                f"Received: {value!r}."
            )
        return [float(each) for each in given]

    return convert


def custom_objects(name: str) -> Converter[Mapping[str, Any], dict[str, Any]]:
    """A dict from the name under which Keras saves a class or function to the class or function."""

    def convert(value: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(value, Mapping) or not all(callable(each) for each in value.values()):
            raise JobError(
                f"`{name}` must be a dict from name to class or function, such as {{'MyLayer': MyLayer}}. "
                f"Received: {value!r}."
            )
        return {str(key): each for key, each in value.items()}

    return convert


def trusted_modules(name: str) -> Converter[Sequence[str], list[str]]:
    """Names of modules, in a list or with commas between them."""

    def convert(value: Sequence[str]) -> list[str]:
        return list(trusted_names(value, name))

    return convert


def data_frame(name: str) -> Converter[Any, Any]:
    """A DataFrame of Spark's, kept as it is."""

    def convert(value: Any) -> Any:
        from pyspark.sql import DataFrame

        if not isinstance(value, DataFrame):
            raise JobError(f"`{name}` must be a Spark DataFrame. Received: {type(value)!r}.")
        return value

    return convert


def listener_list(name: str) -> Converter[Sequence[Any], list[Any]]:
    """A list of listeners, the objects themselves kept."""

    def convert(value: Sequence[Any]) -> list[Any]:
        return list(check_listeners(value if isinstance(value, list | tuple) else [value], name))

    return convert


def _one_or_list(value: str | Sequence[str]) -> str | list[str]:
    return value if isinstance(value, str) else list(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
