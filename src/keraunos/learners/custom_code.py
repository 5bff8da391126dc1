"""The classes and functions of a user's own in a model archive: what they are, and where a process finds them.

Runs on the driver and on workers. Keras reads custom code back only where it is registered or handed over. A worker
has neither seen the user's notebook nor imported their modules, so the driver looks for what a worker could not find,
and a worker imports the modules that the archive names.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import keras

from keraunos.errors import ModelError

ADVICE = "Hand it over in `customObjects`, or, if it is a class, put it into a module that the workers can import."

# Where Keras looks for its own functions, of which an archive holds only the names.
_FUNCTION_MODULES = ("activations", "constraints", "initializers", "losses", "metrics", "optimizers", "regularizers")


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
    with zipfile.ZipFile(io.BytesIO(archive)) as parts:
        config = json.loads(parts.read("config.json"))
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


def resolved(archive: bytes, custom_objects: Mapping[str, Any]) -> dict[str, Any]:
    """The custom objects that reading the archive takes: those handed over, and those in modules that it names."""
    known = dict(custom_objects)
    for code in custom_code_in(archive):
        given = code.found_in(custom_objects)
        if given is not None:
            known[code.registered_name] = given
        elif keras.saving.get_registered_object(code.registered_name) is None and code.kind != "lambda":
            known[code.registered_name] = _imported(code)
    return known


def _imported(code: CustomCode) -> Any:
    found = None
    if code.module is not None:
        with contextlib.suppress(ImportError):
            found = getattr(importlib.import_module(code.module), code.name, None)
    # Importing may have registered it; otherwise only what Keras could have written is taken from a module.
    registered = keras.saving.get_registered_object(code.registered_name)
    if registered is not None:
        return registered
    if isinstance(found, type) and hasattr(found, "from_config"):
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
    kind, module = config["class_name"], config.get("module")
    if kind == "__lambda__":
        return CustomCode("lambda", "<lambda>", "<lambda>", None, place)
    if "config" not in config or (isinstance(module, str) and module.split(".")[0] == "keras"):
        return None
    if kind == "function":
        name = str(config["config"])
        own = not any(hasattr(getattr(keras, each), name) for each in _FUNCTION_MODULES)
        return CustomCode("function", name.rpartition(">")[2], name, None, place) if own else None
    if module == "builtins" or (module is None and config.get("registered_name") is None):
        return None
    return CustomCode("class", kind, config.get("registered_name") or kind, module, place)
