"""Custom layers, losses and functions of a model: can workers, or a later process, find them? Runs on the driver."""

from __future__ import annotations

import importlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

from keraunos.errors import JobError, ModelError


def check_archive(archive: bytes, custom_objects: Mapping[str, Any]) -> None:
    """Refuse a model with code that a worker could not find: a lambda, or a name neither importable nor given."""
    with zipfile.ZipFile(io.BytesIO(archive)) as parts:
        config = json.loads(parts.read("config.json"))
    missing = []
    for name in _custom_names(config):
        if name == "__lambda__":
            raise ModelError(
                "The model holds a lambda, which cannot be rebuilt on a worker. Expected named functions and classes. "
                "Write a function with `def` (for a Lambda layer: a class with `call`), and hand it over in "
                "`customObjects`."
            )
        if name not in custom_objects and name.rpartition(">")[2] not in custom_objects:
            missing.append(name.rpartition(">")[2])
    if missing:
        names = ", ".join(dict.fromkeys(missing))
        example = ", ".join(f"{name!r}: {name}" for name in dict.fromkeys(missing))
        raise ModelError(
            f"The model uses custom code that workers cannot import: {names}. Expected it in a module that is "
            f"installed on the workers, or in `customObjects`. Received: customObjects={dict(custom_objects)!r}. "
            f"Set customObjects={{{example}}}."
        )


def to_references(custom_objects: Mapping[str, Any]) -> dict[str, str]:
    """Where each custom class or function can be found again, as `module:name` or as the name Keras registered."""
    import keras

    references = {}
    for name, value in custom_objects.items():
        module, qualified = value.__module__, value.__qualname__
        registered = keras.saving.get_registered_name(value)
        if module != "__main__" and _imported(module, qualified) is value:
            references[name] = f"{module}:{qualified}"
        elif registered != value.__name__:
            references[name] = registered
        else:
            raise JobError(
                f"`customObjects` holds {name!r}, which a saved model could not find again. Expected code that is "
                f"importable or registered. Received: {value!r}, defined in {module!r}. Move it to a module, or "
                "register it with `keras.saving.register_keras_serializable` and run that before loading."
            )
    return references


def from_references(references: Mapping[str, str]) -> dict[str, Any]:
    """The classes and functions that `to_references` described."""
    import keras

    found = {}
    for name, reference in references.items():
        module, separator, qualified = reference.partition(":")
        value = _imported(module, qualified) if separator else keras.saving.get_registered_object(reference)
        if value is None:
            raise ModelError(
                f"The saved model uses custom code that is not here: {name!r}. Expected it as {reference!r}. Install "
                "the module, or run the code that registers it, before loading."
            )
        found[name] = value
    return found


def _custom_names(config: Any) -> Iterator[str]:
    """The names in a serialised model that do not say where their code can be imported from."""
    if isinstance(config, list):
        for each in config:
            yield from _custom_names(each)
    if not isinstance(config, dict):
        return
    kind = config.get("class_name")
    if kind == "__lambda__":
        yield kind
    elif kind == "function" and config.get("module") == "builtins":
        yield str(config["config"])
    elif kind is not None and config.get("registered_name") and config.get("module", "") is None:
        yield str(config["registered_name"])
    for each in config.values():
        yield from _custom_names(each)


def _imported(module: str, qualified: str) -> Any:
    try:
        value = importlib.import_module(module)
        for part in qualified.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError):
        return None
    return value
