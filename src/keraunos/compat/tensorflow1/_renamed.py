"""Names and argument orders of TensorFlow before 1.0, in terms of later ones. Runs on the driver and on workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keraunos.compat.tensorflow1 import _mode

_v1 = _mode.tensorflow_1()

_SAME_ARGUMENTS = {
    "batch_cholesky": "linalg.cholesky",
    "batch_fft": "signal.fft",
    "batch_fft2d": "signal.fft2d",
    "batch_ifft": "signal.ifft",
    "batch_ifft2d": "signal.ifft2d",
    "batch_matrix_band_part": "linalg.band_part",
    "batch_matrix_determinant": "linalg.det",
    "batch_matrix_diag": "linalg.diag",
    "batch_matrix_diag_part": "linalg.diag_part",
    "batch_matrix_inverse": "linalg.inv",
    "batch_matrix_set_diag": "linalg.set_diag",
    "batch_matrix_solve": "linalg.solve",
    "batch_matrix_transpose": "linalg.transpose",
    "batch_svd": "linalg.svd",
    "complex_abs": "abs",
    "concat_v2": "concat",
    "inv": "reciprocal",
    "listdiff": "setdiff1d",
    "mul": "multiply",
    "neg": "negative",
    "pack": "stack",
    "select": "where",
    "sub": "subtract",
    "unpack": "unstack",
}


def find(name: str) -> Any:
    """Returns the object that a name of `NAMES` refers to."""
    if name in _REWRITTEN:
        return _REWRITTEN[name]
    found: Any = _v1
    for part in _SAME_ARGUMENTS[name].split("."):
        found = getattr(found, part)
    return found


def _concat(*args: Any, **kwargs: Any) -> Any:
    """`tf.concat(values, axis)`, or `tf.concat(concat_dim, values)` as it was before 1.0."""
    if "concat_dim" in kwargs:
        kwargs["axis"] = kwargs.pop("concat_dim")
    elif args and isinstance(args[0], int):
        # No list of tensors is a plain number: this can only be the older order.
        kwargs["axis"], args = args[0], args[1:]
    return _v1.concat(*args, **kwargs)


def _split(*args: Any, **kwargs: Any) -> Any:
    """`tf.split(value, num_or_size_splits, axis)`, or `tf.split(split_dim, num_split, value)` as it was before 1.0."""
    older = {"split_dim": "axis", "num_split": "num_or_size_splits"}
    if args and isinstance(args[0], int):
        kwargs.update(zip(("axis", "num_or_size_splits", "value"), args))
        args = ()
    return _v1.split(*args, **{older.get(name, name): value for name, value in kwargs.items()})


def _batch_matmul(x: Any, y: Any, adj_x: bool = False, adj_y: bool = False, name: str | None = None) -> Any:
    return _v1.matmul(x, y, adjoint_a=adj_x, adjoint_b=adj_y, name=name)


def _scalar_summary(tags: Any, values: Any, collections: Any = None) -> Any:
    return _v1.summary.scalar(tags, values, collections=collections)


def _histogram_summary(tag: Any, values: Any, collections: Any = None) -> Any:
    return _v1.summary.histogram(tag, values, collections=collections)


def _image_summary(tag: Any, tensor: Any, max_images: int = 3, collections: Any = None) -> Any:
    return _v1.summary.image(tag, tensor, max_outputs=max_images, collections=collections)


def _audio_summary(tag: Any, tensor: Any, sample_rate: Any, max_outputs: int = 3, collections: Any = None) -> Any:
    return _v1.summary.audio(tag, tensor, sample_rate, max_outputs=max_outputs, collections=collections)


_REWRITTEN: dict[str, Callable[..., Any]] = {
    "audio_summary": _audio_summary,
    "batch_matmul": _batch_matmul,
    "concat": _concat,
    "histogram_summary": _histogram_summary,
    "image_summary": _image_summary,
    "merge_all_summaries": _v1.summary.merge_all,
    "merge_summary": _v1.summary.merge,
    "scalar_summary": _scalar_summary,
    "split": _split,
}

NAMES = frozenset({*_SAME_ARGUMENTS, *_REWRITTEN})
