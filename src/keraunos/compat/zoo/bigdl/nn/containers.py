"""BigDL's containers: modules in a row, side by side, for each step, or in a graph. Runs on the driver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

from keraunos.compat.zoo.bigdl.nn.module import Layer, Node, Weight
from keraunos.compat.zoo.bigdl.nn.shape_modules import axis_of
from keraunos.compat.zoo.pipeline.api.keras.layer_making import activation_of
from keraunos.compat.zoo.tensorflow_mode import in_tensorflow_2
from keraunos.errors import JobError, ModelError
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled

__all__ = [
    "GRU",
    "LSTM",
    "Concat",
    "ConcatTable",
    "Container",
    "Input",
    "Model",
    "ParallelTable",
    "Recurrent",
    "RnnCell",
    "Sequential",
    "TimeDistributed",
]


class Container(Layer):
    """Modules that make one."""

    def __init__(self, bigdl_type: str = "float") -> None:
        super().__init__()
        self._modules: list[Layer] = []

    @property
    def layers(self) -> list[Layer]:
        """The modules."""
        return list(self._modules)

    def counts_batch(self) -> bool:
        """Returns whether a module within counts its dimensions from the batch."""
        return any(each.counts_batch() for each in self._modules)

    def flattened_layers(self, include_container: bool = False) -> list[Layer]:
        """Returns the modules, and those within them."""
        return [
            leaf
            for module in self._modules
            for leaf in (
                [*([module] if include_container else []), *module.flattened_layers(include_container)]
                if isinstance(module, Container)
                else [module]
            )
        ]

    def add(self, module: Layer) -> Self:
        """Put one more module into it."""
        if not isinstance(module, Layer):
            raise JobError(
                f"`module` must be one of bigdl.nn.layer's. Received: {module!r}. Layers of Keras belong in models of "
                "zoo.pipeline.api.keras."
            )
        self._modules.append(module)
        return self

    def own_weights(self) -> list[tuple[str, Weight]]:
        """Returns all weights, each with the name of its module; one that is used twice, once."""
        found = {id(weight.variable): (name, weight) for each in self._modules for name, weight in each.own_weights()}
        return list(found.values())

    def _draw(self) -> None:
        for each in self._modules:
            each._draw()

    def _set_trainable(self, names: Sequence[str] | None, *, trainable: bool) -> Self:
        inside = None if names is None or self._name in names else names
        for each in self._modules:
            each._set_trainable(inside, trainable=trainable)
        return self


class Sequential(Container):
    """Modules one behind the other."""

    def known_shapes(self) -> list[tuple[int | None, ...]] | None:
        """Returns the shapes of the inputs, if they follow from the first module's weights."""
        return self._modules[0].known_shapes() if self._modules else None

    def connect(self, inputs: Any, training: bool | None = None) -> Any:
        """Returns the last module's outputs."""
        for each in self._modules:
            inputs = each.connect(inputs, training)
        return inputs


class Concat(Container):
    """The outputs of several modules for one input, joined along a dimension."""

    def __init__(self, dimension: int, bigdl_type: str = "float") -> None:
        super().__init__(bigdl_type)
        self._axis = axis_of(dimension)

    def counts_batch(self) -> bool:
        """Returns whether the dimension, or one of a module within, is counted from the batch."""
        return self._axis >= 0 or super().counts_batch()

    def connect(self, inputs: Any, training: bool | None = None) -> Any:
        """Returns the joined outputs."""
        return keras.ops.concatenate([each.connect(inputs, training) for each in self._modules], axis=self._axis)


class ConcatTable(Container):
    """The outputs of several modules for one input, as a list."""

    def connect(self, inputs: Any, training: bool | None = None) -> Any:
        """Returns the list."""
        return [each.connect(inputs, training) for each in self._modules]


class ParallelTable(Container):
    """The list of each module's output for its own input."""

    def connect(self, inputs: Any, training: bool | None = None) -> Any:
        """Returns the list."""
        if len(inputs) != len(self._modules):
            raise ModelError(f"A ParallelTable of {len(self._modules)} modules was given {len(inputs)} inputs.")
        return [each.connect(part, training) for each, part in zip(self._modules, inputs, strict=True)]


