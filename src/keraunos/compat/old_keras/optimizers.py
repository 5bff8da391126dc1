"""A call of an old optimizer as one of today's. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import keras
import numpy as np

from keraunos.compat.old_keras import own_optimizers, undecided
from keraunos.compat.old_keras.days import Day
from keraunos.compat.old_keras.optimizer_table import OPTIMIZERS, REFUSED_OPTIMIZERS, RENAMED
from keraunos.errors import JobError, one_of

_LATER = ("amsgrad", "learning_rate", "name", "centered")
_KERAS_2_EPSILON = 1e-7
_MOMENTUM = 2  # places of SGD until its momentum


def make(name: str, day: Day, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Returns the optimizer that a call means: today's, with the rate and the epsilon of that day."""
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
        today["epsilon"] = epsilon * epsilon if entry.squared and day.name != "0" else epsilon
    both = "clipvalue" in today and "global_clipnorm" in today
    if decay:
        today["decay"] = float(decay)
    return _readable(getattr(own_optimizers if decay or both else keras.optimizers, name)(**today), day)


def from_config(name: str, day: Day, config: Mapping[str, Any]) -> Any:
    """Returns the optimizer of a configuration, of that day or of today."""
    if "learning_rate" in config and day.name != "tf2":
        return _readable(getattr(keras.optimizers, name).from_config(dict(config)), day)
    return make(name, day, (), {each: value for each, value in config.items() if each not in {"name", "class_name"}})


def for_compile(optimizer: Any, day: Day) -> Any:
    """The optimizer for another network: it had new moments there, but its old rate and step count."""
    if day.name == "tf2" or not isinstance(getattr(optimizer, "_learning_rate", None), keras.Variable):
        return optimizer
    if not optimizer.built and optimizer not in _compiled:
        _compiled[optimizer] = None
        return optimizer
    if optimizer in _assigned:
        optimizer._learning_rate.assign(_assigned.pop(optimizer))
    twin = type(optimizer).from_config(optimizer.get_config())
    for name in ("_iterations", "_learning_rate"):
        twin._untrack_variable(getattr(twin, name))
    for name in ("_iterations", "_learning_rate"):
        setattr(twin, name, getattr(optimizer, name))
    _compiled[twin] = None
    return twin


_compiled: WeakKeyDictionary[Any, None] = WeakKeyDictionary()
_assigned: WeakKeyDictionary[Any, float] = WeakKeyDictionary()


def _rate(optimizer: Any) -> Any:
    return _assigned.get(optimizer, optimizer._learning_rate)


def _assign_rate(optimizer: Any, value: Any) -> None:
    """An assigned rate applies only to networks that are not yet trained, as in old Keras."""
    if not isinstance(optimizer._learning_rate, keras.Variable):
        raise JobError(f"`lr` of an optimizer with a schedule must not be set: it is computed. Received: {value!r}.")
    number = float(np.asarray(value))
    if not optimizer.built:
        optimizer._learning_rate.assign(number)
        return
    _assigned[optimizer] = number
    undecided.warn_once(
        "`optimizer.lr = ...` had no effect in Keras 0 to 2 on a network that was trained already, until the next "
        "compile, and has none here. Write K.set_value(model.optimizer.lr, ...) for one."
    )


# `K.set_value(model.optimizer.lr, ...)`; today's own code has no such name.
keras.optimizers.Optimizer.lr = property(_rate, _assign_rate)


def _readable(optimizer: Any, day: Day) -> Any:
    """Returns the optimizer, with a rate that has the methods of Theano's variables."""
    rate = optimizer._learning_rate
    if not day.speaks_keras_2 and isinstance(rate, keras.Variable):
        rate.set_value, rate.get_value = rate.assign, rate.numpy
    return optimizer


def get(value: Any, day: Day) -> Any:
    """Returns an optimizer by its name of that day, or the one that is given."""
    if isinstance(value, Mapping):
        name = str(value.get("class_name", value.get("name")))
        known = {each.lower(): each for each in OPTIMIZERS}
        if name.lower() in known:
            return from_config(known[name.lower()], day, value.get("config", value))
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
    """Returns the error for an optimizer that today's Keras has not."""
    return JobError(
        f"keras.optimizers.{name} cannot be kept on today's Keras. Received: a program that uses it. "
        f"{REFUSED_OPTIMIZERS[name]}"
    )
