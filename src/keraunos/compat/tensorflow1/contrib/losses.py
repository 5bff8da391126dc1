"""`tf.contrib.losses`, from tf-slim. Runs on the driver and on workers."""

from __future__ import annotations

from typing import Any

from keraunos.compat.tensorflow1 import _slim

_PLACES = ("tf_slim.losses",)


def __getattr__(name: str) -> Any:
    return _slim.look_up("tf.contrib.losses", _PLACES, name)


def __dir__() -> list[str]:
    return _slim.names_in(_PLACES)
