"""The measures of a `TFEstimator`: validation methods by name, on the rows that Spark predicts for.

Runs on the driver and on executors.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from keraunos.compat.zoo.bigdl.optim.validation import ValidationMethod, validation_method
from keraunos.compat.zoo.tfpark.result_names import METHODS
from keraunos.compat.zoo.tfpark.structure import flatten
from keraunos.errors import JobError, one_of

# `TFEstimator` takes one more than Keras's models.
_METHODS = {**METHODS, "treennaccuracy": "TreeNNAccuracy()"}
_LOSS = "loss"
_PORTION = 1024
# The keys of predictions that are used.
_LOGISTIC, _LOGITS, _NUMBERS = "logistic", "logits", "predictions"


class EstimatorResults(dict[str, float]):
    """Results by the names of Analytics Zoo's last form, such as `acc Top1Accuracy`.

    They are also found by the name that was asked for, and by the method's alone, as before.
    """

    @classmethod
    def of(cls, found: Mapping[str, float]) -> EstimatorResults:
        """Returns the results of methods by the names that they were asked for by."""
        return cls(
            {name if name == _LOSS else f"{name} {_METHODS[name.lower()]}": value for name, value in found.items()}
        )

    def __missing__(self, key: str) -> float:
        for name, value in self.items():
            if key in name.split(" "):
                return value
        raise KeyError(key)


@dataclass(frozen=True)
class Measures:
    """Validation methods by name, and the tensors whose rows they use."""

    methods: Mapping[str, ValidationMethod]
    tensors: list[Any]
    measures_loss: bool

    @classmethod
    def of(cls, names: Sequence[str], predictions: Any, labels: Any, loss: Any, dataset: Any) -> Measures:
        """Returns the methods of names, for a model's predictions and loss."""
        import tensorflow as tf

        unknown = [name for name in names if name != _LOSS and name.lower() not in _METHODS]
        if unknown or not names:
            raise JobError(one_of("eval_methods", unknown[0] if unknown else names, [*_METHODS, _LOSS]))
        methods = {name: validation_method(name) for name in names if name != _LOSS}
        tensors = []
        if methods:
            tensors = [_output(predictions, methods), tf.identity(_label(labels))]
        if _LOSS in names:
            if loss is None or dataset.hard_code_batch_size:
                raise JobError(
                    "The metric 'loss' must come with a loss of the model function, and a dataset without "
                    f"hard_code_batch_size, which fills its last batch up. Received: loss={loss!r}, "
                    f"hard_code_batch_size={dataset.hard_code_batch_size!r}."
                )
            rows = tf.shape(flatten(dataset.tensors)[0])[:1]
            # Every row of a batch has the batch's loss, so that their mean is that of all rows.
            tensors.append(tf.fill(rows, tf.cast(tf.reshape(loss, []), tf.float32)))
        return cls(methods, tensors, _LOSS in names)

    def over(self, predicted: Any) -> dict[str, float]:
        """Returns the results over an RDD of rows of the tensors."""
        methods = dict(self.methods)
        task = functools.partial(_states, list(methods.values()), self.measures_loss)
        found = predicted.mapPartitions(task).collect()
        if not found:
            raise JobError("The dataset of an evaluation must have rows. Received: none.")
        results = {
            name: each.result(each.merge([state[at] for state in found]))
            for at, (name, each) in enumerate(methods.items())
        }
        if self.measures_loss:
            total, rows = np.sum([state[-1] for state in found], axis=0)
            results[_LOSS] = float(total / rows)
        return results


def _states(methods: Sequence[ValidationMethod], measures_loss: bool, rows: Iterable[Any]) -> Iterator[list[Any]]:
    """Yields the states of a partition's rows, portion by portion."""
    left = iter(rows)
    while portion := list(islice(left, _PORTION)):
        columns = list(zip(*(row if isinstance(row, list) else [row] for row in portion), strict=True))
        states: list[Any] = []
        if methods:
            output, label = np.stack(columns[0]), np.stack(columns[1])
            states = [method.state(output, label) for method in methods]
        if measures_loss:
            states.append(np.array([np.sum(columns[-1], dtype=np.float64), len(portion)]))
        yield states


def _output(predictions: Any, methods: Mapping[str, ValidationMethod]) -> Any:
    """Returns the tensor that methods compare with the labels."""
    if not isinstance(predictions, Mapping):
        outputs = flatten(predictions)
        if len(outputs) != 1:
            raise JobError(
                "Evaluate on more than one output is not supported now. Expected: one tensor of predictions, or a dict "
                f"with {_LOGITS!r}. Received: {len(outputs)}."
            )
        return outputs[0]
    key = _NUMBERS if any(name.lower() == "mae" for name in methods) else _LOGITS
    if key not in predictions:
        raise JobError(
            f"{key} is required for evaluating {', '.join(methods)}, please add it in your model_fn predictions. "
            f"Received: {', '.join(map(repr, sorted(predictions)))}."
        )
    # A single logit is no probability, which is what BigDL's methods take of two classes.
    return predictions[_LOGISTIC] if key == _LOGITS and _LOGISTIC in predictions else predictions[key]


def _label(labels: Any) -> Any:
    several = [] if labels is None else flatten(labels)
    if len(several) != 1:
        raise JobError(
            "The dataset of an evaluation must have one label a record, as in (features, label). Received: "
            f"{len(several)}. Measure 'loss', which needs none, or join them."
        )
    return several[0]
