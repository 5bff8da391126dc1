"""The learners of Keras models by backend, and Keras on a given backend. Runs on workers, and where models predict."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from typing import Any

from keraunos.backends import is_installed, missing_backend
from keraunos.errors import ClusterError, JobError
from keraunos.job.training_job import ModelSource
from keraunos.learners import tensorflow_layers
from keraunos.learners.framework_imports import import_keras
from keraunos.learners.learner import Learner

_LEARNERS = {
    "jax": ("keraunos.learners.keras_jax", "KerasJaxLearner"),
    "tensorflow": ("keraunos.learners.keras_tensorflow", "KerasTensorFlowLearner"),
    "torch": ("keraunos.learners.keras_torch", "KerasTorchLearner"),
}


def keras_learner(source: ModelSource, custom_objects: Mapping[str, Any] | None = None) -> Learner:
    """The Keras model in `source`, run by the backend that the source names."""
    keras = import_keras_on(source.backend)
    keras.config.set_floatx(source.floatx)
    module_name, class_name = _LEARNERS[source.backend]
    module = importlib.import_module(module_name)
    module.configure(source.floatx)
    archive = importlib.import_module("keraunos.learners.keras_archive")
    if tensorflow_layers.in_archive(source.archive):
        return _in_parts(source, getattr(module, class_name), archive, custom_objects)
    learner: Learner = getattr(module, class_name)(archive.from_archive(source.archive, custom_objects, source.trusted))
    return learner


def check_installed(backend: str) -> None:
    """Raise where a model is to run on a backend whose package is not installed in this process's environment."""
    if not is_installed(backend):
        why = missing_backend(backend)
        raise ClusterError(f"The model cannot run on {backend!r}: {why}, or choose another `backend`.")


def import_keras_on(backend: str) -> Any:
    """Keras, which runs on `backend`; raises as `use_backend` does."""
    use_backend(backend)
    return import_keras()


def use_backend(backend: str) -> None:
    """Make Keras run on `backend` in this process; it cannot change once Keras is imported.

    Raises:
        ClusterError: where its package is not installed here.
        JobError: where Keras was imported with another.
    """
    keras = sys.modules.get("keras")
    if keras is None:
        check_installed(backend)
        os.environ["KERAS_BACKEND"] = backend
        return
    running = keras.config.backend()
    if running != backend:
        raise JobError(
            f"Keras must run on {backend!r} in this process, but was imported with another backend. Received: "
            f"{running!r}. Set KERAS_BACKEND={backend} before the process imports Keras."
        )


def _in_parts(source: ModelSource, kind: Any, archive: Any, custom_objects: Mapping[str, Any] | None) -> Learner:
    tensorflow_layers.check_installed("The model")
    if source.backend != "tensorflow":
        importlib.import_module("keraunos.learners.tensorflow_beside").load()
    parted = importlib.import_module("keraunos.learners.keras_front").parted
    rest, front = parted(archive.from_archive(source.archive, custom_objects, source.trusted))
    learner: Learner = kind(rest)
    learner.front = front
    return learner
