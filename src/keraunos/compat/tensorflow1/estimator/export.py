"""`tf.estimator.export`: the inputs and outputs of an exported model. Runs on the driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

from keraunos.compat.tensorflow1 import _mode

_v1 = _mode.tensorflow_1()


class ExportOutput:
    """An output of an exported model, and how serving calls it."""

    method = "tensorflow/serving/predict"

    def tensors(self) -> dict[str, Any]:
        """Returns the tensors by name."""
        raise NotImplementedError


class PredictOutput(ExportOutput):
    """Tensors by name."""

    def __init__(self, outputs: Any) -> None:
        self.outputs = dict(outputs) if isinstance(outputs, Mapping) else {"output": outputs}

    def tensors(self) -> dict[str, Any]:
        """Returns the tensors by name."""
        return dict(self.outputs)


class ClassificationOutput(ExportOutput):
    """The classes' names, their scores, or both."""

    method = "tensorflow/serving/classify"

    def __init__(self, scores: Any = None, classes: Any = None) -> None:
        if scores is None and classes is None:
            raise ValueError("ClassificationOutput must have `scores` or `classes`. Received: neither.")
        self.scores = scores
        self.classes = classes

    def tensors(self) -> dict[str, Any]:
        """Returns the tensors by name."""
        return {name: each for name, each in (("classes", self.classes), ("scores", self.scores)) if each is not None}


class RegressionOutput(ExportOutput):
    """Numbers."""

    method = "tensorflow/serving/regress"

    def __init__(self, value: Any) -> None:
        self.value = value

    def tensors(self) -> dict[str, Any]:
        """Returns the tensors by name."""
        return {"outputs": self.value}


class _Receiver(NamedTuple):
    features: Any
    receiver_tensors: Mapping[str, Any]


class ServingInputReceiver(_Receiver):
    """Features for a model function, and the tensors that a request fills."""

    __slots__ = ()

    def __new__(cls, features: Any, receiver_tensors: Any, receiver_tensors_alternatives: Any = None) -> Self:
        """Returns the receiver; a single tensor is called `input`."""
        if receiver_tensors_alternatives is not None:
            raise ValueError(
                "`receiver_tensors_alternatives` must be left out here. Received: "
                f"{receiver_tensors_alternatives!r}. Export the model once for each way to fill its features."
            )
        named = dict(receiver_tensors) if isinstance(receiver_tensors, Mapping) else {"input": receiver_tensors}
        return super().__new__(cls, features, named)


def build_raw_serving_input_receiver_fn(
    features: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """Returns a function that makes a placeholder for each feature."""

    def receive() -> ServingInputReceiver:
        made = {}
        for name, each in features.items():
            rest = each.shape.as_list()[1:]
            made[name] = _v1.placeholder(each.dtype, [default_batch_size, *rest], name=name)
        return ServingInputReceiver(made, made)

    return receive


def build_parsing_serving_input_receiver_fn(
    feature_spec: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """Returns a function that makes a placeholder for serialized `tf.train.Example`s, and parses them."""

    def receive() -> ServingInputReceiver:
        examples = _v1.placeholder(_v1.string, [default_batch_size], name="input_example_tensor")
        return ServingInputReceiver(_v1.io.parse_example(examples, dict(feature_spec)), {"examples": examples})

    return receive
