"""TensorFlow as it is installed, with the `tf.keras` of TensorFlow 2 before Keras 3. Runs on the driver and on workers.

TensorFlow itself is imported when something other than `keras` is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name == "keras":
        return import_module(f"{__name__}.keras")
    return getattr(import_module("tensorflow"), name)
