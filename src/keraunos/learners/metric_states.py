"""Metrics of several workers as one: which states add up, and what they amount to. Runs on driver and workers.

A worker sends the state of its metrics (sums, counts, histogram buckets), never their results. The driver adds the
states up in float64 and then lets Keras compute the results, so that a distributed AUC is the AUC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from keraunos.batch import BatchSpec
from keraunos.errors import ModelError
from keraunos.learners.keras_archive import build

State = Sequence[npt.NDArray[Any]]


def check_mergeable(model: Any) -> None:
    """Raise where the states of one of the model's metrics cannot be brought together.

    The model need not be built: compiled metrics that do not exist yet are judged by what `compile` was given.
    """
    for metric in [*_metrics_of(model), *_metrics_to_come(model)]:
        if not _adds_up(metric) and not hasattr(metric, "merge_state"):
            raise ModelError(
                f"The metric {metric.name!r} must say how its states from several workers are brought together, "
                f"because it updates its state in its own way. Expected: one of Keras's own metrics, a subclass that "
                "leaves `update_state` alone, or a method `merge_state(self, metrics)`. "
                f"Received: {type(metric).__qualname__} without `merge_state`."
            )


class MetricReader:
    """Results from metric states as `Learner.take_metrics` gives them.

    The model is used up: its metric variables hold whatever was merged last. `spec` builds metrics that do not exist
    yet, as after loading a model.
    """

    def __init__(self, model: Any, spec: BatchSpec | None = None) -> None:
        if spec is not None:
            build(model, spec)
        check_mergeable(model)
        self._model = model
        self._metrics = _metrics_of(model)
        self._twins: dict[int, list[Any]] = {}

    def merge(self, states: Sequence[State]) -> list[npt.NDArray[np.float64]]:
        """One state that stands for all of them."""
        merged: list[npt.NDArray[np.float64]] = []
        for metric in self._metrics:
            part = slice(len(merged), len(merged) + len(metric.variables))
            parts = [state[part] for state in states]
            merged.extend(_sum(parts) if _adds_up(metric) else self._merge_own_way(metric, parts))
        return merged

    def read(self, states: Sequence[State]) -> dict[str, float]:
        """The results of all states together, by Keras's names for them, the loss first."""
        if not states:
            return {}
        merged = self.merge(states)
        for variable, value in zip(self._model.metrics_variables, merged, strict=True):
            variable.assign(value.astype(keras.backend.standardize_dtype(variable.dtype)))
        logs = _flattened(self._model.get_metrics_result())
        # Older releases of Keras sort them by name.
        return ({"loss": logs["loss"]} if "loss" in logs else {}) | logs

    def _merge_own_way(self, metric: Any, parts: Sequence[State]) -> list[npt.NDArray[np.float64]]:
        twins = self._twins.setdefault(id(metric), [])
        while len(twins) < len(parts):
            twins.append(_twin(metric))
        for twin, part in zip(twins, parts, strict=False):
            for variable, value in zip(twin.variables, part, strict=True):
                variable.assign(value.astype(keras.backend.standardize_dtype(variable.dtype)))
        metric.reset_state()
        metric.merge_state(twins[: len(parts)])
        return [np.asarray(keras.ops.convert_to_numpy(variable.value), np.float64) for variable in metric.variables]


def _metrics_of(model: Any) -> list[Any]:
    """The model's metrics, those inside the compiled ones one by one, in the order of `metrics_variables`."""
    flat: list[Any] = []
    for metric in model.metrics:
        inner = getattr(metric, "metrics", None)
        compiled = type(metric).__module__.startswith("keras.") and isinstance(inner, list)
        flat.extend(inner if compiled and inner is not None else [metric])
    return flat


def _metrics_to_come(model: Any) -> list[Any]:
    """What `compile` was given where Keras makes metrics of it only when it sees the first batch."""
    given: list[Any] = []
    for metric in model.metrics:
        if type(metric).__module__.startswith("keras.") and not getattr(metric, "built", True):
            # There is no public way to ask for them.
            for name in ("_user_metrics", "_user_weighted_metrics"):
                given.extend(_identifiers(getattr(metric, name, None)))
    resolved = [_resolved(each) for each in given]
    return [each for each in resolved if isinstance(each, keras.metrics.Metric)]


def _identifiers(given: Any) -> list[Any]:
    """The leaves of a `metrics=` argument: names, functions, classes, metrics and their configurations."""
    if isinstance(given, Mapping) and "class_name" not in given:
        return [leaf for each in given.values() for leaf in _identifiers(each)]
    if isinstance(given, (list, tuple)):
        return [leaf for each in given for leaf in _identifiers(each)]
    return [] if given is None else [given]


def _resolved(identifier: Any) -> Any:
    """A metric or a function, as Keras will find it; `None` where it chooses by the shapes of the first batch."""
    if str(identifier).lower() in {"accuracy", "acc"}:
        return None
    try:
        return keras.metrics.get(identifier)
    except ValueError as error:
        raise ModelError(
            "A metric that the model was compiled with must be one that Keras knows. Expected: the name of one of "
            f"Keras's own metrics, a function, or a Metric. Received: {identifier!r}. Correct the name in "
            "`compile(metrics=...)`, or give the metric itself."
        ) from error


def _adds_up(metric: Any) -> bool:
    """Whether Keras's own code updates the state: all of its metrics keep sums."""
    definer = next(each for each in type(metric).__mro__ if "update_state" in vars(each))
    return definer.__module__.startswith("keras.") and definer is not keras.metrics.Metric


def _sum(parts: Sequence[State]) -> list[npt.NDArray[np.float64]]:
    return [
        np.sum(np.stack([np.asarray(value, np.float64) for value in values]), axis=0)
        for values in zip(*parts, strict=True)
    ]


def _twin(metric: Any) -> Any:
    twin = type(metric).from_config(metric.get_config())
    if [tuple(each.shape) for each in twin.variables] != [tuple(each.shape) for each in metric.variables]:
        raise ModelError(
            f"The metric {metric.name!r} must create its variables when it is constructed, so that states can be "
            f"merged with `merge_state`. Received: {type(metric).__qualname__}, whose copy has "
            f"{len(twin.variables)} variables where it has {len(metric.variables)}."
        )
    return twin


def _flattened(results: Mapping[str, Any]) -> dict[str, float]:
    flat: dict[str, float] = {}
    for name, result in results.items():
        if isinstance(result, Mapping):
            flat.update(_flattened(result))
            continue
        value = np.asarray(keras.ops.convert_to_numpy(result))
        if value.ndim == 0:
            flat[name] = float(value)
        else:
            flat.update({f"{name}_{i}": float(each) for i, each in enumerate(value.ravel())})
    return flat
