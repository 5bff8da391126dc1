"""Which weights a model trains, settled when it is compiled. Runs on the driver.

Until Keras 3, `trainable` counted as it was when `compile` was called: a discriminator that is frozen for a second
model continued learning by itself, and the second model never moved it. Today the flags count as they are when training
begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import keras

from keraunos.compat.old_keras import undecided
from keraunos.compat.old_keras.days import Day

# The flag of a model; those of its layers, outer ones first, with those of their variables.
_Flags = tuple[bool, list[tuple[Any, bool, list[tuple[Any, bool]]]]]
_flags: WeakKeyDictionary[Any, _Flags] = WeakKeyDictionary()


def note(model: Any, day: Day) -> None:
    """Settle what the model trains until it is compiled again."""
    _flags[model] = _found(model)
    if day.name != "tf2" and any(
        isinstance(layer, keras.layers.BatchNormalization) and not layer.trainable for layer in _layers(model)
    ):
        undecided.warn_once(
            "A BatchNormalization that is frozen normalizes by its moving averages in today's Keras, and does not "
            "update them; in the old Keras it normalized by the batch in training, and updated them. "
            "Today's behaviour is used."
        )


@contextmanager
def as_compiled(model: Any) -> Iterator[None]:
    """Within this context, weights are trainable as they were when the program compiled the model."""
    settled = _flags.get(model)
    now = _found(model)
    if settled is None or _same(settled, now):
        yield
        return
    _set(model, settled)
    try:
        yield
    finally:
        _set(model, now)


def _layers(model: Any) -> list[Any]:
    return list(model._flatten_layers(include_self=False, recursive=True))


def _found(model: Any) -> _Flags:
    flags = []
    for layer in _layers(model):
        variables = [(each, bool(each.trainable)) for each in layer._trainable_variables]
        flags.append((layer, bool(layer.trainable), variables))
    return bool(model.trainable), flags


def _same(settled: _Flags, now: _Flags) -> bool:
    """Returns whether both freeze the same; for newer layers and variables, their layer's flag applies."""
    layers = {id(layer): flag for layer, flag, _variables in settled[1]}
    each = {id(variable): flag for _layer, _flag, variables in settled[1] for variable, flag in variables}
    return settled[0] == now[0] and all(
        layers.get(id(layer), flag) == flag
        and all(each.get(id(variable), layers.get(id(layer), flag)) == value for variable, value in variables)
        for layer, flag, variables in now[1]
    )


def _set(model: Any, flags: _Flags) -> None:
    # A flag goes down to all within, whose own come after it.
    model.trainable = flags[0]
    for layer, flag, _variables in flags[1]:
        layer.trainable = flag
    for _layer, _flag, variables in flags[1]:
        for variable, flag in variables:
            variable.trainable = flag
