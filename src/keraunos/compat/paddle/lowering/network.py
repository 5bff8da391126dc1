"""A whole configuration as a Keras 3 functional model. Runs on the driver.

Every data layer is an input of the model, labels as well, because in Paddle costs are layers like any other. The model
to train returns one report per row: its cost, and the evaluators' measures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import keras

from keraunos.compat.paddle.lowering import data_kinds
from keraunos.compat.paddle.lowering.call import BAG, DENSE, IDS, layer_type
from keraunos.compat.paddle.lowering.data_kinds import DataKind
from keraunos.compat.paddle.lowering.evaluators import row_measure
from keraunos.compat.paddle.lowering.keras_layers import (
    CostReport,
    IdSteps,
    PaddleLayer,
    PaddleParameter,
    Planes,
    VectorSteps,
)
from keraunos.compat.paddle.model_config import LayerConfig, ModelConfig, keras_name, layer_to_json
from keraunos.errors import ModelError

LENGTH = "_length"


@dataclass(frozen=True)
class Flow:
    """A layer's output in the functional graph: symbolic tensors as in `Value`."""

    tensor: Any
    mask: Any = None
    kind: str = DENSE
    parts: Mapping[str, Any] | None = None


class LoweredNetwork:
    """The Keras graph of a configuration.

    Attributes:
        config: what it was made of.
        kinds: what each data layer takes.
        inputs: the Keras inputs by name: those of the data layers, and the lengths of sequences of vectors.
        flows: what each layer returns, by its name.
    """

    def __init__(self, config: ModelConfig, kinds: Mapping[str, DataKind], seed: int = 1) -> None:
        self.config = config
        self.kinds = dict(kinds)
        self.inputs: dict[str, Any] = {}
        self.flows: dict[str, Flow] = {}
        self._seed = seed
        self._apart = _apart(config)
        self._shared: dict[str, Any] = {}
        self.evaluators: dict[str, Any] = {}
        for layer in config.layers:
            self.flows[layer.name] = self._data(layer) if layer.type == "data" else self._layer(layer)

    def trainer(self) -> Any:
        """Returns the model whose output is the report of each row; not compiled."""
        costs = [self.flows[name].tensor for name in self._costs()]
        measures = {
            each.name: measured
            for each in self.config.evaluators
            if (measured := row_measure(each, [self.flows[name] for name in each.input_layers])) is not None
        }
        self.evaluators = measures
        report = CostReport(len(costs), name="report")([*costs, *measures.values()])
        return keras.Model(self._inputs_of([report]), report, name="paddle")

    def predictor(self, layer: str | None = None) -> Any:
        """Returns the model from the data layers to a layer's output: by default to the input of the first cost."""
        flow = self.flows[layer or self.prediction_layer()]
        return keras.Model(self._inputs_of([flow.tensor]), flow.tensor, name="paddle")

    def prediction_layer(self) -> str:
        """The layer whose output is the prediction: the first input of the first cost, or an output that is none."""
        for name in self.config.output_layer_names:
            layer = self.config.layer(name)
            if not layer_type(layer.type).is_cost:
                return name
            return layer.inputs[0].layer
        raise ModelError("The configuration has no outputs. Call Outputs() with the name of the cost layer.")

    def _costs(self) -> Sequence[str]:
        costs = [name for name in self.config.output_layer_names if layer_type(self.config.layer(name).type).is_cost]
        if not costs:
            raise ModelError(
                "A configuration to train with must have a cost among its outputs. Received: "
                f"Outputs{self.config.output_layer_names!r}. Name a cost layer in Outputs()."
            )
        return costs

    def _inputs_of(self, tensors: Sequence[Any]) -> list[Any]:
        """Returns the inputs that the tensors depend on, in the configuration's order."""
        reached: set[int] = set()
        waiting = list(tensors)
        seen: set[int] = set()
        while waiting:
            tensor = waiting.pop()
            if id(tensor) in seen:
                continue
            seen.add(id(tensor))
            operation, node_index, _ = tensor._keras_history
            if isinstance(operation, keras.layers.InputLayer):
                reached.add(id(tensor))
                continue
            waiting.extend(operation._inbound_nodes[node_index].input_tensors)
        return [tensor for tensor in self.inputs.values() if id(tensor) in reached]

    def _data(self, layer: LayerConfig) -> Flow:
        kind, name = self.kinds[layer.name], layer.name
        if kind.image is not None:
            pixels = self._input(name, kind.image, "float32")
            return Flow(Planes(name=f"{name}_planes")(pixels))
        if kind.name == data_kinds.DENSE_VECTOR:
            return Flow(self._input(name, (layer.size,), "float32"))
        if kind.name == data_kinds.INTEGER_VALUE:
            return Flow(self._input(name, (), "int32"), None, IDS)
        if kind.name == data_kinds.SPARSE_BINARY_VECTOR:
            return Flow(self._input(name, (None,), "int32"), None, BAG)
        if kind.element == data_kinds.INTEGER_VALUE:
            ids, mask = IdSteps(name=f"{name}_steps")(self._input(name, (None,), "int32"))
            return Flow(ids, mask, IDS)
        vectors, length = self._input(name, (None, layer.size), "float32"), self._input(name + LENGTH, (), "int32")
        tensor, mask = VectorSteps(name=f"{name}_steps")([vectors, length])
        return Flow(tensor, mask)

    def _input(self, name: str, shape: tuple[int | None, ...], dtype: str) -> Any:
        self.inputs[name] = keras.Input(shape, dtype=dtype, name=keras_name(name))
        return self.inputs[name]

    def _layer(self, layer: LayerConfig) -> Flow:
        arriving = [self._arriving(each.layer, each.argument) for each in layer.inputs]
        names = [name for name in (*(each.parameter for each in layer.inputs), layer.bias) if name is not None]
        given = [name for name in dict.fromkeys(names) if name in self._apart]
        own = [name for name in dict.fromkeys(names) if name not in self._apart]
        flat = [tensor for flow in arriving for tensor in (flow.tensor, flow.mask) if tensor is not None]
        made = PaddleLayer(
            layer=layer_to_json(layer),
            parameters=[asdict(self.config.parameter(name)) for name in own],
            given=given,
            arrivals=[(flow.kind, flow.mask is not None) for flow in arriving],
            seed=self._seed,
            name=keras_name(layer.name),
        )
        outputs = made([*flat, *(self._parameter(name, flat[0]) for name in given)])
        kind, masked, parts = made.gives
        found = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        rest = found[2:] if masked else found[1:]
        return Flow(found[0], found[1] if masked else None, kind, dict(zip(parts, rest, strict=True)))

    def _arriving(self, name: str, argument: str | None) -> Flow:
        flow = self.flows[name]
        if argument is None:
            return flow
        if argument not in (flow.parts or {}):
            raise ModelError(
                f"The layer {name!r} has no output {argument!r}. Expected one of: {sorted(flow.parts or {})}. "
                f"Received: {argument!r}."
            )
        return Flow((flow.parts or {})[argument], flow.mask)

    def _parameter(self, name: str, near: Any) -> Any:
        """Returns the output of a parameter's own layer, which is called on `near` when it is first needed."""
        if name not in self._shared:
            layer = PaddleParameter(asdict(self.config.parameter(name)), seed=self._seed, name=keras_name(name))
            self._shared[name] = layer(near)
        return self._shared[name]


def lower(config: ModelConfig, kinds: Mapping[str, DataKind] | None = None, seed: int = 1) -> LoweredNetwork:
    """Returns the Keras graph of a configuration.

    `kinds` gives the input types of data layers that do not follow from the network.
    """
    return LoweredNetwork(config, data_kinds.inferred(config, kinds), seed)


def _apart(config: ModelConfig) -> set[str]:
    """Returns the parameters that several layers use, and those that are static."""
    uses = Counter(
        name
        for layer in config.layers
        for name in {*(each.parameter for each in layer.inputs), layer.bias}
        if name is not None
    )
    moved = {each.parameter for layer in config.layers if layer.type in _MOVES_STATISTICS for each in layer.inputs[1:]}
    static = {parameter.name for parameter in config.parameters if parameter.is_static} - moved
    shared = {name for name, count in uses.items() if count > 1}
    if shared & moved:
        raise ModelError(
            f"The statistics of a batch_norm layer must be its own. Received: {min(shared & moved)!r}, which several "
            "layers take. Leave the parameter_name of its second and third input out."
        )
    return shared | static


# Layers whose static parameters are statistics that training moves.
_MOVES_STATISTICS = frozenset({"batch_norm", "cudnn_batch_norm", "mkldnn_batch_norm"})