class _Begin(Layer):
    """Where a graph begins."""

    def connect(self, inputs: Any, training: bool | None = None) -> Any:
        """Returns the input."""
        return inputs


def Input(bigdl_type: str = "float") -> Node:
    """Returns a node where a graph begins."""
    del bigdl_type
    return Node(_Begin())


class Model(Container):
    """A graph of modules between input nodes and output nodes."""

    def __init__(self, inputs: Any, outputs: Any, bigdl_type: str = "float", **refused: Any) -> None:
        super().__init__(bigdl_type)
        if any(each is not None for each in refused.values()):
            raise JobError(f"Model takes inputs and outputs. Received: {', '.join(refused)}.")
        self._inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        self._outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        if not all(isinstance(each, Node) for each in (*self._inputs, *self._outputs)):
            raise JobError(
                "`inputs` and `outputs` of Model must be nodes, such as Input() and Linear(4, 2)(node). Received: "
                f"{inputs!s} and {outputs!s}. Put two models behind each other in a Sequential."
            )
        self._modules = list(dict.fromkeys(node.element() for node in self._ordered()))

    def connect(self, inputs: Any, training: bool | None = None) -> Any:
        """Returns the outputs of the output nodes."""
        given = list(inputs) if len(self._inputs) > 1 else [inputs]
        # A module that is an input node gets the input and computes.
        values = {node: node.element().connect(each, training) for node, each in zip(self._inputs, given, strict=True)}
        for node in self._ordered():
            if node not in values:
                parts = [values[each] for each in node.inputs]
                values[node] = node.element().connect(parts if len(parts) > 1 else parts[0], training)
        found = [values[each] for each in self._outputs]
        return found if len(found) > 1 else found[0]

    def known_shapes(self) -> list[tuple[int | None, ...]] | None:
        """Returns the shapes of the inputs, if they follow from the first modules' weights."""
        found = [node.element().known_shapes() for node in self._inputs]
        return [shape for each in found for shape in each or ()] if all(found) else None

    def node(self, name: str) -> Node:
        """Returns the node of the module of a name."""
        for node in self._ordered():
            if node.element().name() == name:
                return node
        raise JobError(f"The graph has no module named {name!r}.")

    def _ordered(self) -> list[Node]:
        """Returns all nodes, each behind those that it takes its inputs from."""
        seen: dict[Node, None] = {}

        def visit(node: Node) -> Iterator[Node]:
            if node in seen:
                return
            for each in node.inputs:
                yield from visit(each)
            if not node.inputs and node not in self._inputs:
                raise ModelError(
                    f"A node without inputs must be among `inputs` of the Model. Received: a {node.element().name()} "
                    "that is not."
                )
            seen[node] = None
            yield node

        return [node for output in self._outputs for node in visit(output)]


class TimeDistributed(Container):
    """A module for every step."""

    def __init__(self, model: Layer, bigdl_type: str = "float") -> None:
        super().__init__(bigdl_type)
        self.add(model)

    def connect(self, inputs: Any, training: bool | None = None) -> Any:
        """Returns the outputs of all steps."""
        steps = inputs.shape[1]
        rows = keras.ops.reshape(inputs, (-1, *inputs.shape[2:]))
        found = self._modules[0].connect(rows, training)
        return keras.ops.reshape(found, (-1, steps, *found.shape[1:]))


class _RecurrentCell(Layer):
    """A recurrent cell; its weights are Keras's: of the input, of the state, and the bias, by gates."""

    @in_tensorflow_2
    def _begin(self, layer: Any, input_size: int, hidden_size: int, p: float) -> None:
        if p:
            raise JobError(
                f"`p` of a recurrent cell must be 0: it drops nothing. Received: {p!r}. Put a Dropout before."
            )
        layer.build((None, None, input_size))
        names = ("weight", "hidden_weight", "bias")
        super().__init__(
            layer,
            [
                # The bias is one of the input's, and begins as its matrix does.
                Weight(name, each, (hidden_size if name == "hidden_weight" else input_size, hidden_size))
                for name, each in zip(names, layer.weights, strict=False)
            ],
        )


