"""A compiled Keras model as the bytes of a `.keras` archive, and back. Runs on the driver and on workers."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import keras

from keraunos.batch import BatchSpec
from keraunos.errors import ModelError
from keraunos.learners.custom_code import ADVICE, check_portable, resolved
from keraunos.learners.loss_parts import has_own_loss

CustomObjects = Mapping[str, Any]

# Filters on warnings belong to the whole process, and fits may run side by side on the driver.
_one_at_a_time = threading.Lock()


def to_archive(model: Any, custom_objects: CustomObjects | None = None) -> bytes:
    """The model with its weights, optimizer, loss and metrics; refused where a worker could not read it back."""
    handed_over = dict(custom_objects or {})
    with tempfile.TemporaryDirectory(prefix="keraunos-") as folder:
        path = Path(folder) / "model.keras"
        try:
            with _quietly(), without_tensorflow(), keras.saving.custom_object_scope(handed_over):
                model.save(path)
        except Exception as error:
            raise ModelError(
                f"The model {model.name!r} cannot be written as a .keras archive. Expected: layers, losses, metrics "
                "and an optimizer whose `get_config` returns what their constructors take. Received: "
                f"{_essence(error)} Give the class a `get_config`."
            ) from error
        archive = path.read_bytes()
    check_portable(archive, handed_over)
    return archive


def from_archive(archive: bytes, custom_objects: CustomObjects | None = None) -> Any:
    """The compiled model in an archive."""
    needed = resolved(archive, custom_objects or {})
    with tempfile.TemporaryDirectory(prefix="keraunos-") as folder:
        path = Path(folder) / "model.keras"
        path.write_bytes(archive)
        try:
            with _quietly():
                return keras.saving.load_model(path, custom_objects=needed)
        except Exception as error:
            raise ModelError(
                "The model cannot be read from its archive. Expected: one that `keras.saving.load_model` reads. "
                f"Received: {_essence(error)} {ADVICE}"
            ) from error


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
    if model.loss is None and not has_own_loss(model) and not model.losses:
        raise ModelError(
            f"The model {model.name!r} must be compiled with a loss. Received: loss=None. "
            "Call `model.compile(optimizer=..., loss=...)`."
        )
    for loss in keras.tree.flatten(model.loss):
        if isinstance(loss, keras.losses.Loss) and loss.reduction in {None, "none"}:
            raise ModelError(
                f"The loss {loss.name!r} must reduce to one number. Expected: reduction='sum_over_batch_size', 'sum', "
                f"'mean' or 'mean_with_sample_weight'. Received: {loss.reduction!r}."
            )


def arrange_targets(model: Any, targets: Any) -> Any:
    """Targets by output name, in the structure in which the model returns its outputs."""
    if not isinstance(targets, dict):
        return targets
    names = getattr(model, "output_names", None)
    structure = output_structure(model) if names else None
    if structure is None or isinstance(structure, dict) or set(names or ()) != set(targets):
        return targets
    arranged = [targets[name] for name in names or ()]
    return arranged if isinstance(structure, (list, tuple)) else arranged[0]


@contextlib.contextmanager
def without_tensorflow() -> Iterator[None]:
    """Keep Keras from importing TensorFlow, seconds of it, just to see whether an object is one of its types."""
    lazy = getattr(sys.modules.get("keras.src.utils.module_utils"), "tensorflow", None)
    if "tensorflow" in sys.modules or getattr(lazy, "_available", False) is not None or lazy is None:
        yield
        return
    lazy._available = False
    try:
        yield
    finally:
        lazy._available = None


def _essence(error: Exception) -> str:
    """Keras's message without the example it teaches with and the configuration it repeats."""
    message = " ".join(str(error).split())
    return message.partition("Please implement")[0].rpartition("Exception encountered:")[2].strip()[:500]


def output_structure(model: Any) -> Any:
    """The model's outputs as it returns them: one, a list or a dict; `None` where it does not say."""
    try:
        return model.output
    except (AttributeError, ValueError):
        # An old Keras does not know the output of a Sequential that was not called, but lists it.
        outputs = getattr(model, "outputs", None)
        return outputs[0] if outputs is not None and len(outputs) == 1 else outputs


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    with _one_at_a_time, warnings.catch_warnings():
        for expected in (
            # An optimizer that had not stepped when it was saved has nothing to load.
            "Skipping variable loading for optimizer",
            # A model is built from the data's schema, after it was read back.
            "You are saving a model that has not yet been built",
            # It is refused, by name, once the archive is written.
            "The object being serialized includes a `lambda`",
        ):
            warnings.filterwarnings("ignore", expected, UserWarning)
        yield
