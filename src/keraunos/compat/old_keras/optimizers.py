"""A call of an old optimizer as one of today's. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras

from keraunos.compat.old_keras import undecided
from keraunos.compat.old_keras.days import Day
from keraunos.compat.old_keras.optimizer_table import OPTIMIZERS, REFUSED_OPTIMIZERS, RENAMED
from keraunos.errors import JobError, one_of

_LATER = ("amsgrad", "learning_rate", "name", "centered")
_KERAS_2_EPSILON = 1e-7
_MOMENTUM = 2  # places of SGD until its momentum


def make(name: str, day: Day, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """The optimizer that a call means: today's, with the rate and the epsilon of that day."""
    entry = OPTIMIZERS[name]
    order = (entry.in_tensorflow if day.name == "tf2" else entry.order).split()
    if day.name == "2" and name == "SGD" and len(arguments) > _MOMENTUM and isinstance(arguments[_MOMENTUM], bool):
        order = entry.in_tensorflow.split()  # Keras 2.3 had that order, too
    if len(arguments) > len(order):
        raise JobError(
            f"{name} takes at most {len(order)} arguments without a name, {', '.join(order)}. Received: {arguments!r}."
        )
    given = {**dict(zip(order, arguments, strict=False)), **named}
    known = {*order, *entry.order.split(), "clipnorm", "clipvalue", *(_LATER if day.speaks_keras_2 else ())}
    for each in given:
        if each not in known:
            raise JobError(one_of(f"argument of {name}", each, sorted(known)))
    undecided.say_defaults(name, day, given)
    decay = given.pop("decay", 0.0) or 0.0
    # TensorFlow's own clipped each gradient by itself, as today's does.
    renamed = {"lr": "learning_rate"} if day.name == "tf2" else RENAMED
    today = {renamed.get(each, each): value for each, value in given.items() if value is not None}
    for each, value in entry.defaults.items():
        if day.name != "tf2":
            today.setdefault(each, value)
    if "epsilon" in entry.order:
        epsilon = float(today.get("epsilon", day.epsilons.get(name, _KERAS_2_EPSILON)))
        today["epsilon"] = epsilon * epsilon if entry.squared else epsilon
    if decay:
        # `lr / (1 + decay * steps)`
        rate = float(today.get("learning_rate", 0.001))
        today["learning_rate"] = keras.optimizers.schedules.InverseTimeDecay(rate, 1, float(decay))
    made = getattr(keras.optimizers, name)(**today)
    name_rate(made)
    return made


def name_rate(optimizer: Any) -> None:
    """Have the rate known as `lr`, too, as in `K.set_value(model.optimizer.lr, …)`; one of a schedule is none."""
    rate = getattr(optimizer, "_learning_rate", None)
    if isinstance(rate, keras.Variable):
        # Past Keras's own bookkeeping, which has this variable already.
        object.__setattr__(optimizer, "lr", rate)


def get(value: Any, day: Day) -> Any:
    """An optimizer by its name of that day, or the one that is given."""
    if not isinstance(value, str):
        if isinstance(value, keras.optimizers.Optimizer):
            return value
        raise JobError(f"`optimizer` must be an optimizer or the name of one. Received: {value!r}.")
    by_name = {name.lower(): name for name in OPTIMIZERS}
    refused = {name.lower(): name for name in REFUSED_OPTIMIZERS}
    if value.lower() in refused:
        raise refusal(refused[value.lower()])
    if value.lower() not in by_name:
        raise JobError(one_of("optimizer", value, by_name))
    return make(by_name[value.lower()], day, (), {})


def refusal(name: str) -> JobError:
    """The error for an optimizer that today's Keras has not."""
    return JobError(
        f"keras.optimizers.{name} cannot be kept on today's Keras. Received: a program that uses it. "
        f"{REFUSED_OPTIMIZERS[name]}"
    )
