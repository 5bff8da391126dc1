"""A compiled Keras model as the bytes of a `.keras` archive, and back. Runs on the driver and on workers."""

from __future__ import annotations

import contextlib
import sys
import threading
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras

from keraunos import scratch
from keraunos.batch import BatchSpec
from keraunos.errors import ModelError
from keraunos.job.training_job import ModelSource
from keraunos.learners import tensorflow_layers
from keraunos.learners.archive_extras import apply_extras, check_methods, write_extras
from keraunos.learners.archive_parts import check_weights, config_of
from keraunos.learners.custom_code import (
    ADVICE,
    check_portable,
    custom_code_of,
    essence,
    needed_modules,
    resolved,
)
from keraunos.learners.keras_names import check_names
from keraunos.learners.live_code import LiveCode, noted_code
from keraunos.learners.loss_parts import given_metrics, has_own_loss, overrides
from keraunos.learners.written_model import WrittenModel
from keraunos.trust import trusting

CustomObjects = Mapping[str, Any]

# Filters on warnings belong to the whole process, and fits may run side by side on the driver.
_one_at_a_time = threading.Lock()


def to_archive(model: Any, custom_objects: CustomObjects | None = None) -> bytes:
    """The model with its weights, optimizer, loss and metrics; refused where a worker could not read it back."""
    handed_over = dict(custom_objects or {})
    archive, _ = _written(model, handed_over)
    check_portable(archive, handed_over)
    return archive


def live_source(model: Any, custom_objects: CustomObjects | None = None, backend: str | None = None) -> ModelSource:
    """A model that is live in this process as what workers run; refused where a worker could not read it back."""
    handed_over = dict(custom_objects or {})
    archive, live = _written(model, handed_over)
    check_portable(archive, handed_over)
    return ModelSource(archive, backend or keras.config.backend(), keras.config.floatx(), trusted=live.modules())


def live_modules(model: Any) -> tuple[str, ...]:
    """The modules of a live model's own classes, which are trusted in what this process writes of it."""
    return _written(model, {})[1].modules()


def write_live(model: Any, custom_objects: CustomObjects | None = None) -> WrittenModel:
    """A model that is live in this process as an archive, with all that must travel with it."""
    handed_over = dict(custom_objects or {})
    archive, live = _written(model, handed_over)
    code = {**live.needed_by(archive, handed_over), **handed_over}
    check_portable(archive, code)
    return WrittenModel(archive, code, live.modules())


def _written(model: Any, handed_over: CustomObjects) -> tuple[bytes, LiveCode]:
    check_methods(model)
    with scratch.folder("model") as folder:
        path = Path(folder) / "model.keras"
        try:
            with (
                _quietly(),
                without_tensorflow(),
                keras.saving.custom_object_scope(dict(handed_over)),
                noted_code() as live,
            ):
                model.save(path)
        except Exception as error:
            raise ModelError(
                f"The model {model.name!r} cannot be written as a .keras archive. Expected: layers, losses, metrics "
                "and an optimizer whose `get_config` returns what their constructors take. Received: "
                f"{essence(error)} Give the class a `get_config`."
            ) from error
        with zipfile.ZipFile(path, "a") as parts:
            write_extras(model, parts)
        return path.read_bytes(), live


def from_archive(archive: bytes, custom_objects: CustomObjects | None = None, trusted: Sequence[str] = ()) -> Any:
    """The compiled model in an archive.

    The archive is not trusted: of the modules that it names, only those are imported that this process trusts, or that
    are in `trusted`.

    Args:
        archive: the bytes of a `.keras` file.
        custom_objects: custom code that it needs.
        trusted: modules that it may name besides; of an archive that this process, or its driver, wrote from a live
            model, those of the live model.
    """
    with trusting(*trusted):
        return _read(archive, custom_objects or {})


def check_archive(archive: bytes, custom_objects: CustomObjects | None = None) -> tuple[str, ...]:
    """Refuse an archive that this process may not read; returns the modules that another one needs to read it."""
    config = config_of(archive)
    check_names(config)
    check_weights(archive)
    return needed_modules(custom_code_of(config), custom_objects or {})


def _read(archive: bytes, custom_objects: CustomObjects) -> Any:
    config = config_of(archive)
    check_names(config)
    check_weights(archive)
    needed = resolved(custom_code_of(config), custom_objects)
    if tensorflow_layers.in_archive(archive):
        tensorflow_layers.check_installed("The model in the archive")
    with scratch.folder("model") as folder:
        path = Path(folder) / "model.keras"
        path.write_bytes(archive)
        try:
            with _quietly(), keras.saving.custom_object_scope(needed), zipfile.ZipFile(path) as parts:
                model = keras.saving.load_model(path, custom_objects=needed, safe_mode=True)
                apply_extras(model, parts)
                return model
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(
                "The model cannot be read from its archive. Expected: one that `keras.saving.load_model` reads. "
                f"Received: {essence(error)} {ADVICE}"
            ) from error


def build(model: Any, spec: BatchSpec) -> None:
    """Create the variables of the model, its loss, its metrics and its optimizer for batches that follow `spec`."""
    example = spec.example()
    data = (example.inputs, arrange_targets(model, example.targets), example.weights)
    # What `fit` itself calls: it follows shapes through the model without computing anything. There is no public way.
    model._symbolic_build(data_batch=data)


def check_trainable(model: Any, *, labelled: bool = True) -> None:
    """Raise where the model cannot be trained as it was compiled, with labels or without."""
    if not getattr(model, "compiled", False) or model.optimizer is None:
        raise ModelError(
            f"The model {model.name!r} must be compiled. Received: a model without an optimizer. "
            "Call `model.compile(optimizer=..., loss=...)` first."
        )
    if not labelled:
        _check_needs_no_labels(model)
    elif model.loss is None and not has_own_loss(model) and not model.losses:
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
    """Targets by output name, in the structure in which the model returns its outputs.

    An output that has no target, because it has no loss, gets `None`: so Keras knows whose the others are.
    """
    if not isinstance(targets, dict):
        return targets
    names = getattr(model, "output_names", None)
    structure = output_structure(model) if names else None
    if isinstance(structure, dict) and set(targets) < set(structure):
        return {name: targets.get(name) for name in structure}
    if structure is None or isinstance(structure, dict) or not set(targets) <= set(names or ()):
        return targets
    arranged = [targets.get(name) for name in names or ()]
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


def _check_needs_no_labels(model: Any) -> None:
    """Raise where a compiled loss or metric compares the model's outputs with labels."""
    loss = next((each for each in keras.tree.flatten(model.loss) if each is not None), None)
    if loss is not None and not has_own_loss(model):
        raise ModelError(
            f"The model {model.name!r} needs labels: it was compiled with a loss that compares its outputs with them. "
            f"Expected, where labelCol=None: loss=None and a loss that the model adds itself, or a `train_step` or "
            f"`compute_loss` of its own. Received: {loss!r}. Give the column of the labels in `labelCol`."
        )
    named = [each for each in keras.tree.flatten(given_metrics(model)) if each is not None]
    if named and not overrides(model, ("train_step", "compute_metrics")):
        raise ModelError(
            f"The model {model.name!r} was compiled with metrics, which compare its outputs with labels. Expected, "
            f"where labelCol=None: none. Received: {named!r}. Compile it without, or give the labels in `labelCol`."
        )


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
