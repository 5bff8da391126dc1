"""A model function in a trial: calls it, and reads its result as Hyperas does. Runs on executors."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np

from keraunos.compat.elephas.hyper_draws import Draws
from keraunos.compat.elephas.hyperopt import STATUS_FAIL, STATUS_OK
from keraunos.errors import JobError, one_of
from keraunos.job.training_job import ModelSource
from keraunos.learners.keras_archive import live_source, without_tensorflow
from keraunos.tuning.objective_task import Outcome

_READ_HERE = ("loss", "model", "status", "weights")


@dataclass(frozen=True)
class ModelObjective:
    """A model function, which draws its values from `Draws` as its first argument or from an Optuna `trial`."""

    function: Callable[..., Any]
    takes_trial: bool
    needs_model: bool
    custom_objects: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, trial: Any, *data: Any) -> Outcome:
        """Call it, and return its loss, its model and the values it drew."""
        draws = Draws(trial)
        with _written_models() as written:
            result = self.function(*data, trial=trial) if self.takes_trial else self.function(draws, *data)
        values = trial.params if self.takes_trial else draws.values
        if not isinstance(result, Mapping):
            raise JobError(
                "`model` must return a dict such as {'loss': -accuracy, 'status': STATUS_OK, 'model': model}. "
                f"Received: {result!r}."
            )
        details: dict[str, Any] = {"values": dict(values), "result": _plain(result)}
        failure = _failure(result)
        if failure:
            return Outcome(None, details=details, failure=failure)
        source = self._source(result, written)
        if source is None:
            return Outcome(float(result["loss"]), b"", details)
        return Outcome(float(result["loss"]), source.archive, {**details, "trusted": list(source.trusted)})

    def _source(self, result: Mapping[str, Any], written: Mapping[str, Any]) -> ModelSource | None:
        model = result.get("model")
        if model is None and not self.needs_model:
            return None
        if isinstance(model, str):
            model = written.get(model, model)
        if not isinstance(model, keras.Model):
            raise JobError(
                "The dict that `model` returns must have the trained Keras model under 'model', or what its "
                f"`to_json()` gave. Received: {model!r}."
            )
        return live_source(model, self.custom_objects)


@contextmanager
def _written_models() -> Iterator[dict[str, Any]]:
    """The models that write themselves down as text in here, by their texts.

    Old programs return a model as YAML, which Keras no longer writes, with its weights pickled beside it. JSON is YAML;
    and the model that wrote it has the weights.
    """
    written: dict[str, Any] = {}
    original = keras.Model.to_json

    def to_json(self: Any, **arguments: Any) -> str:
        with without_tensorflow():
            text = str(original(self, **arguments))
        written[text] = self
        return text

    with_yaml = hasattr(keras.Model, "to_yaml")
    keras.Model.to_json = to_json
    if not with_yaml:
        keras.Model.to_yaml = to_json
    try:
        yield written
    finally:
        keras.Model.to_json = original
        if not with_yaml:
            del keras.Model.to_yaml


def _failure(result: Mapping[str, Any]) -> str:
    """Why a result counts as none; nothing where it counts."""
    status = result.get("status", STATUS_OK)
    if status not in {STATUS_OK, STATUS_FAIL}:
        raise JobError(one_of("status", status, (STATUS_OK, STATUS_FAIL)))
    if status == STATUS_FAIL:
        return "Its status is 'fail'."
    if "loss" not in result:
        raise JobError(
            "The dict that `model` returns must have a number under 'loss', the lower the better. Received: one with "
            f"{', '.join(map(repr, result)) or 'nothing'}."
        )
    try:
        loss = float(result["loss"])
    except (TypeError, ValueError) as error:
        raise JobError(
            f"The 'loss' that `model` returns must be one number. Received: {result['loss']!r}. `model.evaluate` gives "
            "a list where the model is compiled with metrics."
        ) from error
    return "Its loss is not a number." if math.isnan(loss) else ""


def _plain(result: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the other entries of a result, as plain data for JSON."""
    rest = {str(key): value for key, value in result.items() if key not in _READ_HERE}
    plain: dict[str, Any] = json.loads(json.dumps(rest, default=_as_json, skipkeys=True))
    return plain


def _as_json(value: Any) -> Any:
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else repr(value)
