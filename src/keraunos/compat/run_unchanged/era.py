"""Which Keras the program of this process was written for. Runs on the driver and on workers.

What a program for an old Elephas expects depends on it: before 2.0 an estimator's predictions were classes.
"""

from __future__ import annotations

import sys

_told: dict[str, str] = {}


def enter(name: str) -> None:
    """Note it; nothing is the Keras that is installed."""
    _told["keras"] = name


def keras() -> str:
    """'0', '1' or '2' in programs of that Keras; nothing where it is the one that is installed."""
    return _told.get("keras", "")


def predicts_classes() -> bool:
    """Whether the program is of the time when Elephas predicted classes: of Keras 0 or 1, or with Keras 2 by itself."""
    return keras() in {"0", "1"} or (keras() == "2" and has_keras_2_by_itself())


def has_keras_2_by_itself() -> bool:
    """Returns whether the program imported Keras 2, and not only that of TensorFlow 2."""
    return "keraunos.compat.keras2" in sys.modules
