"""`tf.contrib.training`, from tf-slim, and HParams. Runs on the driver and on workers."""

from __future__ import annotations

from typing import Any

from keraunos.compat.tensorflow1 import _slim
from keraunos.compat.tensorflow1._hparams import HParams

_PLACES = (
    "tf_slim.training.training",
    "tf_slim.training.evaluation",
)


def __getattr__(name: str) -> Any:
    return _slim.look_up("tf.contrib.training", _PLACES, name)


def __dir__() -> list[str]:
    return sorted({*_slim.names_in(_PLACES), HParams.__name__})
