"""The learner for a model source, and the driver's copy of it. Learners run on workers, and where a model predicts."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from typing import Any

from keraunos.backends import is_installed, missing_backend
from keraunos.errors import ClusterError, JobError
from keraunos.job.training_job import GRAPH, ModelSource
from keraunos.learners import tensorflow_layers
from keraunos.learners.framework_imports import import_keras, import_tensorflow
from keraunos.learners.graph_measures import measures_in
from keraunos.learners.home_model import HomeModel
from keraunos.learners.learner import Learner

_LEARNERS = {
    "jax": ("keraunos.learners.keras_jax", "KerasJaxLearner"),
    "tensorflow": ("keraunos.learners.keras_tensorflow", "KerasTensorFlowLearner"),
    "torch": ("keraunos.learners.keras_torch", "KerasTorchLearner"),
}


def load_learner(source: ModelSource, custom_objects: Mapping[str, Any] | None = None) -> Learner:
    """The model in `source`, run by the framework that the source names."""
    if source.format == GRAPH:
        # Keras has no part in it, so that it may run on any backend, or not at all, in this process.
        check_installed(source.backend)
        import_tensorflow()
        graphs = importlib.import_module("keraunos.learners.tensorflow_graph")
        graph_learner: Learner = graphs.TensorFlowGraphLearner(source.archive, measures_in(custom_objects))
        return graph_learner
    keras = import_keras_on(source.backend)
    keras.config.set_floatx(source.floatx)
    module_name, class_name = _LEARNERS[source.backend]
    module = importlib.import_module(module_name)
    module.configure(source.floatx)
    archive = importlib.import_module("keraunos.learners.keras_archive")
    if has_front(source):
        return _in_parts(source, getattr(module, class_name), archive, custom_objects)
    learner: Learner = getattr(module, class_name)(archive.from_archive(source.archive, custom_objects, source.trusted))
    return learner


def check_installed(backend: str) -> None:
    """Raise where a model is to run on a backend whose package is not installed in this process's environment."""
    if not is_installed(backend):
        why = missing_backend(backend)
        raise ClusterError(f"The model cannot run on {backend!r}: {why}, or choose another `backend`.")


def has_front(source: ModelSource) -> bool:
    """Whether layers that only TensorFlow can run stand before the model that a learner steps."""
    return source.format != GRAPH and tensorflow_layers.in_archive(source.archive)


def _in_parts(source: ModelSource, kind: Any, archive: Any, custom_objects: Mapping[str, Any] | None) -> Learner:
    tensorflow_layers.check_installed("The model")
    if source.backend != "tensorflow":
        importlib.import_module("keraunos.learners.tensorflow_beside").load()
    parted = importlib.import_module("keraunos.learners.keras_front").parted
    rest, front = parted(archive.from_archive(source.archive, custom_objects, source.trusted))
    learner: Learner = kind(rest)
    learner.front = front
    return learner


def load_home(source: ModelSource, custom_objects: Mapping[str, Any] | None = None) -> HomeModel:
    """The driver's copy of the model in `source`; Keras is imported for its own models only."""
    if source.format == GRAPH:
        from keraunos.learners.graph_home import GraphHome

        return GraphHome(source.archive, measures_in(custom_objects))
    import_keras()
    from keraunos.learners.keras_home import KerasHome

    return KerasHome(source.archive, custom_objects, source.trusted)


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
