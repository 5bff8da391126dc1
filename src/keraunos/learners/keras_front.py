"""A Keras model in two parts: what only TensorFlow can run, and the rest. Runs on the driver and on workers.

Layers such as TextVectorization take strings and run in no compiled step. The **front** of a model is these layers and
all that leads to them; it is run once per row, where rows are read. The **rest** takes the front's outputs, and the
inputs that it reads itself, and is an ordinary compiled model of numbers. Both share their layers with the whole model:
to train the rest is to train the model. Every process makes the same two parts from the same archive.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from keraunos.batch import Array, Arrays, ArraySpec, fits
from keraunos.errors import DataError, ModelError
from keraunos.learners import tensorflow_layers
from keraunos.learners.archive_extras import STEPS
from keraunos.learners.tensorflow_layers import STRING


@dataclass(frozen=True)
class Front:
    """The part of a model that only TensorFlow can run.

    Attributes:
        inputs: all inputs of the model, by name.
        reads: those that the front reads.
        keeps: those that the rest reads as they are.
        makes: the names of the front's outputs, which are inputs of the rest.
        function: what computes these outputs, in that order.
        specs: the outputs' shapes and types.
    """

    inputs: tuple[str, ...]
    reads: tuple[str, ...]
    keeps: tuple[str, ...]
    makes: tuple[str, ...]
    function: Any
    specs: tuple[ArraySpec, ...]

    def __call__(self, inputs: Arrays) -> dict[str, Array]:
        """What the rest takes for these rows; one array stands for the only input."""
        named = inputs if isinstance(inputs, dict) else {self.inputs[0]: inputs}
        return {**{name: named[name] for name in self.keeps}, **self.encode(named)}

    def encode(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The front's outputs alone, for inputs by name."""
        given = [
            _shaped(name, inputs[name], tensor) for name, tensor in zip(self.reads, self.function.inputs, strict=True)
        ]
        outputs = _run(self.function, given)
        return {
            name: _numbers(name, output, spec)
            for name, output, spec in zip(self.makes, outputs, self.specs, strict=True)
        }


def parted(model: Any) -> tuple[Any, Front | None]:
    """The rest of a built model and its front; the model itself, and `None`, where TensorFlow need not run a part."""
    graph = _graph_of(model)
    if graph is None:
        found = tensorflow_layers.in_model(model)
        if found:
            raise ModelError(
                f"The model {model.name!r} has the layer {found[0].name!r}, which only TensorFlow can run, outside of "
                "its training steps. Expected: a Sequential or functional model, in which that layer can be told from "
                f"the rest. Received: {type(model).__qualname__}, a class of its own. Call the layer outside of that "
                "class: keras.Sequential([layer, model])."
            )
        return model, None
    front = _front_nodes(graph)
    if not front:
        return model, None
    _check(model, front)
    return _Parting(model, graph, front).parts()


def _graph_of(model: Any) -> Any | None:
    """The functional model that this is, or that a built Sequential has."""
    inner = getattr(model, "_functional", None)
    return inner if inner is not None else model if hasattr(model, "_inputs_struct") else None


def _nodes(graph: Any) -> Iterator[Any]:
    """The calls of layers and operations, in an order in which they can be made."""
    for depth in sorted(graph._nodes_by_depth, reverse=True):
        yield from (node for node in graph._nodes_by_depth[depth] if not node.is_input)


def _front_nodes(graph: Any) -> list[Any]:
    """The calls that only TensorFlow can make, and all calls that those need."""
    nodes = list(_nodes(graph))
    wanted: set[int] = set()
    chosen = []
    for node in reversed(nodes):
        if _needs_tensorflow(node) or any(id(tensor) in wanted for tensor in node.output_tensors):
            wanted.update(id(tensor) for tensor in node.input_tensors)
            chosen.append(node)
    return chosen[::-1]


def _needs_tensorflow(node: Any) -> bool:
    operation = node.operation
    if isinstance(operation, keras.layers.Layer) and tensorflow_layers.in_model(operation):
        return True
    return any(_is_string(tensor) for tensor in (*node.input_tensors, *node.output_tensors))


def _is_string(tensor: Any) -> bool:
    return str(tensor.dtype) == STRING


