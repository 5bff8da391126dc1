"""`tf.estimator.inputs`: input functions for arrays and DataFrames. Runs on the driver."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from keraunos.compat.tensorflow1 import _mode

_v1 = _mode.tensorflow_1()


def numpy_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> Callable[[], Any]:
    """Returns a function that returns batches of arrays' rows, for `num_epochs` epochs or, with `None`, without end."""
    del num_threads  # a tf.data pipeline chooses its own
    if not isinstance(shuffle, bool):
        raise TypeError(f"`shuffle` must be True or False. Received: {shuffle!r}.")

    def batches() -> Any:
        arrays = OrderedDict(x) if isinstance(x, Mapping) else x
        given = _v1.data.Dataset.from_tensor_slices(arrays if y is None else (arrays, y))
        if shuffle:
            given = given.shuffle(queue_capacity)
        return given.repeat(num_epochs).batch(batch_size)

    return batches


def pandas_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
    target_column: str = "target",
) -> Callable[[], Any]:
    """Returns the same for the columns of a pandas DataFrame, as features by name."""
    columns = {name: x[name].to_numpy() for name in x.columns}
    if y is None:
        labels = None
    elif hasattr(y, "columns"):
        labels = {name: y[name].to_numpy() for name in y.columns}
    else:
        labels = y.to_numpy()
    if target_column in columns:
        raise ValueError(f"`target_column` must be no column of `x`. Received: {target_column!r}.")
    return numpy_input_fn(columns, labels, batch_size, num_epochs, shuffle, queue_capacity, num_threads)
