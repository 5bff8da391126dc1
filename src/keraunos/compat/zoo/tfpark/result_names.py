"""The names of metrics' results on Spark, as in Analytics Zoo. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keraunos.telemetry.charts import VALIDATION

# Keras's names of metrics, each with the name of the validation method that Analytics Zoo measures it by.
METHODS = {
    "acc": "Top1Accuracy",
    "accuracy": "Top1Accuracy",
    "top5acc": "Top5Accuracy",
    "top5accuracy": "Top5Accuracy",
    "mae": "MAE",
    "auc": "AucScore",
}


class Results(dict[str, float]):
    """The loss and the metrics by name, in the order of `metrics_names`; also by their places, as in a list.

    `KerasModel.evaluate` returned a list until 0.8 and a dict from 0.9 on.
    """

    def __missing__(self, key: Any) -> float:
        if isinstance(key, int) and -len(self) <= key < len(self):
            return list(self.values())[key]
        raise KeyError(f"{key!r} is none of the results. There are: {', '.join(map(repr, self))}.")


def result_name(metric: str) -> str:
    """Returns the name of a metric in what `evaluate` returns: `loss`, `acc Top1Accuracy`, or the metric's own."""
    method = METHODS.get(metric.lower())
    return metric if method is None else f"{metric} {method}"


def summary_tag(metric: str) -> str:
    """Returns the tag of a metric in a validation summary: `Loss`, `Top1Accuracy`, or the metric's own name."""
    return "Loss" if metric == "loss" else METHODS.get(metric.lower(), metric)


def validation_results(logs: Mapping[str, float]) -> dict[str, float]:
    """Returns the validation results of workers from the logs of a lap."""
    return {name.removeprefix(VALIDATION): value for name, value in logs.items() if name.startswith(VALIDATION)}
