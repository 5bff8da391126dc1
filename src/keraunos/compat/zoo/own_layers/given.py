"""An initializer that returns given values. Runs on the driver and on workers."""

from __future__ import annotations

from typing import Any

from keraunos.compat.zoo.own_layers.channels_first import PACKAGE
from keraunos.errors import ModelError
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled
import numpy as np  # noqa: E402 - the same


@keras.saving.register_keras_serializable(PACKAGE)
class GivenValues(keras.initializers.Initializer):  # type: ignore[misc]  # Keras is untyped
    """Gives a weight its values once; a copy of the model has them from its archive, and zeros before.

    Args:
        values: an array of the weight's shape; `None` for zeros.
    """

    def __init__(self, values: Any = None) -> None:
        self.values = None if values is None else np.asarray(values, dtype=np.float32)

    def __call__(self, shape: Any, dtype: Any = None) -> Any:
        """Returns the values."""
        if self.values is None:
            return keras.ops.zeros(shape, dtype=dtype)
        if tuple(shape) != self.values.shape:
            raise ModelError(
                f"Weights that are given must have the shape of the layer's, {tuple(shape)}. "
                f"Received: {self.values.shape}."
            )
        return keras.ops.convert_to_tensor(self.values, dtype=dtype)

    def get_config(self) -> dict[str, Any]:
        """Returns no values: an archive contains the weight's own values."""
        return {}
