"""A compiled Keras model as the bytes of a `.keras` archive, and back. Runs on the driver and on workers."""

from __future__ import annotations

import tempfile
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras

from keraunos.batch import BatchSpec
from keraunos.errors import ModelError

CustomObjects = Mapping[str, Any]

# Filters on warnings belong to the whole process, and fits may run side by side on the driver.
_one_at_a_time = threading.Lock()


def to_archive(model: Any, custom_objects: CustomObjects | None = None) -> bytes:
    """The model with its weights, optimizer, loss and metrics; refused where it could not be read back."""
    with tempfile.TemporaryDirectory(prefix="keraunos-") as folder:
        path = Path(folder) / "model.keras"
        try:
            with keras.saving.custom_object_scope(dict(custom_objects or {})):
                model.save(path)
        except Exception as error:
            raise ModelError(
                f"The model {model.name!r} cannot be written as a .keras archive: {_first_line(error)} Expected: every "
                "layer, loss, metric and the optimizer to have `get_config`. " + _ADVICE
            ) from error
        return path.read_bytes()


def from_archive(archive: bytes, custom_objects: CustomObjects | None = None) -> Any:
    """The compiled model in an archive."""
    with tempfile.TemporaryDirectory(prefix="keraunos-") as folder:
        path = Path(folder) / "model.keras"
        path.write_bytes(archive)
        try:
            with _one_at_a_time, warnings.catch_warnings():
                # An optimizer that had not stepped when it was saved has nothing to load.
                warnings.filterwarnings("ignore", "Skipping variable loading for optimizer", UserWarning)
                return keras.saving.load_model(path, custom_objects=dict(custom_objects or {}))
        except Exception as error:
            raise ModelError(f"The model cannot be read from its archive: {_first_line(error)} " + _ADVICE) from error


def build(model: Any, spec: BatchSpec) -> None:
    """Create the variables of the model, its loss, its metrics and its optimizer for batches that follow `spec`."""
    example = spec.example()
    data = (example.inputs, arrange_targets(model, example.targets), example.weights)
    # What `fit` itself calls: it follows shapes through the model without computing anything. There is no public way.
    model._symbolic_build(data_batch=data)


def check_trainable(model: Any) -> None:
    """Raise where the model cannot be trained as it was compiled."""
    if not getattr(model, "compiled", False) or model.optimizer is None:
        raise ModelError(
            f"The model {model.name!r} must be compiled. Received: a model without an optimizer. "
            "Call `model.compile(optimizer=..., loss=...)` first."
        )


def arrange_targets(model: Any, targets: Any) -> Any:
    """Targets by output name, in the structure in which the model returns its outputs."""
    if not isinstance(targets, dict):
        return targets
    names = getattr(model, "output_names", None)
    structure = getattr(model, "output", None) if names else None
    if structure is None or isinstance(structure, dict) or set(names or ()) != set(targets):
        return targets
    arranged = [targets[name] for name in names or ()]
    return arranged if isinstance(structure, (list, tuple)) else arranged[0]


_ADVICE = (
    "Give a custom class `get_config`, use named functions instead of lambdas, and make them importable and "
    "registered with `keras.saving.register_keras_serializable`, or hand them over in `customObjects`."
)


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else repr(error)
