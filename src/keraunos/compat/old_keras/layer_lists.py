"""`model.layers`, which was the list that the model held and is a copy of it today. Runs on the driver."""

from __future__ import annotations

import sys
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

import keras
from keras.src.models.functional import Functional

from keraunos.compat.old_keras.days import Day
from keraunos.compat.run_unchanged.shadows import is_programs
from keraunos.errors import JobError

_days: WeakKeyDictionary[Any, Day] = WeakKeyDictionary()
_CHANGES = (
    "append",
    "clear",
    "extend",
    "insert",
    "pop",
    "remove",
    "reverse",
    "sort",
    "__delitem__",
    "__iadd__",
    "__setitem__",
)


class Layers(list[Any]):
    """The layers of a model. In Keras 0 taking the last one out took it off the model; other changes are refused."""

    def __init__(self, model: Any, day: Day, layers: list[Any]) -> None:
        super().__init__(layers)
        self._model = model
        self._day = day

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


def hand_out(model: Any, day: Day) -> None:
    """Have the program see such a list as the model's layers."""
    if day.name == "tf2":
        return  # there it was a copy, too
    _days[model] = day
    for kind in (keras.Model, keras.Sequential, Functional):
        if not isinstance(vars(kind)["layers"], _Property):
            kind.layers = _Property(vars(kind)["layers"])


class _Property(property):
    """The property of Keras, which only programs of an older Keras see another way."""

    def __init__(self, theirs: property) -> None:
        super().__init__(theirs.fget, theirs.fset, theirs.fdel, theirs.__doc__)

    def __get__(self, model: Any, kind: type | None = None) -> Any:
        found = super().__get__(model, kind)
        day = None if model is None else _days.get(model)
        if day is None or is_programs(sys._getframe(1).f_globals) is False:
            return found
        return Layers(model, day, found)


def _changing(name: str) -> Any:
    def change(layers: Layers, *arguments: Any) -> Any:
        whole = isinstance(layers._model, keras.Sequential) and layers._day.name == "0"
        if name == "pop" and whole and arguments in {(), (-1,), (len(layers) - 1,)} and layers:
            keras.Sequential.pop(layers._model)
            return list.pop(layers)
        _refuse(layers, name)

    change.__name__ = name
    return change


def _refuse(layers: Layers, name: str) -> NoReturn:
    sequential = isinstance(layers._model, keras.Sequential)
    instead = (
        "Call model.pop(), which takes the last layer off, and model.add(...)"
        if sequential
        else "Make a model up to the layer that is to be the last: Model(model.input, model.layers[-2].output)"
    )
    raise JobError(
        f"`model.layers` must not be changed on today's Keras, where the model would stay as it is. Received: `{name}` "
        f"of the layers of {layers._model.name!r}. {instead}; leave out what sets model.outputs and outbound_nodes."
    )


for _name in _CHANGES:
    setattr(Layers, _name, _changing(_name))
