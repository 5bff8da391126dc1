"""Where the custom code of a saved model can be found again, without pickling it. Runs on the driver."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Mapping
from typing import Any

from keraunos.errors import JobError, ModelError
from keraunos.learners.framework_imports import import_keras
from keraunos.trust import how_to_trust, is_trusted

logger = logging.getLogger(__name__)

_REMEDY = "Move it to a module, or register it with `keras.saving.register_keras_serializable`"


def to_references(custom_objects: Mapping[str, Any]) -> dict[str, str]:
    """Where each custom class or function can be found again, as `module:name` or as the name Keras registered."""
    references = {}
    for name, value in custom_objects.items():
        reference = _reference(value)
        if reference is None:
            raise JobError(
                f"The model uses {name!r}, which a saved model could not find again. Expected code that is importable "
                f"or registered. Received: {value!r}, defined in {value.__module__!r}. {_REMEDY} and run that before "
                "loading."
            )
        references[name] = reference
    return references


def tell_unsavable(custom_objects: Mapping[str, Any]) -> None:
    """Warn before a training whose model cannot be saved."""
    names = [name for name, value in custom_objects.items() if _reference(value) is None]
    if names:
        logger.warning(
            "The model can be trained and used but not saved, because it uses %s of this script or notebook, which a "
            "saved model could not find again. %s.", ", ".join(map(repr, names)), _REMEDY,
        )  # fmt: skip


def from_references(references: Mapping[str, str]) -> dict[str, Any]:
    """The classes and functions that `to_references` described."""
    if not references:
        return {}
    keras = import_keras()

    found = {}
    for name, reference in references.items():
        module, separator, qualified = str(reference).partition(":")
        value = _found(name, module, qualified) if separator else keras.saving.get_registered_object(reference)
        if value is None:
            raise ModelError(
                f"The saved model uses custom code that is not here: {name!r}. Expected it as {reference!r}. Install "
                "the module, or run the code that registers it, before loading."
            )
        found[name] = value
    return found


def _found(name: str, module: str, qualified: str) -> Any:
    """What is registered under that name, or in a trusted module; nothing is imported of any other."""
    keras = import_keras()
    for each in keras.saving.get_custom_objects().values():
        if (each.__module__, each.__qualname__) == (module, qualified):
            return each
    if not is_trusted(module):
        raise ModelError(
            f"The saved model uses {name!r} of the module {module!r}, which is not trusted. Expected: registered code, "
            f"or a trusted module. Received: metadata that names {f'{module}:{qualified}'!r}. {how_to_trust(module)}."
        )
    value = _imported(module, qualified)
    # A module has more attributes than its own code: what it has imported is another module's.
    own = (getattr(value, "__module__", None), getattr(value, "__qualname__", None)) == (module, qualified)
    return value if own else None


def _reference(value: Any) -> str | None:
    keras = import_keras()
    module, qualified = value.__module__, value.__qualname__
    if module != "__main__" and _imported(module, qualified) is value:
        return f"{module}:{qualified}"
    registered = str(keras.saving.get_registered_name(value))
    return None if registered == value.__name__ else registered


def _imported(module: str, qualified: str) -> Any:
    try:
        value = importlib.import_module(module)
        for part in qualified.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError):
        return None
    return value
