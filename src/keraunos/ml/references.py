"""Where the custom code of a saved model can be found again, without pickling it. Runs on the driver."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from keraunos.errors import JobError, ModelError


def to_references(custom_objects: Mapping[str, Any]) -> dict[str, str]:
    """Where each custom class or function can be found again, as `module:name` or as the name Keras registered."""
    if not custom_objects:
        return {}
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
    if not references:
        return {}
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


def _imported(module: str, qualified: str) -> Any:
    try:
        value = importlib.import_module(module)
        for part in qualified.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError):
        return None
    return value