class LSTM(_RecurrentCell):
    """Long short-term memory, for a `Recurrent`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        p: float = 0.0,
        activation: Any = None,
        inner_activation: Any = None,
        wRegularizer: Any = None,
        uRegularizer: Any = None,
        bRegularizer: Any = None,
        bigdl_type: str = "float",
    ) -> None:
        options = _recurrent(activation, wRegularizer, uRegularizer, bRegularizer, (input_size, hidden_size))
        inner = _activation(inner_activation, "sigmoid")
        layer = keras.layers.LSTM(hidden_size, recurrent_activation=inner, unit_forget_bias=False, **options)
        self._begin(layer, input_size, hidden_size, p)


class GRU(_RecurrentCell):
    """Gated recurrent units, for a `Recurrent`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        p: float = 0.0,
        activation: Any = None,
        inner_activation: Any = None,
        wRegularizer: Any = None,
        uRegularizer: Any = None,
        bRegularizer: Any = None,
        bigdl_type: str = "float",
    ) -> None:
        options = _recurrent(activation, wRegularizer, uRegularizer, bRegularizer, (input_size, hidden_size))
        inner = _activation(inner_activation, "sigmoid")
        layer = keras.layers.GRU(hidden_size, recurrent_activation=inner, reset_after=False, **options)
        self._begin(layer, input_size, hidden_size, p)


class RnnCell(_RecurrentCell):
    """A plain recurrent cell, for a `Recurrent`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        activation: Any,
        isInputWithBias: bool = True,
        isHiddenWithBias: bool = True,
        wRegularizer: Any = None,
        uRegularizer: Any = None,
        bRegularizer: Any = None,
        bigdl_type: str = "float",
    ) -> None:
        options = _recurrent(activation, wRegularizer, uRegularizer, bRegularizer, (input_size, hidden_size))
        # Two biases that are added up are one.
        layer = keras.layers.SimpleRNN(hidden_size, use_bias=isInputWithBias or isHiddenWithBias, **options)
        self._begin(layer, input_size, hidden_size, 0.0)


class Recurrent(Container):
    """A recurrent cell over all steps; its outputs are those of every step."""

    def add(self, module: Layer) -> Self:
        """Put the cell into it."""
        if not isinstance(module, _RecurrentCell) or self._modules:
            raise JobError(
                f"A Recurrent has one cell: LSTM, GRU or RnnCell. Received: {module.name()} as number "
                f"{len(self._modules) + 1}."
            )
        return super().add(module)

    def connect(self, inputs: Any, training: bool | None = None) -> Any:
        """Returns the outputs of all steps."""
        return self._modules[0].connect(inputs, training)


def _recurrent(activation: Any, w: Any, u: Any, b: Any, sizes: tuple[int, int]) -> dict[str, Any]:
    of_input, of_state = (each**-0.5 for each in sizes)
    return {
        "activation": _activation(activation, "tanh"),
        "return_sequences": True,
        "kernel_initializer": keras.initializers.RandomUniform(-of_input, of_input),
        "recurrent_initializer": keras.initializers.RandomUniform(-of_state, of_state),
        "bias_initializer": keras.initializers.RandomUniform(-of_input, of_input),
        "kernel_regularizer": w,
        "recurrent_regularizer": u,
        "bias_regularizer": b,
    }


def _activation(module: Any, default: str) -> Any:
    """Keras's activation for a name, or a module of BigDL's such as Tanh()."""
    if module is None:
        return default
    if isinstance(module, str):
        return activation_of(module)
    inner = getattr(module, "_keras", None)
    if not isinstance(inner, keras.layers.Activation):
        raise JobError(
            f"An activation of a recurrent cell must be a name, or a module such as Tanh(). Received: {module!r}."
        )
    return inner.activation
