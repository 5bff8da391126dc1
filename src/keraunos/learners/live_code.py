"""The live classes and functions that Keras writes into an archive by their names only. Runs on the driver.

A class or function of a script, a notebook or another function cannot be imported by a worker. It is noted here while
Keras serializes the model, and then travels with the model as if it had been handed over in `customObjects`.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
import types
from collections.abc import Iterator, Mapping
from typing import Any

from keraunos.errors import ModelError
from keraunos.learners.custom_code import custom_code_in, is_function_of_keras, is_of_keras
from keraunos.trust import GRAPH_LAYERS, MAIN, RAW_OPERATIONS

# The function that notes belongs to the whole process, and fits may run side by side on the driver.
_one_at_a_time = threading.Lock()

# Functions of these may stand in for Keras's of the same name, as `tf.nn.relu` does.
_FRAMEWORKS = {"jax", "keras", "tensorflow", "torch"}


class LiveCode:
    """What was noted: for each name that Keras writes, the different objects that have it."""

    def __init__(self) -> None:
        self._noted: dict[str, list[Any]] = {}
        self._modules: set[str] = set()

    def add(self, name: str, value: Any) -> None:
        """Note a class or function that is not a framework's, and the module of any class that is not Keras's."""
        if isinstance(value, type) and not is_of_keras(value.__module__):
            self._modules.add(str(value.__module__))
        own = isinstance(value, (type, types.FunctionType)) and str(value.__module__).split(".")[0] not in _FRAMEWORKS
        others = self._noted.setdefault(name, []) if own else []
        if own and not any(value is each for each in others):
            others.append(value)

    def all(self) -> dict[str, Any]:
        """Every name with its object, the last where there are several."""
        return {name: values[-1] for name, values in self._noted.items()}

    def modules(self) -> tuple[str, ...]:
        """The modules of the live classes, which another process may import to find them again."""
        # A graph in a layer is the user's own, whatever its operations do.
        operations = (RAW_OPERATIONS,) if GRAPH_LAYERS & self._modules else ()
        return (*sorted(each for each in self._modules if each not in {MAIN, "builtins"}), *operations)

    def needed_by(self, archive: bytes, custom_objects: Mapping[str, Any]) -> dict[str, Any]:
        """What must travel with the archive by its Keras name; what is in `custom_objects` wins."""
        self._check_names(custom_objects)
        needed = {}
        for code in custom_code_in(archive):
            values = self._noted.get(code.registered_name, [])
            if code.found_in(custom_objects) is not None or not values:
                continue
            if len(values) > 1:
                raise ModelError(
                    f"The {code.kind} {code.name!r} in the {code.place} must be the only one of its name. Received: "
                    f"{len(values)} different ones, {' and '.join(map(repr, values))}. Rename one of them."
                )
            # An archive says in which module a class is, but of a function only the name.
            if code.kind == "function" or not _is_importable(values[0]):
                needed[code.registered_name] = values[0]
        return needed

    def _check_names(self, custom_objects: Mapping[str, Any]) -> None:
        """Refuse functions that a worker would take for Keras's own."""
        for name, values in self._noted.items():
            own = [each for each in values if isinstance(each, types.FunctionType)]
            if own and name not in custom_objects and is_function_of_keras(name):
                raise ModelError(
                    f"The function {name!r} must not have the name of one of Keras's functions, which would be taken "
                    f"in its place. Received: {own[0]!r} of {own[0].__module__!r}. Rename it."
                )


@contextlib.contextmanager
def noted_code() -> Iterator[LiveCode]:
    """Note each class and function of users that Keras serializes in here."""
    # Keras asks for the name of whatever it has no public name for. There is no public way to see the object.
    registration: Any = importlib.import_module("keras.src.saving.object_registration")
    live = LiveCode()

    def noting(value: Any) -> Any:
        name = original(value)
        live.add(str(name), value)
        return name

    with _one_at_a_time:
        original = registration.get_registered_name
        registration.get_registered_name = noting
        try:
            yield live
        finally:
            registration.get_registered_name = original


def _is_importable(value: Any) -> bool:
    """Whether another process finds it by its module and its plain name, as it reads them in an archive."""
    if value.__module__ == "__main__" or value.__qualname__ != value.__name__:
        return False
    return getattr(sys.modules.get(value.__module__), value.__name__, None) is value
