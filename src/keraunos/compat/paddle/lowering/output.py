"""The steps after a layer's own function: activation, dropout, clipping of the error, a cost's factor.

Runs on the driver and on workers.
"""

from __future__ import annotations

from typing import Any

import keras

from keraunos.compat.paddle.lowering.activations import activate
from keraunos.compat.paddle.lowering.call import Call, LoweredType, Value


def finished(call: Call, value: Value, kind: LoweredType) -> Value:
    """Returns the layer's output, from the result of its function."""
    layer = call.layer
    tensor = value.tensor
    if kind.is_cost:
        if layer.coeff != 1.0:
            # Only the gradient is scaled; the reported cost is not.
            tensor = layer.coeff * tensor + keras.ops.stop_gradient((1.0 - layer.coeff) * tensor)
        return value._replace(tensor=tensor)
    if not kind.applies_activation and layer.active_type:
        tensor = activate(layer.active_type, tensor, value.mask)
    if layer.drop_rate:
        tensor = dropped(tensor, layer.drop_rate, call)
    if layer.error_clipping_threshold:
        tensor = error_clipped(tensor, layer.error_clipping_threshold)
    return value._replace(tensor=tensor)


def dropped(tensor: Any, rate: float, call: Call) -> Any:
    """Dropout as in Paddle: training only sets values to zero; prediction scales by the share that would remain."""
    if not call.training:
        return tensor * (1.0 - rate)
    drawn = keras.random.uniform(keras.ops.shape(tensor), dtype=tensor.dtype, seed=call.random)
    return tensor * keras.ops.cast(drawn > rate, tensor.dtype)


def error_clipped(tensor: Any, threshold: float) -> Any:
    """Returns the tensor unchanged, with a gradient whose elements are clipped to the threshold."""

    @keras.ops.custom_gradient  # type: ignore[untyped-decorator]  # Keras is untyped
    def identity(value: Any) -> Any:
        def gradient(*args: Any, upstream: Any = None) -> Any:
            given = upstream if upstream is not None else args[0]
            return keras.ops.clip(given, -threshold, threshold)

        return value * 1.0, gradient

    return identity(tensor)
