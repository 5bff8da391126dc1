"""Initial weights that depended on a kernel's old layout. Runs on the driver and on workers.

How far weights are spread follows from the fans, which Keras 0 and 1 took from the shape of a kernel by other rules
than today, and from kernels whose axes stood in another order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keraunos.compat.old_keras.own_layers import PACKAGE

_KERNELS = (4, 5)  # numbers of axes that were treated as a convolution's kernel
# What stands among the axes for one of length 1, which today's kernel has not.
NO_AXIS = -1


@keras.saving.register_keras_serializable(PACKAGE)
class AsItLay(keras.initializers.Initializer):  # type: ignore[misc]  # Keras is used untyped
    """Draws weights in the old shape, by the old fans, and converts them to today's layout.

    Args:
        initializer: a VarianceScaling or an Orthogonal.
        rule: how fans were counted: 'th' and 'tf' with a kernel's size in both, 'whole th' and 'whole tf' with it in
            the inputs alone, 'first' as until Keras 0.3.2.
        axes: for each old axis, the number of today's axis; `None` if they are the same.
    """

    def __init__(self, initializer: Any, rule: str, axes: Sequence[int] | None = None) -> None:
        self.initializer = keras.initializers.get(initializer)
        self.rule = rule
        self.axes = None if axes is None else tuple(axes)

    def __call__(self, shape: Any, dtype: Any = None) -> Any:
        """Returns the weights, of today's shape."""
        axes = tuple(range(len(shape))) if self.axes is None else self.axes
        then = tuple(1 if axis == NO_AXIS else int(shape[axis]) for axis in axes)
        if isinstance(self.initializer, keras.initializers.VarianceScaling):
            drawn = self._spread(fans(then, self.rule))(then, dtype=dtype)
        else:
            flat = (then[0], math.prod(then[1:]))
            drawn = ops.reshape(self.initializer.clone()(flat, dtype=dtype), then)
        kept = [place for place, axis in enumerate(axes) if axis != NO_AXIS]
        return ops.reshape(ops.transpose(drawn, _order(axes)), tuple(int(each) for each in shape)) if kept else drawn

    def get_config(self) -> dict[str, Any]:
        """From which it is made again."""
        return {
            "initializer": keras.initializers.serialize(self.initializer),
            "rule": self.rule,
            "axes": None if self.axes is None else list(self.axes),
        }

    def _spread(self, counted: tuple[float, float]) -> Any:
        scaling = self.initializer
        n = {"fan_in": counted[0], "fan_out": counted[1], "fan_avg": sum(counted) / 2}[scaling.mode]
        variance = scaling.scale / max(1.0, n)
        if scaling.distribution == "uniform":
            limit = math.sqrt(3.0 * variance)
            return keras.initializers.RandomUniform(-limit, limit)
        return keras.initializers.RandomNormal(0.0, math.sqrt(variance))


def fans(shape: Sequence[int], rule: str) -> tuple[float, float]:
    """Returns how many inputs and outputs a weight of that shape counted as having."""
    if len(shape) == 2:
        return float(shape[0]), float(shape[1])
    if rule == "first":
        return float(math.prod(shape[1:])), float(shape[0])
    if len(shape) not in _KERNELS:
        both = math.sqrt(math.prod(shape))
        return both, both
    if rule == "whole th":
        return float(math.prod(shape[1:])), float(shape[0])
    if rule == "whole tf":
        return float(math.prod(shape[:-1])), float(shape[-1])
    if rule == "th":
        field = math.prod(shape[2:])
        return float(shape[1] * field), float(shape[0] * field)
    field = math.prod(shape[:2])  # of three axes of a kernel, two were counted
    return float(shape[-2] * field), float(shape[-1] * field)


def _order(axes: Sequence[int]) -> tuple[int, ...]:
    """Maps today's axes to the old ones, with axes of length 1 at the end."""
    placed = sorted((axis, place) for place, axis in enumerate(axes) if axis != NO_AXIS)
    return (*(place for _axis, place in placed), *(place for place, axis in enumerate(axes) if axis == NO_AXIS))
