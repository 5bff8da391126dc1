"""`keras.backend` of old: functions that are operations of today. Runs on the driver and on workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
from keras import ops

from keraunos.compat.old_keras import own_layers, values
from keraunos.compat.old_keras.days import Day

# Old name, today's operation.
_OPERATIONS: Mapping[str, str] = {
    **{
        name: name
        for name in [
            "abs",
            "all",
            "any",
            "cast",
            "cos",
            "equal",
            "exp",
            "greater",
            "greater_equal",
            "less",
            "less_equal",
            "log",
            "max",
            "maximum",
            "mean",
            "min",
            "minimum",
            "not_equal",
            "ones_like",
            "prod",
            "relu",
            "reshape",
            "round",
            "shape",
            "sigmoid",
            "sign",
            "sin",
            "softmax",
            "softplus",
            "softsign",
            "square",
            "squeeze",
            "std",
            "sum",
            "tanh",
            "tile",
            "transpose",
            "var",
            "zeros_like",
        ]
    },
    "pow": "power",
    "permute_dimensions": "transpose",
    "batch_flatten": "",
}


def functions(day: Day) -> dict[str, Any]:
    """Returns the names of the backend's module."""
    found: dict[str, Any] = {name: getattr(ops, today) for name, today in _OPERATIONS.items() if today}
    found.update(
        backend=keras.config.backend,
        epsilon=keras.config.epsilon,
        set_epsilon=keras.config.set_epsilon,
        floatx=keras.config.floatx,
        set_floatx=keras.config.set_floatx,
        image_data_format=keras.config.image_data_format,
        set_image_data_format=lambda value: values.set_image_dim_ordering(day, str(_ORDERINGS.get(value, value))),
        image_dim_ordering=lambda: values.image_dim_ordering(day),
        set_image_dim_ordering=lambda ordering: values.set_image_dim_ordering(day, ordering),
        hard_sigmoid=own_layers.hard_sigmoid,
        # Their axis was the last, or the first, where today's is another or has to be given.
        argmax=lambda x, axis=-1: ops.argmax(x, axis),
        argmin=lambda x, axis=-1: ops.argmin(x, axis),
        concatenate=lambda tensors, axis=-1: ops.concatenate(tensors, axis),
        cumsum=lambda x, axis=0: ops.cumsum(x, axis),
        expand_dims=_expand_dims,
        stack=lambda x, axis=0: ops.stack(x, axis),
        sqrt=lambda x: ops.sqrt(ops.maximum(x, 0)),
        clip=ops.clip,
        dot=ops.dot,
        batch_flatten=_batch_flatten,
        get_value=_get_value,
        set_value=_set_value,
        int_shape=_int_shape,
        ndim=_ndim,
        clear_session=keras.utils.clear_session,
    )
    return found


_ORDERINGS: Mapping[str, str] = {"channels_first": "th", "channels_last": "tf"}


def _expand_dims(x: Any, axis: int = -1, dim: int | None = None) -> Any:
    return ops.expand_dims(x, axis if dim is None else dim)  # `dim` until Keras 1


def _batch_flatten(x: Any) -> Any:
    return ops.reshape(x, (ops.shape(x)[0], -1))


def _get_value(variable: Any) -> Any:
    value = np.asarray(variable)
    return value.item() if value.ndim == 0 else value


def _set_value(variable: Any, value: Any) -> None:
    variable.assign(value)


def _int_shape(tensor: Any) -> Any:
    return tuple(tensor.shape)


def _ndim(tensor: Any) -> int:
    return len(tensor.shape)
