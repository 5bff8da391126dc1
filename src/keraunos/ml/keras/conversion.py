"""What values the Params of Keras's estimators take. Runs on the driver."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from keraunos.errors import JobError, ModelError
from keraunos.learners.framework_imports import import_keras
from keraunos.ml.conversion import Converter


def keras_model(name: str) -> Converter[Any, Any]:
    """A Keras 3 model, kept as it is."""

    def convert(value: Any) -> Any:
        keras = import_keras()

        if not isinstance(value, keras.Model):
            received, advice = _instead_of_a_model(value)
            raise ModelError(f"`{name}` must be a Keras 3 model (keras.Model). Received: {received}. {advice}")
        return value

    return convert


def callback_list(name: str) -> Converter[Sequence[Any], list[Any]]:
    """A list of Keras callbacks, the objects themselves kept."""

    def convert(value: Sequence[Any]) -> list[Any]:
        keras = import_keras()

        items = list(value) if isinstance(value, list | tuple) else [value]
        if not all(isinstance(each, keras.callbacks.Callback) for each in items):
            raise JobError(f"`{name}` must be a list of Keras callbacks. Received: {value!r}.")
        return items

    return convert


def _instead_of_a_model(value: Any) -> tuple[str, str]:
    """What was given where a Keras model belongs, and what to do about it."""
    if isinstance(value, str | os.PathLike):
        path = os.fspath(value)
        return f"the path {path!r}", f"Load it first: keras.saving.load_model({path!r})."
    homes = {kind.__module__.partition(".")[0] for kind in (value if isinstance(value, type) else type(value)).__mro__}
    if "torch" in homes:
        return repr(type(value)), (
            "Modules of PyTorch cannot be trained as they are. Set KERAS_BACKEND=torch, wrap the module with "
            "keras.layers.TorchModuleWrapper in a Keras model, and compile that."
        )
    return repr(type(value)), (
        "A model built with tf.keras of TensorFlow 2.15 or older, or with tf_keras, has to be rebuilt with keras."
    )
