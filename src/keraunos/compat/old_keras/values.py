"""Converts values of old arguments for today's Keras. Runs on the driver."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras

from keraunos.compat.old_keras import own_layers, undecided
from keraunos.compat.old_keras.days import Day
from keraunos.compat.old_keras.value_tables import (
    ACTIVATIONS,
    CONSTRAINTS,
    INITIALIZERS,
    INITIALIZERS_2,
    LONG_NAMES,
    LOSSES,
    METRICS,
    REFUSED_METRICS,
    REFUSED_REGULARIZERS,
    REGULARIZER_DEFAULTS,
    REGULARIZERS,
)
from keraunos.errors import JobError, one_of

_NORMAL = ("glorot_normal", "he_normal", "lecun_normal")
_ORDERINGS = {"th": "channels_first", "tf": "channels_last"}
_chosen_ordering: dict[str, str] = {}


def initializer(value: Any, day: Day) -> Any:
    """Returns an initializer by its name of that day, or one of today's."""
    if not isinstance(value, str):
        if callable(value) and not isinstance(value, (type, keras.initializers.Initializer)):
            raise JobError(
                "An initializer must be the name of one. Received: a function, "
                f"{getattr(value, '__name__', value)!r}. Functions that make backend's variables have no place in "
                "today's Keras; give the weights in `weights`."
            )
        return own_layers.drawn_anew(value)
    known = INITIALIZERS_2 if day.speaks_keras_2 else INITIALIZERS
    if day.name == "2" and value in _NORMAL:
        undecided.warn_once(
            f"The initializer {value!r} drew weights that were narrower by an eighth until Keras 2.1 and are as wide "
            "as today from 2.2 on, which is taken. Give a VarianceScaling if the program is of another release."
        )
    if value in known:
        name, arguments = known[value]
        return getattr(keras.initializers, name)(**arguments)
    if day.speaks_keras_2:
        return keras.initializers.get(value)
    raise JobError(one_of("init", value, known))


def activation(value: Any, day: Day) -> Any:
    """Returns an activation by its name of that day, or a function."""
    if value == "hard_sigmoid":
        return own_layers.hard_sigmoid
    if isinstance(value, str) and not day.speaks_keras_2 and value not in ACTIVATIONS:
        raise JobError(one_of("activation", value, ACTIVATIONS))
    return value


def regularizer(value: Any, day: Day) -> Any:
    """Returns a regularizer, or one by the name of that day."""
    if isinstance(value, str) and not day.speaks_keras_2:
        return named_regularizer(value, day)
    return l1_l2() if value == "l1_l2" else value


def l1_l2(l1: float = 0.01, l2: float = 0.01) -> Any:
    """Returns the function of Keras 2.

    Its class L1L2 has no penalty unless it is given one, and neither has today's name.
    """
    return keras.regularizers.L1L2(l1=l1, l2=l2)


def constraint(value: Any, day: Day) -> Any:
    """Returns a constraint, or one by the name of that day."""
    if isinstance(value, str) and value in CONSTRAINTS:
        return named_constraint(value, day)
    return value


def padding(value: Any, _day: Day) -> Any:
    """How a convolution treats the border."""
    if isinstance(value, str) and value in {"full", "half"}:
        raise JobError(
            f"`border_mode` must be 'valid' or 'same'. Received: {value!r}, which only Theano had. Add a ZeroPadding "
            "layer before one with border_mode='valid'."
        )
    return value


def data_format(value: Any, day: Day) -> str:
    """Returns where the channels of images are."""
    if value in _ORDERINGS.values():
        return str(value)
    name = image_dim_ordering(day) if value in {None, "default"} else value
    if name not in _ORDERINGS:
        raise JobError(one_of("dim_ordering", value, ("th", "tf", "default")))
    return _ORDERINGS[name]


def image_dim_ordering(day: Day) -> str:
    """'th' or 'tf': set by the program, in keras.json, or the day's default."""
    return _chosen_ordering.get(day.name) or _configured_ordering() or day.ordering


def orders_channels(day: Day) -> bool:
    """Returns whether the program or keras.json sets the position of channels."""
    return day.name in _chosen_ordering or _configured_ordering() is not None


def set_image_dim_ordering(day: Day, ordering: str) -> None:
    """Have channels first or last from now on."""
    if ordering not in _ORDERINGS:
        raise JobError(one_of("dim_ordering", ordering, _ORDERINGS))
    _chosen_ordering[day.name] = ordering
    # Datasets and the tools for images ask Keras itself.
    keras.config.set_image_data_format(_ORDERINGS[ordering])


def named_regularizer(name: str, _day: Day, *arguments: Any, **named: Any) -> Any:
    """Returns the regularizer that a function or class of `keras.regularizers` returned."""
    if name in REFUSED_REGULARIZERS:
        raise _gone(f"keras.regularizers.{name}", REFUSED_REGULARIZERS[name])
    if name not in REGULARIZERS:
        raise JobError(one_of("regularizer", name, REGULARIZERS))
    today, order, renamed = REGULARIZERS[name]
    given = _ordered(name, order, renamed, arguments, named)
    return getattr(keras.regularizers, today)(**{**REGULARIZER_DEFAULTS[name], **given})


