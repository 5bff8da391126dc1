"""Which layers of Keras 0 and 1 drew their weights by a shape that is not today's. Runs on the driver."""

from __future__ import annotations

from typing import Any

import keras

from keraunos.compat.old_keras.days import Day
from keraunos.compat.old_keras.own_initializers import NO_AXIS, AsItLay

_IN_PLANES = ("Convolution2D", "AtrousConvolution2D", "ConvLSTM2D")
_AXES = {
    # Filters, channels, and then the kernel.
    "planes": (3, 2, 0, 1),
    "cubes": (4, 3, 0, 1, 2),
    # The kernel, channels, filters: a transposed convolution has the last two the other way round today.
    "transposed": (0, 1, 3, 2),
    "transposed planes": (2, 3, 0, 1),
    "length": (0, NO_AXIS, 1, 2),
    "length of Keras 0": (2, 1, 0, NO_AXIS),
}


def as_it_lay(name: str, today: dict[str, Any], day: Day, *, first: bool) -> None:
    """Set arguments of today's layer so that its weights are drawn as in old Keras."""
    for argument, value in today.items():
        kernel = argument.endswith("_initializer") and argument not in {"bias_initializer", "beta_initializer"}
        if kernel and isinstance(value, (keras.initializers.VarianceScaling, keras.initializers.OrthogonalInitializer)):
            rule, axes = _rule(name, today.get("data_format") == "channels_first", day, first=first)
            if rule is not None and not _same_today(name, rule, value):
                today[argument] = AsItLay(value, rule, axes)


def _rule(name: str, channels_first: bool, day: Day, *, first: bool) -> tuple[str | None, tuple[int, ...] | None]:
    """How fans were counted, and how the axes of a kernel stood; no rule where weights have two axes."""
    if name in {"MaxoutDense", "PReLU"}:
        return ("first" if first else "th"), None
    ordering = "th" if channels_first else "tf"
    whole = "whole " if day.name == "0" else ""
    if name in _IN_PLANES:
        # A recurrent convolution never had a position of channels.
        rule = "th" if name == "ConvLSTM2D" else whole + ordering
        return rule, _AXES["planes"] if channels_first else None
    if name == "Convolution3D":
        return whole + ordering, _AXES["cubes"] if channels_first else None
    if name == "Deconvolution2D":
        return ordering, _AXES["transposed planes" if channels_first else "transposed"]
    if name in {"Convolution1D", "AtrousConvolution1D"}:
        return whole + "th", _AXES["length of Keras 0" if day.name == "0" else "length"]
    return None, None


def _same_today(name: str, rule: str, value: Any) -> bool:
    """Returns whether Keras's own initializer spreads the weights as far."""
    scaling = isinstance(value, keras.initializers.VarianceScaling)
    return scaling and (
        (name in {"Convolution2D", "AtrousConvolution2D"} and rule in {"th", "tf"})
        or (name == "Convolution3D" and rule == "th")
        or (name == "Deconvolution2D" and value.mode == "fan_avg")
    )
