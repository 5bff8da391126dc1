"""Converts the result of an input function to tensors of a graph. Runs on the driver."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from keraunos.compat.tensorflow1 import _mode

_v1 = _mode.tensorflow_1()


def named_arguments(function: Callable[..., Any]) -> tuple[str, ...]:
    """Returns the names of a function's arguments, without `self` and what a partial function has already."""
    return tuple(
        name
        for name, each in inspect.signature(function).parameters.items()
        if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY) and name != "self"
    )


def called(function: Callable[..., Any], offered: Mapping[str, Any], *arguments: Any) -> Any:
    """Call a function with those of the offered values whose names it takes. Returns its result."""
    taken = named_arguments(function)
    return function(*arguments, **{name: value for name, value in offered.items() if name in taken})


def features_and_labels(given: Any, *, predicts: bool) -> tuple[Any, Any]:
    """Returns the tensors of features and labels of a `tf.data.Dataset`, of a pair, or of features alone."""
    if isinstance(given, _v1.data.Dataset) or hasattr(given, "element_spec"):
        iterator = _v1.data.make_initializable_iterator(given)
        _v1.add_to_collection(_v1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
        given = iterator.get_next()
    if not isinstance(given, (tuple, list)):
        return given, None
    if predicts:
        return given[0], None
    if len(given) != 2:
        raise ValueError(
            f"`input_fn` must return (features, labels), or a tf.data.Dataset of such. Received: {len(given)} of them."
        )
    return given[0], given[1]


def check_arguments(model_fn: Callable[..., Any], params: Mapping[str, Any]) -> None:
    """Refuse a model function with arguments that it will not be given."""
    known: Collection[str] = ("features", "labels", "mode", "params", "config")
    taken = named_arguments(model_fn)
    if "features" not in taken:
        raise ValueError(f"`model_fn` must have an argument `features`. Received: one of {', '.join(taken) or 'none'}.")
    if params and "params" not in taken:
        raise ValueError(f"`model_fn` must have an argument `params` if params are given. Received: {params!r}.")
    unknown = [name for name in taken if name not in known]
    if unknown and inspect.signature(model_fn).parameters[unknown[0]].default is inspect.Parameter.empty:
        raise ValueError(f"`model_fn` must take some of {', '.join(known)}. Received: one that takes {unknown[0]!r}.")
