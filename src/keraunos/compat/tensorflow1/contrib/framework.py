"""`tf.contrib.framework`, from tf-slim and TensorFlow. Runs on the driver and on workers."""

from __future__ import annotations

from typing import Any

from keraunos.compat.tensorflow1 import _mode, _slim

_PLACES = (
    "tf_slim.ops.variables",
    "tf_slim.ops.arg_scope",
    "tf_slim.ops.framework_ops",
    "tensorflow.compat.v1.train",
)


def __getattr__(name: str) -> Any:
    if name == "nest":
        return _mode.tensorflow_1().nest
    return _slim.look_up("tf.contrib.framework", _PLACES, name)


def __dir__() -> list[str]:
    return _slim.names_in(_PLACES)
