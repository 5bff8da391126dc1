"""`TFOptimizer.tf_model`: the trained weights, as programs for Analytics Zoo ask for them. Runs on the driver."""

from __future__ import annotations

from typing import Any

from keraunos.compat.zoo.tfpark.trained import Trainable
from keraunos.formats.registry import load_home


class TrainingHelper:
    """The trained layer: `tf_model.training_helper_layer`."""

    def __init__(self, trained: Trainable) -> None:
        self._trained = trained

    def get_weights(self) -> list[Any]:
        """Returns the values of the trained variables now, in the order of their names."""
        source = self._trained.source()
        layout = self._trained.layout(source)
        values = layout.split(load_home(source).read())[: layout.trainable]
        return [value for _, value in sorted(zip(layout.names, values, strict=False), key=lambda pair: pair[0])]


class TFModel:
    """The model of a `TFOptimizer`."""

    def __init__(self, trained: Trainable) -> None:
        self.training_helper_layer = TrainingHelper(trained)