def _check(model: Any, front: list[Any]) -> None:
    """Refuse what cannot be parted without becoming another model."""
    defined = [(name, getattr(type(model), name)) for name in STEPS if hasattr(type(model), name)]
    own = [name for name, method in defined if not method.__module__.startswith("keras.")]
    first = front[0].operation.name
    if own:
        raise ModelError(
            f"The model {model.name!r} has a {own[0]!r} of its own and the layer {first!r}, which only TensorFlow can "
            f"run, outside of the training steps. Expected: Keras's own {own[0]!r}. Received: that of "
            f"{type(model).__qualname__}. Give the model numbers: run that layer on the column before."
        )
    for node in front:
        layer = node.operation
        variables = getattr(layer, "variables", [])
        if getattr(layer, "trainable_variables", []) or any(each.name == "seed_generator_state" for each in variables):
            raise ModelError(
                f"The layer {layer.name!r} leads to a layer that only TensorFlow can run, or has one inside, and is "
                "run once per row, before training. Expected: a layer that neither learns nor draws random numbers. "
                f"Received: {type(layer).__qualname__} with weights to train or random numbers. Call the layers that "
                "take strings on the model's inputs themselves, not inside another model."
            )


class _Parting:
    """Makes the two parts of one model."""

    def __init__(self, model: Any, graph: Any, front: list[Any]) -> None:
        self._model = model
        self._graph = graph
        self._front = front
        struct = graph._inputs_struct
        named = struct.items() if isinstance(struct, Mapping) else ((tensor.name, tensor) for tensor in graph.inputs)
        self._inputs = {str(name): tensor for name, tensor in named}

    def parts(self) -> tuple[Any, Front]:
        """The rest, compiled as the model is, and the front."""
        in_front = {id(node) for node in self._front}
        others = [node for node in _nodes(self._graph) if id(node) not in in_front]
        outputs = self._graph.outputs
        read = {id(tensor) for node in others for tensor in node.input_tensors} | {id(tensor) for tensor in outputs}
        needed = {id(tensor) for node in self._front for tensor in node.input_tensors}
        cut = self._cut(read)
        keeps = {name: tensor for name, tensor in self._inputs.items() if id(tensor) in read}
        reads = {name: tensor for name, tensor in self._inputs.items() if id(tensor) in needed}
        function = keras.Function(list(reads.values()), list(cut.values()))
        made = _seen(function)
        front = Front(tuple(self._inputs), tuple(reads), tuple(keeps), tuple(cut), function, made)
        return self._rest(others, keeps, cut, made), front

    def _cut(self, read: set[int]) -> dict[str, Any]:
        """The front's outputs that the rest reads, by names that all processes agree on."""
        cut: dict[str, Any] = {}
        for node in self._front:
            for tensor in node.output_tensors:
                if id(tensor) not in read:
                    continue
                layer = node.operation
                self._check_output(layer, tensor)
                name, number = layer.name, 1
                while name in cut or name in self._inputs:
                    number += 1
                    name = f"{layer.name}_{number}"
                cut[name] = tensor
        return cut

    def _check_output(self, layer: Any, tensor: Any) -> None:
        named = getattr(layer, "invert", False) and getattr(layer, "vocabulary_dtype", None) == STRING
        if _is_string(tensor) or named:
            raise ModelError(
                f"The model {self._model.name!r} gives strings: its layer {layer.name!r} does. Expected: outputs of "
                "numbers. Received: an output of strings. Leave that layer out, and look the predictions up afterwards."
            )
        special = getattr(tensor, "sparse", False) or getattr(tensor, "ragged", False)
        if special or getattr(layer, "sparse", False) or getattr(layer, "_ragged", False):
            raise ModelError(
                f"The layer {layer.name!r} gives sparse or ragged tensors, of which rows cannot be kept. Expected: "
                "sparse=False and ragged=False. Received: one of them set. Leave it out."
            )
        if None in tensor.shape[1:]:
            raise ModelError(
                f"The layer {layer.name!r} gives rows of any length, but all rows on all workers must have one length. "
                f"Expected: a fixed length. Received: rows of shape {tuple(tensor.shape[1:])}. Set "
                "`output_sequence_length`, as in TextVectorization(output_sequence_length=100)."
            )

    def _rest(
        self, nodes: list[Any], keeps: Mapping[str, Any], cut: Mapping[str, Any], made: Sequence[ArraySpec]
    ) -> Any:
        """The same calls once more, on inputs of numbers."""
        model = self._model
        shapes = {name: ArraySpec(tuple(tensor.shape[1:]), str(tensor.dtype)) for name, tensor in keeps.items()}
        shapes.update(zip(cut, made, strict=True))
        fresh = {name: keras.Input(spec.shape, dtype=spec.dtype, name=name) for name, spec in shapes.items()}
        known = {id(tensor): fresh[name] for name, tensor in (*keeps.items(), *cut.items())}
        for node in nodes:
            args, kwargs = node.arguments.fill_in(known)
            results = keras.tree.flatten(node.operation(*args, **kwargs))
            known.update((id(tensor), result) for tensor, result in zip(node.output_tensors, results, strict=True))
        outputs = keras.tree.map_structure(lambda tensor: known[id(tensor)], self._graph._outputs_struct)
        rest = keras.Model(fresh, outputs, name=model.name)
        if [id(each) for each in rest.trainable_variables] != [id(each) for each in model.trainable_variables]:
            raise ModelError(
                f"The model {model.name!r} has weights to train that its outputs do not depend on, or in another "
                "order. Expected: a functional model whose layers all lead to its outputs. Received: "
                f"{[each.path for each in model.trainable_variables]!r}. Leave the other layers out."
            )
        if model.compiled:
            # Keras compiles no steps of a model with layers for strings, whatever was asked for; the rest has none.
            options = {**model._compile_config.config, "optimizer": model.optimizer, "jit_compile": "auto"}
            rest.compile(**options)
        return rest


