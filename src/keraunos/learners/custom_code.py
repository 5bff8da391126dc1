"""The classes and functions of a user's own in a model archive: what they are, and where a process finds them.

Runs on the driver and on workers. Keras reads custom code back only where it is registered or handed over. A worker
has neither seen the user's notebook nor imported their modules, so the driver looks for what a worker could not find,
and a worker imports the modules that the archive names. No process imports a module because an archive names it: the
module must be trusted (see `keraunos.trust`). A driver tells its workers which ones they may import.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import keras

from keraunos.errors import ModelError
from keraunos.learners.archive_parts import config_of
from keraunos.trust import GRAPH_LAYERS, MAIN, how_to_trust, is_trusted, trusted_operations

ADVICE = "Hand it over in `customObjects`, or, if it is a class, put it into a module that the workers can import."

_BUILTINS = "builtins"

# Where Keras looks for its own functions, of which an archive holds only the names.
FUNCTION_MODULES = ("activations", "constraints", "initializers", "losses", "metrics", "optimizers", "regularizers")


@dataclass(frozen=True)
class CustomCode:
    """One class or function in an archive that is not Keras's: its kind, names, module and place in the model."""

    kind: str
    name: str
    registered_name: str
    module: str | None
    place: str

    def found_in(self, custom_objects: Mapping[str, Any]) -> Any | None:
        """What was handed over under this name."""
        return custom_objects.get(self.registered_name, custom_objects.get(self.name))


def custom_code_in(archive: bytes) -> list[CustomCode]:
    """The custom classes and functions that an archive needs."""
    return custom_code_of(config_of(archive))


def custom_code_of(config: Any) -> list[CustomCode]:
    """The custom classes and functions that a configuration needs, as Keras writes it into an archive."""
    return list(_walk(config, "model"))


def check_portable(archive: bytes, custom_objects: Mapping[str, Any]) -> None:
    """Raise where the archive needs code that a worker would not find."""
    for code in custom_code_in(archive):
        if code.kind == "lambda":
            raise ModelError(
                f"A lambda in the {code.place} cannot be written to an archive. Expected: a named function. "
                "Received: a lambda. Define a function with a name and hand it over in `customObjects`."
            )
        # An archive says in which module a class is, but of a function only the name.
        if code.module is None and code.found_in(custom_objects) is None:
            where = " defined in this script or notebook" if code.kind == "class" else ""
            raise ModelError(
                f"The {code.kind} {code.name!r} in the {code.place} must be one that the workers can find. Received: "
                f"a {code.kind}{where} that is not in `customObjects`. {ADVICE}"
            )


def resolved(code: Iterable[CustomCode], custom_objects: Mapping[str, Any]) -> dict[str, Any]:
    """The custom objects that reading an archive takes: those handed over, and those in trusted modules it names.

    Raises:
        ModelError: where the archive names a class or function of a module that is not trusted.
    """
    known = dict(custom_objects)
    for each in code:
        given = each.found_in(custom_objects)
        if given is not None:
            known[each.registered_name] = given
        elif keras.saving.get_registered_object(each.registered_name) is None and each.kind != "lambda":
            known[each.registered_name] = _imported(each)
    return known


def needed_modules(code: Iterable[CustomCode], custom_objects: Mapping[str, Any]) -> tuple[str, ...]:
    """The modules that a worker must import for an archive that this process may read.

    Raises:
        ModelError: where one of them is not trusted.
    """
    modules = set()
    for each in code:
        if each.kind == "lambda" or each.found_in(custom_objects) is not None:
            continue
        registered = keras.saving.get_registered_object(each.registered_name)
        if registered is None:
            _check_trusted(each)
        # What is registered is trusted where it is, and not where the archive says.
        modules.add(each.module if registered is None else registered.__module__)
    operations = trusted_operations() if GRAPH_LAYERS & modules else ()
    return (*sorted(module for module in modules if module not in (None, MAIN)), *operations)


