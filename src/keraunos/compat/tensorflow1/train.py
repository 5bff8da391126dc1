"""`tf.train` of TensorFlow 1.x. Runs on the driver and on workers."""

from __future__ import annotations

from typing import Any

from keraunos.compat.tensorflow1 import _mode
from keraunos.compat.tensorflow1._savers import (
    Saver,
    checkpoint_exists,
    get_checkpoint_state,
    import_meta_graph,
    latest_checkpoint,
)

__all__ = [
    "Saver",
    "SummaryWriter",
    "checkpoint_exists",
    "get_checkpoint_state",
    "import_meta_graph",
    "latest_checkpoint",
]

_v1 = _mode.tensorflow_1()

SummaryWriter = _v1.summary.FileWriter


def __getattr__(name: str) -> Any:
    return getattr(_v1.train, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_v1.train)})