def _run(function: Any, given: list[Array]) -> list[Any]:
    # The layers for strings run on the CPU in any case, and so does what leads to them.
    with keras.device("cpu:0"), warnings.catch_warnings():
        # Keras asks JAX for 64 bits here and there, and JAX says that it has 32.
        warnings.filterwarnings("ignore", "Explicitly requested dtype int64", UserWarning)
        return list(function(given))


def _seen(function: Any) -> tuple[ArraySpec, ...]:
    """What the front's outputs look like: their shapes as they are, since some layers say one and give another."""
    told = [tuple(int(length) for length in tensor.shape[1:]) for tensor in function.outputs]
    examples = [
        ArraySpec(tuple(length or 1 for length in tensor.shape[1:]), "object" if _is_string(tensor) else tensor.dtype)
        for tensor in function.inputs
    ]
    # A lookup that knows no other values than its own refuses the example; what such a layer says of itself is true.
    with contextlib.suppress(Exception):
        told = [tuple(output.shape[1:]) for output in _run(function, [each.zeros(2) for each in examples])]
    return tuple(ArraySpec(shape, _made_type(tensor)) for shape, tensor in zip(told, function.outputs, strict=True))


def _made_type(tensor: Any) -> str:
    # Places in a vocabulary and hashes are far from needing more, JAX has no more, and rows are half as large.
    dtype = str(tensor.dtype)
    return "int32" if dtype == "int64" else dtype


def _shaped(name: str, array: Array, tensor: Any) -> Array:
    """The array in the rank and type of the input; a row of one value may come with or without a dimension for it."""
    shape = tuple(tensor.shape[1:])
    if not fits(array.shape[1:], shape):
        raise DataError(
            f"The rows do not fit the model's input {name!r}. Expected rows of shape {shape}. Received: rows of shape "
            f"{array.shape[1:]}. Give columns of that shape, or change the model's Input."
        )
    if array.ndim > len(shape) + 1:
        array = array[..., 0]
    elif array.ndim < len(shape) + 1:
        array = array[..., None]
    return array if array.dtype == object else array.astype(str(tensor.dtype), copy=False)


def _numbers(name: str, output: Any, spec: ArraySpec) -> Array:
    array = np.asarray(keras.ops.convert_to_numpy(output))
    if array.shape[1:] != spec.shape:
        raise DataError(
            f"The layer {name!r} must give rows of one shape, {spec.shape}. Received: rows of shape {array.shape[1:]}."
        )
    dtype = np.dtype(spec.dtype)
    limits = np.iinfo(dtype) if dtype.kind == "i" and array.size else None
    if limits is not None and not (limits.min <= array.min() and array.max() <= limits.max):
        raise DataError(
            f"The layer {name!r} must give whole numbers of 32 bits. Received: numbers from {array.min()} to "
            f"{array.max()}. Hash or look them up in fewer places."
        )
    return array.astype(dtype, copy=False)
