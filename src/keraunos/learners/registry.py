"""The learner for a model source, and the driver's copy of it. Learners run on workers, and where a model predicts."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from typing import Any

from keraunos.errors import JobError
from keraunos.job.training_job import GRAPH, ModelSource
from keraunos.learners.home_model import HomeModel
from keraunos.learners.keras_import import import_keras
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
        graphs = importlib.import_module("keraunos.learners.tensorflow_graph")
        graph_learner: Learner = graphs.TensorFlowGraphLearner(source.archive)
        return graph_learner
    use_backend(source.backend)
    keras = import_keras()
    keras.config.set_floatx(source.floatx)
    module_name, class_name = _LEARNERS[source.backend]
    module = importlib.import_module(module_name)
    module.configure(source.floatx)
    archive = importlib.import_module("keraunos.learners.keras_archive")
    learner: Learner = getattr(module, class_name)(archive.from_archive(source.archive, custom_objects))
    return learner


def load_home(source: ModelSource, custom_objects: Mapping[str, Any] | None = None) -> HomeModel:
    """The driver's copy of the model in `source`; Keras is imported for its own models only."""
    if source.format == GRAPH:
        from keraunos.learners.graph_home import GraphHome

        return GraphHome(source.archive)
    from keraunos.learners.keras_home import KerasHome

    return KerasHome(source.archive, custom_objects)


def use_backend(backend: str) -> None:
    """Make Keras run on `backend` in this process; it cannot change once Keras is imported."""
    keras = sys.modules.get("keras")
    if keras is None:
        os.environ["KERAS_BACKEND"] = backend
        return
    running = keras.config.backend()
    if running != backend:
        raise JobError(
            f"Keras must run on {backend!r} in this process, but was imported with another backend. Received: "
            f"{running!r}. Set KERAS_BACKEND={backend} before the process imports Keras."
        )
