"""Which elements of a model's inputs reach which Embedding. Runs on the driver.

A row of a functional model is followed through all operations that only move elements: instead of a row, its flat
positions go in, and what arrives at an Embedding says where its ids come from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.job.id_range import IdRange
from keraunos.ml.keras.signature import named_inputs
from keraunos.ml.signature import Shape, Signature

Positions = npt.NDArray[np.int64]

# Keras's own operations and layers by name, since most of the operations have no public class.
_IDENTITIES = frozenset({"Identity", "Masking", "ActivityRegularization", "Cast", "StopGradient", "Copy"})
_MOVES = frozenset(
    {
        *("Reshape", "Flatten", "Permute", "RepeatVector", "Concatenate", "Cropping1D", "Cropping2D"),
        *("GetItem", "Transpose", "Squeeze", "ExpandDims", "Stack", "Hstack", "Vstack", "Split", "Unstack", "Slice"),
        *("Ravel", "Flip", "Roll", "Swapaxes", "Moveaxis", "BroadcastTo", "Repeat", "Tile"),
    }
)
# What an open length is taken to be: twice, so that a place can be told from one that is counted from the end.
_LENGTHS = (5, 7)


def with_ids(model: Any, signature: Signature) -> tuple[Signature, tuple[str, ...]]:
    """The signature with the ids of each input, and the names of Embeddings whose ids could not be followed."""
    import keras

    embeddings = [layer for layer in model._flatten_layers() if isinstance(layer, keras.layers.Embedding)]
    if not embeddings:
        return signature, ()
    graph = _graph_of(model)
    if graph is None or not signature.inputs:
        return signature, tuple(layer.name for layer in embeddings)
    inputs = named_inputs(model)
    runs = [_Run.through(graph, inputs, length) for length in _LENGTHS]
    ids: dict[str, list[IdRange]] = {name: [] for name in inputs}
    unchecked = []
    for layer in embeddings:
        ranges = [_range(layer, port.name, port.shape, runs) for port in signature.inputs]
        if any(run.arrived.get(id(layer)) is None for run in runs) or None in ranges:
            unchecked.append(layer.name)
        for port, found in zip(signature.inputs, ranges, strict=True):
            if found is not None and found.positions:
                ids[port.name].append(found)
    ports = tuple(replace(port, ids=tuple(ids[port.name])) for port in signature.inputs)
    return replace(signature, inputs=ports), tuple(unchecked)


@dataclass
class _Run:
    """One pass of positions through a model.

    Attributes:
        first: by input, the number of its first position, and how many it has.
        arrived: by the layer's identity, the positions that reached an Embedding; `None` where some could not be told.
    """

    first: dict[str, tuple[int, int]]
    arrived: dict[int, Positions | None] = field(default_factory=dict)

    @classmethod
    def through(cls, graph: Any, inputs: Mapping[str, Any], length: int) -> _Run:
        """The pass in which every open length is this one."""
        first: dict[str, tuple[int, int]] = {}
        values: dict[int, Any] = {}
        start = 0
        for name, tensor in inputs.items():
            shape = tuple(length if each is None else int(each) for each in tensor.shape[1:])
            size = math.prod(shape)
            first[name] = (start, size)
            values[id(tensor)] = np.arange(start, start + size, dtype=np.int32).reshape(1, *shape)
            start += size
        run = cls(first)
        run.follow(graph, values)
        return run

    def follow(self, graph: Any, values: dict[int, Any]) -> None:
        """Fill in the positions of every tensor of the graph that can be told."""
        for node in _in_order(graph):
            known = [values.get(id(tensor)) for tensor in node.input_tensors]
            looked_up = _looked_up_by(node.operation)
            if looked_up is not None:
                self._arrive(looked_up, known[0])
            elif all(each is not None for each in known):
                for tensor, value in zip(node.outputs, self._outputs(node, known, values), strict=False):
                    values[id(tensor)] = value

    def own(self, layer: Any, name: str) -> set[int] | None:
        """The positions of one input that reached this Embedding."""
        arrived = self.arrived.get(id(layer))
        if arrived is None:
            return None
        start, size = self.first[name]
        return {int(each) - start for each in np.unique(arrived) if start <= each < start + size}

    def _arrive(self, layer: Any, positions: Any) -> None:
        before = self.arrived.get(id(layer), np.zeros(0, dtype=np.int64))
        known = before is not None and positions is not None
        self.arrived[id(layer)] = np.concatenate([before, np.asarray(positions).reshape(-1)]) if known else None

    def _outputs(self, node: Any, known: Sequence[Any], values: Mapping[int, Any]) -> Sequence[Any]:
        import keras

        operation = node.operation
        inner = _graph_of(operation)
        if inner is not None:
            nested = {id(tensor): value for tensor, value in zip(inner.inputs, known, strict=True)}
            self.follow(inner, nested)
            return [nested.get(id(tensor)) for tensor in inner.outputs]
        name = type(operation).__name__ if type(operation).__module__.startswith("keras.") else ""
        if name in _IDENTITIES:
            return known[:1]
        if name not in _MOVES:
            return []
        args, kwargs = node.arguments.fill_in(values)
        try:
            made = operation(*args, **kwargs)
        except Exception:  # noqa: BLE001 - an operation that takes other lengths only cannot be followed
            return []
        return [np.asarray(keras.ops.convert_to_numpy(each)) for each in keras.tree.flatten(made)]


def _range(layer: Any, name: str, shape: Shape, runs: Sequence[_Run]) -> IdRange | None:
    """Where this Embedding's ids are in one input, without positions where it has none there; `None`: unknown."""
    owns = [run.own(layer, name) for run in runs]
    sizes = [run.first[name][1] for run in runs]
    found = [own for own in owns if own is not None]
    if len(found) < len(owns):
        return None
    if all(len(own) == size for own, size in zip(found, sizes, strict=True)) and sizes[0]:
        return IdRange(layer.name, layer.input_dim)
    if found[0] == found[1]:
        return IdRange(layer.name, layer.input_dim, tuple(sorted(found[0])), 0)
    period = math.prod(each or 1 for each in shape[1:])
    within = {each % period for each in found[0]}
    if None in shape[1:] or any(
        own != {each for each in range(size) if each % period in within} for own, size in zip(found, sizes, strict=True)
    ):
        return None
    return IdRange(layer.name, layer.input_dim, tuple(sorted(within)), period)


def _graph_of(operation: Any) -> Any:
    """The graph of a functional model or of a built Sequential."""
    import keras

    if isinstance(operation, keras.Sequential):
        return getattr(operation, "_functional", None)
    return operation if hasattr(operation, "_nodes_by_depth") else None


def _in_order(graph: Any) -> Iterator[Any]:
    for depth in sorted(graph._nodes_by_depth, reverse=True):
        for node in graph._nodes_by_depth[depth]:
            if node.operation is not None and not node.is_input:
                yield node


def _looked_up_by(operation: Any) -> Any:
    import keras

    if isinstance(operation, keras.layers.TimeDistributed):
        operation = operation.layer
    return operation if isinstance(operation, keras.layers.Embedding) else None
