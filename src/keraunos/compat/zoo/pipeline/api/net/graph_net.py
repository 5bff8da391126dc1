"""`zoo.pipeline.api.net.GraphNet`: a TensorFlow graph whose weights are trained but for those that are frozen.

Runs on the driver, and as a layer of a model on workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, Self

from keraunos.compat.zoo import frozen_graph
from keraunos.compat.zoo.frozen_graph import FrozenGraph
from keraunos.compat.zoo.tensorflow_mode import tensorflow_2
from keraunos.compat.zoo.tfpark.tfnet import TFNet
from keraunos.errors import JobError
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled

# The positions of trained arrays among an operation's inputs.
_WEIGHTS = {
    "BiasAdd": (1,),
    "Conv1D": (1,),
    "Conv2D": (1,),
    "Conv2DBackpropInput": (1,),
    "Conv3D": (1,),
    "DepthwiseConv2dNative": (1,),
    "FusedBatchNorm": (1, 2),
    "FusedBatchNormV2": (1, 2),
    "FusedBatchNormV3": (1, 2),
    "MatMul": (0, 1),
}


@keras.saving.register_keras_serializable(package="keraunos.zoo")
class GraphNet(TFNet):
    """The result of `Net.load_tf`: a trainable `TFNet` whose parts have the names of their operations."""

    def new_graph(self, outputs: str | Sequence[str]) -> GraphNet:
        """Returns the part of the graph that ends with those operations. What is frozen stays frozen."""
        self._make_weights()
        part = frozen_graph.part_of(self.graph, _listed(outputs))
        made = GraphNet(None, graph=part, trainable=self.trainable)
        made._make_weights()
        for name in part.variables:
            made._weights.by_name[name].trainable = self._weights.by_name[name].trainable
        return made

    def freeze(self, names: str | Sequence[str] | None = None) -> Self:
        """Exclude all weights, or those that the operations use themselves, from training."""
        self._set_trained(None if names is None else self._used_by(_listed(names)), value=False)
        return self

    def freeze_up_to(self, names: str | Sequence[str]) -> Self:
        """Exclude the weights before the operations, and those that they use, from training."""
        self._set_trained(frozen_graph.leading_to(self._graph, _listed(names)), value=False)
        return self

    def unfreeze(self, names: str | Sequence[str] | None = None) -> Self:
        """Train all weights, or those that the operations use themselves, again."""
        self._set_trained(None if names is None else self._used_by(_listed(names)), value=True)
        return self

    def to_keras(self) -> Self:
        """Returns the net, which is a layer already."""
        return self

    def flattened_layers(self, include_container: bool = False) -> NoReturn:
        """Refused: a graph has operations."""
        raise JobError(
            "`flattened_layers` must be asked of a model of layers. Received: a TensorFlow graph, whose operations are "
            "no layers. Give the operations' names to new_graph, freeze_up_to and unfreeze."
        )

    def _used_by(self, operations: Sequence[str]) -> set[str]:
        """Returns the variables that operations have among their inputs, if only through an `Identity`."""
        nodes = {node.name: node for node in self._graph.graph_def().node}
        frozen_graph.leading_to(self._graph, operations)
        waiting = [each for name in operations for each in nodes[name.partition(":")[0]].input]
        found = {name.partition(":")[0] for name in operations}
        while waiting:
            name = waiting.pop().removeprefix("^").partition(":")[0]
            found.add(name)
            if nodes[name].op == "Identity":
                waiting += nodes[name].input
        return found

    def _set_trained(self, names: set[str] | None, *, value: bool) -> None:
        self._make_weights()
        for name in self._graph.variables:
            if names is None or name in names:
                self._weights.by_name[name].trainable = value

    def _make_weights(self) -> None:
        with tensorflow_2():
            self.build()


def with_trained_constants(frozen: FrozenGraph) -> FrozenGraph:
    """The graph, the constants of whose layers (kernels, biases, and a batch normalisation's scales) may be trained."""
    nodes = {node.name: node for node in frozen.closed().node}
    found: dict[str, None] = dict.fromkeys(frozen.variables)
    for node in nodes.values():
        for place in _WEIGHTS.get(node.op, ()):
            source = nodes[node.input[place].partition(":")[0]]
            while source.op == "Identity":
                source = nodes[source.input[0].partition(":")[0]]
            if source.op == "Const":
                found[source.name] = None
    return frozen_graph.with_variables(frozen, list(found))


def _listed(names: Any) -> list[str]:
    return [names] if isinstance(names, str) else [str(getattr(each, "name", each)) for each in names]
