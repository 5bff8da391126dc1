"""`tf.contrib.slim`, from tf-slim. Runs on the driver and on workers."""

from __future__ import annotations

from typing import Any

from keraunos.compat.tensorflow1 import _slim

_PLACES = ("tf_slim",)


def __getattr__(name: str) -> Any:
    return _slim.look_up("tf.contrib.slim", _PLACES, name)


def __dir__() -> list[str]:
    return _slim.names_in(_PLACES)
