"""What a program's own class of models inherits besides today's `Model` or `Sequential`. Runs on driver and workers.

A class of Keras 2 means that day's methods by those that it does not have itself.
"""

from __future__ import annotations

from typing import Any

import keras

from keraunos.compat.old_keras import models
from keraunos.compat.old_keras.days import DAYS


class _OfThen:
    """Its instances have the methods of their day."""

    _day = "2"

    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        """Returns a model, before its own constructor runs."""
        if not issubclass(cls, keras.Model):
            return super().__new__(cls)  # Keras does so where it makes a class one of functional models
        return models.dressed(super().__new__(cls, *arguments, **named), DAYS[cls._day])


class OfKeras2(_OfThen):
    """Of Keras 2."""


class OfTensorFlow2(_OfThen):
    """Of TensorFlow 2."""

    _day = "tf2"


def bases(day: str, kind: Any) -> tuple[Any, ...]:
    """Returns the base classes of a subclass of that day's model."""
    return (OfTensorFlow2 if day == "tf2" else OfKeras2, kind)
