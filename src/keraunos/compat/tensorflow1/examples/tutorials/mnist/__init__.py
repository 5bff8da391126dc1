"""`tensorflow.examples.tutorials.mnist`: reading MNIST. Runs on the driver."""

from __future__ import annotations

from typing import Any

from keraunos.compat.tensorflow1.examples.tutorials.mnist import input_data as input_data


def __getattr__(name: str) -> Any:
    raise AttributeError(f"tensorflow.examples.tutorials.mnist has no {name!r} here. There is: input_data.")
