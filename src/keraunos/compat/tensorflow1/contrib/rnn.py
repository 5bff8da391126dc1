"""`tf.contrib.rnn`, from Keras 2 and TensorFlow. Runs on the driver and on workers."""

from __future__ import annotations

from typing import Any

from keraunos.compat.tensorflow1 import _slim

_PLACES = (
    "tf_keras.api._v1.keras.__internal__.legacy.rnn_cell",
    "tensorflow.compat.v1.nn",
)


def __getattr__(name: str) -> Any:
    return _slim.look_up("tf.contrib.rnn", _PLACES, name)


def __dir__() -> list[str]:
    return _slim.names_in(_PLACES)
