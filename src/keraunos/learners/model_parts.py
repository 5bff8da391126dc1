"""Parts of a built Keras model: the outputs of its layers as a model of their own, and what makes its output.

Runs on the driver.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import keras

from keraunos.errors import ModelError


def part_of(model: Any, layers: str | Sequence[str]) -> Any:
    """A model from the same inputs to the output of a layer, or to those of several by the layers' names.

    It shares its layers with the model. Refuses a model that is not functional and layers that it does not have.
    """
    names = [layers] if isinstance(layers, str) else list(layers)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ModelError(f"`layer` must be the name of a layer, or a list of names. Received: {layers!r}.")
    graph = graph_of(model)
    if graph is None:
        raise ModelError(
            f"`layer` needs a functional or sequential model, whose layers are known. Received: {layers!r} of the "
            f"model {model.name!r}, a {type(model).__name__} with a `call` of its own. Give the model of that layer "
            "itself."
        )
    found = {name: _outputs_of(graph, model, name) for name in names}
    if len(names) == 1 and len(found[names[0]]) == 1:
        return keras.Model(_inputs_of(graph), found[names[0]][0])
    outputs = {
        name if len(tensors) == 1 else f"{name}_{i + 1}": tensor
        for name, tensors in found.items()
        for i, tensor in enumerate(tensors)
    }
    return keras.Model(_inputs_of(graph), outputs)


def graph_of(model: Any) -> Any | None:
    """The functional model that a functional or built sequential model is; `None` for any other."""
    inner = getattr(model, "_functional", None)
    if inner is not None:
        return inner
    return model if hasattr(model, "_inputs_struct") else None


def output_activation(model: Any) -> str | None:
    """The name of the activation that the model's one output comes from; `None` where nothing says it."""
    graph = graph_of(model)
    if graph is None or len(graph.outputs) != 1:
        return None
    operation = graph.outputs[0]._keras_history.operation
    if isinstance(operation, keras.Model):
        return output_activation(operation)
    activation = getattr(operation, "activation", None)
    if activation is not None:
        return str(getattr(activation, "__name__", None) or getattr(activation, "name", type(activation).__name__))
    # `keras.layers.Softmax` and `keras.ops.softmax` are what they are called.
    kind = type(operation)
    return kind.__name__.lower() if kind.__module__.startswith("keras.") else None


def _inputs_of(graph: Any) -> Any:
    struct = graph._inputs_struct
    return list(struct) if isinstance(struct, tuple) else struct


def _outputs_of(graph: Any, model: Any, name: str) -> list[Any]:
    """What a layer gives inside of the model. Asked of the graph: a model within it has outputs outside of it, too."""
    nodes = [node for level in graph._nodes_by_depth.values() for node in level if node.operation.name == name]
    if not nodes:
        known = list(dict.fromkeys(layer.name for layer in model.layers))
        close = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ModelError(
            f"`layer` names a layer that the model {model.name!r} does not have. Expected one of "
            f"{', '.join(map(repr, known))}. Received: {name!r}.{hint}"
        )
    if len(nodes) > 1:
        raise ModelError(
            f"`layer` names {name!r}, which the model {model.name!r} uses {len(nodes)} times. Expected a layer with "
            "one output. Build the model that you want with keras.Model(inputs, outputs), and give that."
        )
    return list(nodes[0].outputs)
