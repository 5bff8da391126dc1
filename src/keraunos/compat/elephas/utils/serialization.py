"""A Keras model as a dict and back. Runs on the driver and on executors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras


def model_to_dict(model: Any) -> dict[str, Any]:
    """Returns the model's architecture in JSON and its weights."""
    return {"model": model.to_json(), "weights": model.get_weights()}


def dict_to_model(data: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
    """Returns the model, not compiled, that `model_to_dict` described."""
    model = keras.models.model_from_json(data["model"], dict(custom_objects or {}))
    model.set_weights(data["weights"])
    return model
