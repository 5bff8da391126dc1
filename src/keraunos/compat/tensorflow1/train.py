"""`tf.train` of TensorFlow 1.x. Runs on the driver and on workers."""

from __future__ import annotations

from typing import Any

from keraunos.compat.tensorflow1 import _mode

_v1 = _mode.tensorflow_1()

SummaryWriter = _v1.summary.FileWriter


def __getattr__(name: str) -> Any:
    return getattr(_v1.train, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_v1.train)})
