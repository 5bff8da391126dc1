"""The arguments of `SparkModel` in every release, as one set. Runs on the driver; nothing here is live."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from pyspark import SparkContext

from keraunos.compat.elephas import optimizers
from keraunos.compat.elephas.translate import check_server_mode, workers_of
from keraunos.compat.run_unchanged import era
from keraunos.errors import JobError

logger = logging.getLogger(__name__)

# The order of arguments without a name: before 0.4 a SparkContext came first, before 7.0 a mode behind the model.
_WITH_CONTEXT = (
    "model",
    "optimizer",
    "mode",
    "frequency",
    "num_workers",
    "master_optimizer",
    "master_loss",
    "master_metrics",
    "custom_objects",
)
_WITH_MODE = (
    "model",
    "mode",
    "frequency",
    "parameter_server_mode",
    "num_workers",
    "custom_objects",
    "batch_size",
    "port",
)
_TODAY = ("model", "num_workers", "custom_objects", "batch_size", "mode", "frequency", "parameter_server_mode", "port")
_OLD_NAMES = {"master_network": "model", "elephas_optimizer": "optimizer"}
# Of 2016 and 2017: `train` compiled the model, with these.
_COMPILED_WITH = {
    "master_optimizer": "adam",
    "master_loss": "categorical_crossentropy",
    "master_metrics": ("accuracy",),
}
_SAVED = ("mode", "frequency", "num_workers", "batch_size", "port")


@dataclass(frozen=True)
class ConstructorSettings:
    """The arguments of a `SparkModel`, which documents them."""

    model: Any
    mode: str
    frequency: str = "epoch"
    optimizer: Any = None
    parameter_server_mode: str = "http"
    num_workers: int | None = None
    custom_objects: Mapping[str, Any] = field(default_factory=dict)
    batch_size: int = 32
    port: int | None = None

    def with_model(self, model: Any) -> Self:
        """Returns the same for another model."""
        return replace(self, model=model)

    def to_config(self) -> dict[str, Any]:
        """Returns plain data, without the model and without custom code."""
        config = {name: getattr(self, name) for name in _SAVED} | {"parameter_server_mode": self.parameter_server_mode}
        config["mode"], config["frequency"] = str(self.mode), str(self.frequency)
        optimizer = self.optimizer
        if optimizer is not None:
            known = optimizers.get(optimizer)
            rule = optimizers.rule_of(known)
            assert rule is not None
            config["optimizer"] = known.get_config() if isinstance(known, optimizers.Optimizer) else rule.to_json()
        return config

    @staticmethod
    def from_config(config: Mapping[str, Any]) -> dict[str, Any]:
        """Keywords for a model's constructor, from what `to_config` or Elephas wrote; others' entries are dropped."""
        return {name: value for name, value in config.items() if name in ConstructorSettings.__dataclass_fields__}


def settings_of(
    kind: str, arguments: Sequence[Any], options: Mapping[str, Any], default_mode: str
) -> ConstructorSettings:
    """Returns the settings of a call, of whichever release its form is."""
    has_context = (bool(arguments) and isinstance(arguments[0], SparkContext)) or "sc" in options
    given = {_OLD_NAMES.get(name, name): value for name, value in options.items() if name != "sc"}
    positional = list(arguments[1:] if arguments and isinstance(arguments[0], SparkContext) else arguments)
    order = _WITH_CONTEXT if has_context else _with_mode(positional) if _names_mode(positional) else _TODAY
    if len(positional) > len(order):
        raise JobError(f"{kind} takes at most {len(order)} arguments without a name. Received: {len(positional)}.")
    for name, value in zip(order, positional, strict=False):
        if name in given:
            raise JobError(f"`{name}` of {kind} must be given once. Received: {value!r} and {given[name]!r}.")
        given[name] = value
    compiled_with = {name: given.pop(name, None) for name in _COMPILED_WITH}
    _check_names(kind, given)
    if given.get("model") is None:
        raise JobError(f"{kind} must be given a compiled Keras model. Received: none. Write {kind}(model, ...).")
    _compile(given["model"], compiled_with, has_context=has_context)
    # Elephas was asynchronous until 6, and needs Keras 3 since 7.
    dated = has_context or era.keras() in {"0", "1", "2"}
    if has_context and given.get("mode") is None and era.keras() == "0" and default_mode == "synchronous":
        logger.warning(
            "%s(sc, model) without `mode` was synchronous until November 2015 and asynchronous from 0.2 on, which is "
            "taken. Give mode='synchronous' if the program is older.", kind,
        )  # fmt: skip
    mode = given.pop("mode", None) or ("asynchronous" if dated else default_mode)
    settings = ConstructorSettings(mode=mode, **{name: value for name, value in given.items() if value is not None})
    check_server_mode(settings.parameter_server_mode)
    workers_of(settings.num_workers, None, settings.num_workers or 1)
    return settings


def _compile(model: Any, asked: Mapping[str, Any], *, has_context: bool) -> None:
    """Compile the model if arguments for it were given, or if Elephas of that release did so."""
    if not any(value is not None for value in asked.values()) and (not has_context or getattr(model, "compiled", True)):
        return
    known = {name: _COMPILED_WITH[name] if value is None else value for name, value in asked.items()}
    if asked["master_loss"] is None and model.compiled:
        known["master_loss"] = model.loss
    if asked["master_optimizer"] is None and model.compiled:
        known["master_optimizer"] = model.optimizer
    model.compile(optimizer=known["master_optimizer"], loss=known["master_loss"], metrics=list(known["master_metrics"]))


def _with_mode(positional: Sequence[Any]) -> tuple[str, ...]:
    """The order behind a mode: an optimizer stood before the custom objects in 0.4, and in SparkMLlibModel until 6."""
    at = _WITH_MODE.index("custom_objects")
    here, behind = (positional[place] if len(positional) > place else None for place in (at, at + 1))
    has_optimizer = not isinstance(here, Mapping | None) or isinstance(behind, Mapping)
    return (*_WITH_MODE[:at], "optimizer", *_WITH_MODE[at:]) if has_optimizer else _WITH_MODE


def _names_mode(positional: Sequence[Any]) -> bool:
    return len(positional) > 1 and isinstance(positional[1], str)


def _check_names(kind: str, given: Mapping[str, Any]) -> None:
    known = ConstructorSettings.__dataclass_fields__
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise JobError(f"{kind} has no argument {name!r}.{hint} Expected some of: {', '.join(known)}.")