def named_constraint(name: str, _day: Day, *arguments: Any, **named: Any) -> Any:
    """Returns the constraint that a class of `keras.constraints` was."""
    today, order, renamed = CONSTRAINTS[name]
    return getattr(keras.constraints, today)(**_ordered(name, order, renamed, arguments, named))


def loss(value: Any, day: Day) -> Any:
    """Returns a loss by its name of that day, however nested, or a function."""
    if isinstance(value, Mapping):
        return {key: loss(each, day) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [loss(each, day) for each in value]
    if isinstance(value, str):
        name = LONG_NAMES.get(value, value)
        if name == "cosine_proximity":
            return _told_proximity(day)
        if name not in LOSSES and not day.speaks_keras_2:
            raise JobError(one_of("loss", value, LOSSES))
        return _of_margins(name, day)
    if value in (keras.losses.hinge, keras.losses.squared_hinge, own_layers.hinge, own_layers.squared_hinge):
        return _of_margins(value.__name__, day)
    return value


def margins(name: str, day: Day) -> Any:
    """Returns a hinge, whose labels 0 are not -1 until Keras 2.2."""
    return getattr(keras.losses if day.name == "tf2" else own_layers, name)


def _of_margins(name: str, day: Day) -> Any:
    if name not in HINGES:
        return name
    if day.name == "2":
        undecided.warn_once(
            f"{name} took labels as they are until Keras 2.2, which is taken, and labels 0 for -1 in 2.3. Give labels "
            "-1 and 1 if the program is of 2.3."
        )
    return margins(name, day)


HINGES = ("hinge", "squared_hinge")


def metrics(value: Any, day: Day) -> Any:
    """Metrics by their names of that day, however nested."""
    if isinstance(value, Mapping):
        return {key: metrics(each, day) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [metrics(each, day) for each in value]
    if not isinstance(value, str):
        return value
    if value in {"accuracy", "acc"}:
        return value if day.name == "tf2" else day.accuracy
    if day.name == "tf2":
        return value
    name = LONG_NAMES.get(value, value)
    if name in REFUSED_METRICS:
        raise _gone(f"The metric {value!r}", REFUSED_METRICS[name])
    if name == "cosine_proximity":
        return _told_proximity(day)
    if name == "log_cosh" and day.speaks_keras_2:
        return keras.metrics.LogCoshError(name="logcosh")
    if name not in METRICS and not day.speaks_keras_2:
        raise JobError(one_of("metric", value, ("accuracy", *METRICS)))
    return _of_margins(name, day)


def proximity(day: Day) -> Any:
    """Minus the mean of the product until Keras 2.0.8, minus its sum from then on, as today."""
    return keras.losses.cosine_similarity if day.speaks_keras_2 else own_layers.cosine_proximity


def _told_proximity(day: Day) -> Any:
    if day.name == "2":
        undecided.warn_once(
            "cosine_proximity was minus a mean over the outputs until Keras 2.0.8 and is minus their sum from 2.0.9 "
            "on, which is taken. Give a function if the program is of another release."
        )
    return proximity(day)


CONVERTERS: Mapping[str, Callable[[Any, Day], Any]] = {
    "activation": activation,
    "recurrent_activation": activation,
    "padding": padding,
    "data_format": data_format,
}
_BY_ENDING: Mapping[str, Callable[[Any, Day], Any]] = {
    "_initializer": initializer,
    "_regularizer": regularizer,
    "_constraint": constraint,
}


def converted(name: str, value: Any, day: Day) -> Any:
    """Returns the value of an argument of today's name."""
    if name in CONVERTERS:
        return CONVERTERS[name](value, day)
    for ending, convert in _BY_ENDING.items():
        if name.endswith(ending):
            return convert(value, day)
    return value


def _configured_ordering() -> str | None:
    """Returns the setting in the user's keras.json, under its old or new name."""
    folder = os.environ.get("KERAS_HOME") or str(Path.home() / ".keras")
    path = Path(folder) / "keras.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    # Today's Keras writes this file itself, so only the old name is a choice of the user.
    ordering = config.get("image_dim_ordering") if isinstance(config, dict) else None
    return ordering if ordering in _ORDERINGS else None


def _ordered(
    name: str, order: str, renamed: Mapping[str, str], arguments: Sequence[Any], named: Mapping[str, Any]
) -> dict[str, Any]:
    names = order.split()
    if len(arguments) > len(names):
        raise JobError(f"`{name}` takes at most {len(names)} arguments. Received: {len(arguments)}.")
    given = {**dict(zip(names, arguments, strict=False)), **named}
    for each in given:
        if each not in names and each not in renamed.values():
            raise JobError(one_of(f"argument of {name}", each, names))
    return {renamed.get(each, each): value for each, value in given.items()}


def _gone(what: str, instead: str) -> JobError:
    return JobError(f"{what} cannot be kept on today's Keras. Received: a program that uses it. {instead}")