def is_function_of_keras(name: str) -> bool:
    """Whether Keras takes the name alone for a function of its own."""
    return any(hasattr(getattr(keras, each), name) for each in FUNCTION_MODULES)


def essence(error: BaseException) -> str:
    """Keras's message in a sentence or two: without what it teaches, and the configuration that it repeats."""
    message = " ".join(str(error).split()).rpartition("Exception encountered:")[2]
    for lecture in ("Please implement", "Please ensure", "Make sure custom", "Full object config", "config={"):
        message = message.partition(lecture)[0]
    message = message.strip()[:300] or f"{type(error).__name__}."
    return message if message.endswith((".", "!", "?")) else f"{message}."


def _check_trusted(code: CustomCode) -> None:
    if code.module is not None and not is_trusted(code.module):
        raise ModelError(
            f"The {code.kind} {code.name!r} of the module {code.module!r} in the {code.place} is not trusted. "
            "Expected: code of Keras, registered or handed-over code, or a trusted module. Received: an archive that "
            f"names {f'{code.module}.{code.name}'!r}. "
            f"{how_to_trust(code.module)}."
        )


def _imported(code: CustomCode) -> Any:
    _check_trusted(code)
    found = None
    if code.module is not None:
        with contextlib.suppress(ImportError):
            found = getattr(importlib.import_module(code.module), code.name, None)
    # Importing may have registered it; otherwise only what Keras could have written is taken from a module.
    registered = keras.saving.get_registered_object(code.registered_name)
    if registered is not None:
        return registered
    # A trusted module may itself have imported a class of another one, which is not trusted for that.
    if isinstance(found, type) and hasattr(found, "from_config") and is_trusted(found.__module__):
        return found
    module = f" of the module {code.module!r}" if code.module else ""
    raise ModelError(
        f"The {code.kind} {code.name!r}{module} in the {code.place} cannot be found in this process. "
        f"Received: an archive that needs it. {ADVICE}"
    )


def _walk(config: Any, place: str) -> Iterator[CustomCode]:
    if isinstance(config, list):
        for item in config:
            yield from _walk(item, place)
    if not isinstance(config, dict):
        return
    code = _custom(config, place) if "class_name" in config else None
    if code is not None:
        yield code
    for key, value in config.items():
        if key == "layers" and isinstance(value, list):
            for layer in value:
                yield from _walk(layer, f"layer {_name(layer)!r}")
        elif key == "compile_config" and isinstance(value, dict):
            for part, inner in value.items():
                yield from _walk(inner, f"compiled {part}")
        else:
            yield from _walk(value, place)


def _name(layer: Any) -> str:
    config = layer.get("config") if isinstance(layer, dict) else None
    return str(config.get("name", "")) if isinstance(config, dict) else ""


def _custom(config: dict[str, Any], place: str) -> CustomCode | None:
    kind, module, registered = config["class_name"], config.get("module"), config.get("registered_name")
    if kind == "__lambda__":
        return CustomCode("lambda", "<lambda>", "<lambda>", None, place)
    if "config" not in config or is_of_keras(module):
        return None
    if kind == "function":
        name = str(config["config"])
        if module in (None, _BUILTINS) and is_function_of_keras(name):
            return None
        # Keras writes a function's name without its module, so that one with a module is nobody's.
        named = None if module in (None, _BUILTINS) else str(module)
        return CustomCode("function", name.rpartition(">")[2], name, named, place)
    if kind == "__typespec__":
        return CustomCode("class", str(config.get("spec_name")), str(registered), str(module), place)
    if module == _BUILTINS or (module is None and registered is None):
        return None
    return CustomCode("class", str(kind), str(registered or kind), module, place)


def is_of_keras(module: Any) -> bool:
    """Whether a configuration's module is Keras's own."""
    return isinstance(module, str) and module.split(".")[0] == "keras"
