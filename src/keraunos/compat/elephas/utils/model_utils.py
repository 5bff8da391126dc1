"""The kind of model that follows from a loss, and the number of a model's inputs and outputs. Runs on the driver."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import Enum
from typing import Any, ClassVar, Self

from keraunos.errors import JobError
from keraunos.ml.keras import losses


class ModelType(Enum):
    """The kind of a model's predictions."""

    CLASSIFICATION = 1
    REGRESSION = 2


class LossModelTypeMapper:
    """Knows of each loss whether it is one of classification or of regression. There is one of them."""

    _instance: ClassVar[Any] = None

    def __new__(cls) -> Self:
        """Returns the one that there is."""
        if cls._instance is None:
            cls._instance = super().__new__(cls)
            cls._instance._registered = {}
        instance: Self = cls._instance
        return instance

    _registered: dict[str, ModelType]

    def get_model_type(self, loss: Any) -> ModelType | None:
        """Returns the kind of model of a loss, given by name or as a Keras object; `None` without a loss."""
        name = _name(loss)
        if name in self._registered:
            return self._registered[name]
        canonical = losses.loss_name(loss)
        if canonical in losses.SPARSE | losses.ONE_HOT | losses.BINARY:
            return ModelType.CLASSIFICATION
        return ModelType.REGRESSION if canonical in losses.REGRESSION or name in _OLD_NAMES else None

    def register_loss(self, loss: str | Callable[..., Any], model_type: ModelType) -> None:
        """Say of a loss of your own what kind of model it makes."""
        if not isinstance(model_type, ModelType):
            raise JobError(f"`model_type` must be a ModelType. Received: {model_type!r}.")
        self._registered[_name(loss)] = model_type


class ModelTypeEncoder(json.JSONEncoder):
    """Writes a `ModelType` into JSON, from which `as_enum` reads it."""

    def default(self, o: Any) -> Any:
        """Returns the JSON of one object."""
        return {"__enum__": str(o)} if isinstance(o, ModelType) else super().default(o)


def as_enum(data: dict[str, Any]) -> Any:
    """Returns an `object_hook` for `json.loads`."""
    if "__enum__" not in data:
        return data
    return ModelType[str(data["__enum__"]).rpartition(".")[2]]


def is_multiple_input_model(model: Any) -> bool:
    """Returns whether the model has more than one input."""
    return len(model.inputs) > 1


def is_multiple_output_model(model: Any) -> bool:
    """Returns whether the model has more than one output."""
    return len(model.outputs) > 1


def argmax(column: Any) -> Any:
    """Returns the class with the largest entry of an array column, as a double."""
    from pyspark.sql import functions as sf

    found = sf.col(column) if isinstance(column, str) else column
    return (sf.array_position(found, sf.array_max(found)) - sf.lit(1)).cast("double")


# Names that Keras no longer has.
_OLD_NAMES = frozenset({"cosine_proximity", "logcosh"})


def _name(loss: Any) -> str:
    return loss if isinstance(loss, str) else str(getattr(loss, "__name__", None) or losses.loss_name(loss))
