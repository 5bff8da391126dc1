"""Keras 2 models in a TensorFlow graph, as `tf.keras` of a 1.x program makes them. Runs on the driver.

Such a model has a loss, placeholders and update operations like any graph, and a session of Keras's own that holds its
values; so it is trained as a graph, and the model has the trained weights because that session has them.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from keraunos.compat.zoo.tfpark.structure import flatten
from keraunos.compat.zoo.tfpark.tf_dataset import TFDataset
from keraunos.compat.zoo.tfpark.trained_graph import Measured, TrainedGraph, check_session_config, check_trainable
from keraunos.compat.zoo.tfpark.zoo_optimizer import GRADIENT
from keraunos.errors import ModelError

_PHASE = "keras_learning_phase"


def is_in_graph(model: Any) -> bool:
    """Returns whether it is a Keras 2 model whose tensors are those of a graph.

    One that was made in eager mode is refused.
    """
    outputs = getattr(model, "outputs", None) or []
    if outputs and type(outputs[0]).__module__.startswith("tensorflow.") and hasattr(outputs[0], "graph"):
        return True
    if any(kind.__module__.startswith("tf_keras.") for kind in type(model).__mro__):
        raise ModelError(
            f"The Keras 2 model {model.name!r} must be made in a TensorFlow graph. Received: one that was made in "
            "eager mode. Make it under `with tf.Graph().as_default():`, or make it with Keras 3."
        )
    return False


def trained_keras_graph(
    model: Any,
    dataset: TFDataset,
    *,
    own_optimizer: bool,
    metrics: Mapping[str, Any] | None,
    trains: bool = True,
    session_config: Any = None,
) -> TrainedGraph:
    """Returns the graph of a compiled model; with `own_optimizer`, one whose Keras optimizer applies the gradients.

    With `trains=False` it is only measured, and the dataset may be one for predictions.
    """
    if getattr(model, "optimizer", None) is None or getattr(model, "total_loss", None) is None:
        raise ModelError(
            f"The model {model.name!r} must be compiled. Received: a model without a loss. Call "
            "model.compile(optimizer=…, loss=…) first."
        )
    if trains:
        check_trainable(dataset)
    check_session_config(session_config)
    graph = model.total_loss.graph
    with graph.as_default(), _quietly():
        scalars = {**dict(_row_means(model)), **(metrics or {})}
        train_op, gradients = _application(model) if own_optimizer else (None, None)
        updates = list(model.updates)
    return TrainedGraph(
        session=session_of(model),
        loss=model.total_loss,
        dataset=dataset,
        fed=_fed(model, dataset),
        feeds=_phases(graph),
        measured=Measured(scalars={"loss": model.total_loss, **scalars} if dataset.validation_source else scalars),
        updates=updates,
        train_op=train_op,
        gradients=gradients,
        of_keras=True,
        session_config=session_config,
    )


def session_of(model: Any) -> Any:
    """Keras's session of the model's graph, with every variable initialised."""
    backend = importlib.import_module(f"{type(model).__module__.partition('.')[0]}.src.backend")
    with model.outputs[0].graph.as_default():
        return backend.get_session()


def fed_features(model: Any, dataset: TFDataset) -> dict[str, Any]:
    """Returns the placeholder for each tensor of the dataset that the model takes as an input, by the tensor's name."""
    inputs = dict(zip(model.input_names, model.inputs, strict=True))
    return _paired(dataset.features_and_labels(len(inputs))[0], inputs, "features", model)


def _fed(model: Any, dataset: TFDataset) -> dict[str, Any]:
    targets = dict(zip(model.output_names, model._feed_targets, strict=True))
    labels = dataset.features_and_labels(len(model.inputs))[1]
    return fed_features(model, dataset) | _paired(labels, targets, "labels", model)


def _paired(structure: Any, placeholders: Mapping[str, Any], what: str, model: Any) -> dict[str, Any]:
    """Tensors to placeholders: by their keys where they are a dict with the model's names, else in their order."""
    if isinstance(structure, Mapping) and set(structure) == set(placeholders):
        return {structure[name].name: placeholders[name] for name in structure}
    metas = flatten(structure)
    if len(metas) != len(placeholders):
        raise ModelError(
            f"The dataset's {what} must be one tensor for each of {', '.join(map(repr, placeholders))} of the model "
            f"{model.name!r}. Received: {len(metas)}."
        )
    return {meta.name: tensor for meta, tensor in zip(metas, placeholders.values(), strict=True)}


def _phases(graph: Any) -> dict[Any, tuple[bool, bool]]:
    """Returns the tensor that switches layers between training and prediction."""
    found = [each for each in graph.get_operations() if each.type == "PlaceholderWithDefault"]
    return {each.outputs[0]: (True, False) for each in found if each.name.rpartition("/")[2].startswith(_PHASE)}


def _application(model: Any) -> tuple[Any, dict[Any, Any]]:
    """Returns the operation with which Keras's optimizer applies gradients, and the tensors that it takes as such."""
    import tensorflow as tf

    variables = model.trainable_weights
    raw = model.optimizer.get_gradients(model.total_loss, variables)
    pairs = [
        (tf.identity(tf.convert_to_tensor(gradient), name=GRADIENT), variable)
        for gradient, variable in zip(raw, variables, strict=True)
        if gradient is not None
    ]
    # Keras's wrapper of a tf.train optimizer applies gradients, but does not return the operation.
    optimizer = getattr(model.optimizer, "optimizer", model.optimizer)
    return optimizer.apply_gradients(pairs), {variable: gradient for gradient, variable in pairs}


def _row_means(model: Any) -> Iterator[tuple[str, Any]]:
    """Yields the model's metrics that are means over rows, as scalars; any other is refused."""
    import tensorflow as tf

    compiled: Sequence[Any] = model._compile_metric_functions
    if compiled and len(model.outputs) != 1:
        raise ModelError(
            f"The model {model.name!r} must have one output to be measured with compiled metrics. Received: "
            f"{len(model.outputs)} outputs. Compile it without metrics, and give scalars in `metrics`."
        )
    for metric in compiled:
        function = getattr(metric, "_fn", None)
        if function is None:
            raise ModelError(
                f"The metric {metric.name!r} must be a mean over rows, such as 'accuracy' or 'mae'. Received: "
                f"{type(metric).__name__}, which is none. Compile the model without it, and measure the predictions."
            )
        options = dict(getattr(metric, "_fn_kwargs", {}))
        yield metric.name, tf.reduce_mean(function(model._feed_targets[0], model.outputs[0], **options))


@contextmanager
def _quietly() -> Iterator[None]:
    """Keras 2 warns of parts of itself that only programs of 1.x use, which these are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
