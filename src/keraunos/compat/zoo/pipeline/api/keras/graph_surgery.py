"""Parts of Keras models by the names of their layers: froze, thawed, cut off. Runs on the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from keraunos.errors import ModelError
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled

_NAMES_SHOWN = 10


def flattened(model: Any, *, containers: bool = False) -> Iterator[Any]:
    """Yields the layers of a model and of the models in it; the models themselves if `containers` are asked for."""
    for layer in model.layers:
        if isinstance(layer, keras.Model):
            if containers:
                yield layer
            yield from flattened(layer, containers=containers)
        else:
            yield layer


def named_layers(model: Any, names: str | Sequence[str]) -> list[Any]:
    """Returns the layers, or models in the model, of those names."""
    known = {layer.name: layer for layer in flattened(model, containers=True)}
    wanted = [names] if isinstance(names, str) else list(names)
    missing = [name for name in wanted if name not in known]
    if missing:
        raise _unknown(missing, known)
    return [known[name] for name in wanted]


def freeze(layers: Iterable[Any]) -> None:
    """Exclude the layers from training."""
    for layer in _leaves(layers):
        if layer.trainable:
            layer.trainable = False
            layer.zoo_frozen = True


def unfreeze(model: Any, names: str | Sequence[str] | None) -> None:
    """Train layers again: those of the names, or all but graphs of TensorFlow that never were trained."""
    chosen = [model] if names is None else named_layers(model, names)
    for layer in _leaves(chosen):
        if names is not None or getattr(layer, "zoo_frozen", False) or not hasattr(layer, "row_of_input"):
            layer.trainable = True
            layer.zoo_frozen = False


def leading_to(model: Any, names: str | Sequence[str]) -> list[Any]:
    """Returns the layers that the layers of those names need, and these layers."""
    graph = _graph(model)
    found: dict[int, Any] = {}
    waiting = [node for name in _names(names) for node in _nodes(graph, name)]
    while waiting:
        node = waiting.pop()
        if id(node) not in found:
            found[id(node)] = node
            waiting += node.parent_nodes
    operations = {id(node.operation): node.operation for node in found.values()}
    return [each for each in operations.values() if isinstance(each, keras.Layer)]


def cut(model: Any, outputs: str | Sequence[str]) -> Any:
    """Returns the model whose outputs are those of the layers of those names; it shares the layers."""
    graph = _graph(model)
    ends = [tensor for name in _names(outputs) for tensor in _nodes(graph, name)[-1].outputs]
    needed = {id(each) for each in leading_to(model, outputs)}
    inputs = [each for each in graph.inputs if id(each._keras_history.operation) in needed]
    return keras.Model(_one(inputs), _one(ends))


def _leaves(layers: Iterable[Any]) -> Iterator[Any]:
    for layer in layers:
        if isinstance(layer, keras.Model):
            yield from flattened(layer)
        else:
            yield layer


def _graph(model: Any) -> Any:
    """Returns the functional model that a built `Sequential` is inside."""
    graph = getattr(model, "_functional", None) or model
    if not hasattr(graph, "_nodes_by_depth"):
        raise ModelError(
            "The model must know the shape of its input. Received: layers without one. Give the first layer "
            "`input_shape`."
        )
    return graph


def _nodes(graph: Any, name: str) -> list[Any]:
    """Returns where a layer is called in the model."""
    every = [node for nodes in graph._nodes_by_depth.values() for node in nodes]
    found = [node for node in every if node.operation.name == name]
    if not found:
        raise _unknown([name], [node.operation.name for node in every])
    return found


def _names(names: str | Sequence[str]) -> list[str]:
    found = [names] if isinstance(names, str) else [str(each) for each in names]
    if not found:
        raise ModelError("At least one layer must be named. Received: none.")
    return found


def _one(tensors: list[Any]) -> Any:
    return tensors[0] if len(tensors) == 1 else tensors


def _unknown(missing: Sequence[str], known: Iterable[str]) -> ModelError:
    names = sorted(known)
    shown = ", ".join(map(repr, names[:_NAMES_SHOWN])) + (" and others" if len(names) > _NAMES_SHOWN else "")
    return ModelError(
        f"A layer must be named as one of the model's: {shown}. Received: {', '.join(map(repr, missing))}."
    )
