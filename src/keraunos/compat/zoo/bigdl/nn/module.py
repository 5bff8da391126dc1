"""Base classes of BigDL's modules: a layer of Keras, or a container of modules. Runs on the driver.

A module's inputs have their batch first. Its weights are made with it; the shapes of its inputs come with the first
batch or with the records that it is trained on.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from keraunos.batch import Array
from keraunos.compat.zoo.bigdl.nn.initialization_method import InitializationMethod, RandomUniform
from keraunos.compat.zoo.bigdl.util.common import JTensor
from keraunos.compat.zoo.own_layers import stepping
from keraunos.compat.zoo.tensorflow_mode import in_tensorflow_2
from keraunos.errors import DataError, JobError, ModelError
from keraunos.launch.given_paths import given_path
from keraunos.launch.session_trust import session_trust
from keraunos.learners.keras_archive import from_archive, live_source, to_archive
from keraunos.learners.registry import import_keras_on
from keraunos.trust import trusting

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled

_numbers = itertools.count(1)


def _same(array: Array) -> Array:
    return array


@dataclass(frozen=True)
class Weight:
    """A variable of Keras's and how it lies in BigDL's arrays."""

    name: str
    variable: Any
    fans: tuple[int, int]
    begins: InitializationMethod = field(default_factory=RandomUniform)
    to_bigdl: Callable[[Array], Array] = _same
    from_bigdl: Callable[[Array], Array] = _same

    def value(self) -> Array:
        """Returns the values as BigDL lays them out."""
        return self.to_bigdl(np.asarray(keras.ops.convert_to_numpy(self.variable)))

    def assign(self, array: Any) -> None:
        """Set the values, laid out as BigDL does."""
        given, shape = np.asarray(array, dtype=np.float32), self.value().shape
        # As with BigDL, the numbers count, and not how the program had shaped them.
        if given.size != int(np.prod(shape)):
            raise ModelError(f"A weight must have the shape {shape}. Received: {given.shape}.")
        self.variable.assign(self.from_bigdl(given.reshape(shape)))


class Node:
    """A module and the nodes that it takes its inputs from."""

    def __init__(self, element: Layer, inputs: Sequence[Node] = ()) -> None:
        self._element, self.inputs = element, tuple(inputs)

    def element(self) -> Layer:
        """Returns the module."""
        return self._element


class Layer:
    """A module.

    Args:
        keras_layer: the layer that computes it; none for a container.
        weights: its weights in BigDL's order.
    """

    def __init__(self, keras_layer: Any = None, weights: Sequence[Weight] = ()) -> None:
        self._keras = keras_layer
        self._weights = list(weights)
        self._name = f"{type(self).__name__}{next(_numbers)}"
        self._training = True
        self._shapes: list[tuple[int | None, ...]] | None = None
        self._gradients: dict[int, Array] = {}

    def connect(self, inputs: Any, training: bool | None = None) -> Any:
        """Returns the outputs for tensors, or for inputs of a model that is being built."""
        return self._keras(inputs, training=training)

    def own_weights(self) -> list[tuple[str, Weight]]:
        """Returns all weights, each with the name of its module."""
        return [(self._name, weight) for weight in self._weights]

    def __call__(self, x: Any = None) -> Node:
        """Returns a node of a graph behind one node or several."""
        return Node(self, [] if x is None else x if isinstance(x, (list, tuple)) else [x])

    def set_name(self, name: str) -> Self:
        """Give the module a name."""
        self._name = name
        return self

    def name(self) -> str:
        """Returns the module's name."""
        return self._name

    def set_seed(self, seed: int = 123) -> Self:
        """Seed the random numbers of this process."""
        keras.utils.set_random_seed(seed)
        return self

    @in_tensorflow_2
    def forward(self, input: Any) -> Any:  # noqa: A002 - BigDL's name
        """Returns the outputs for a batch, in training mode unless `evaluate()` was called."""
        given, single = self._batch_of(input)
        self._note_shapes(given)
        found = stepping.forward(self._stepped, given)
        return _without_batch(found) if single else found

    @in_tensorflow_2
    def backward(self, input: Any, grad_output: Any) -> Any:  # noqa: A002 - BigDL's name
        """Returns the gradients by the inputs; those by the weights are added up in `parameters()`."""
        given, single = self._batch_of(input)
        weights = [weight for _, weight in self.own_weights()]
        variables = [weight.variable for weight in weights]
        found, gradients = stepping.backward(self._stepped, given, grad_output, variables)
        for weight, gradient in zip(weights, gradients, strict=True):
            key = id(weight.variable)
            self._gradients[key] = self._gradients.get(key, 0) + weight.to_bigdl(gradient)
        return _without_batch(found) if single else found

    def zero_grad_parameters(self) -> None:
        """Forget the gradients that were added up."""
        self._gradients.clear()

    @in_tensorflow_2
    def update_parameters(self, learning_rate: float) -> None:
        """Take a step against the gradients that were added up."""
        for _, weight in self.own_weights():
            gradient = self._gradients.get(id(weight.variable))
            if gradient is not None:
                weight.assign(weight.value() - learning_rate * gradient)

    @in_tensorflow_2
    def parameters(self) -> dict[str, dict[str, Array]]:
        """Weights and the gradients that were added up, by the modules' names."""
        found: dict[str, dict[str, Array]] = {}
        for module, weight in self.own_weights():
            value = weight.value()
            gradient = self._gradients.get(id(weight.variable), np.zeros_like(value))
            found.setdefault(module, {}).update(
                {weight.name: value, f"grad{weight.name[0].upper()}{weight.name[1:]}": gradient}
            )
        return found

    @in_tensorflow_2
    def get_weights(self) -> list[Array]:
        """Returns the weights, laid out as BigDL does."""
        return [weight.value() for _, weight in self.own_weights()]

    @in_tensorflow_2
    def set_weights(self, weights: Any) -> None:
        """Set the weights, laid out as BigDL does."""
        given = list(weights) if isinstance(weights, (list, tuple)) else [weights]
        own = self.own_weights()
        if len(given) != len(own):
            raise ModelError(f"The module has {len(own)} weights. Received: {len(given)} arrays.")
        for (_, weight), array in zip(own, given, strict=True):
            weight.assign(array)

    def is_with_weights(self) -> bool:
        """Returns whether there are weights."""
        return bool(self.own_weights())

    @in_tensorflow_2
    def set_init_method(
        self,
        weight_init_method: InitializationMethod | None = None,
        bias_init_method: InitializationMethod | None = None,
    ) -> Self:
        """Begin with other weights: all of them but biases, and the biases, by a method each."""
        chosen = {"bias": bias_init_method}
        self._weights = [
            replace(each, begins=chosen.get(each.name, weight_init_method) or each.begins) for each in self._weights
        ]
        self._draw()
        return self

    @in_tensorflow_2
    def reset(self) -> Self:
        """Draw new initial weights."""
        self._draw()
        return self

    def training(self, is_training: bool = True) -> Self:
        """Returns whether `forward` drops and measures batches."""
        self._training = bool(is_training)
        return self

    def is_training(self) -> bool:
        """Returns whether `forward` does as in training."""
        return self._training

    def freeze(self, names: Sequence[str] | None = None) -> Self:
        """Train no longer: all modules, or those with the names."""
        return self._set_trainable(names, trainable=False)

    def unfreeze(self, names: Sequence[str] | None = None) -> Self:
        """Train again: all modules, or those with the names."""
        return self._set_trainable(names, trainable=True)

    def evaluate(self, *args: Any) -> Any:
        """Without arguments: do as in prediction. With an RDD, a batch size and methods: their results."""
        if not args:
            return self.training(is_training=False)
        from keraunos.compat.zoo.bigdl.nn.running import evaluated

        if len(args) != 3:
            raise JobError(f"evaluate takes records, a batch size and validation methods. Received: {len(args)}.")
        return evaluated(self, *args)

    def predict(self, features: Any, batch_size: int = -1) -> Any:
        """Returns the outputs: an array for arrays, an RDD for an RDD of Samples."""
        from keraunos.compat.zoo.bigdl.nn.running import predicted

        return predicted(self, features, batch_size)

    def predict_class(self, features: Any) -> Any:
        """Returns the class with the largest output, counted from 1."""
        found = self.predict(features)
        if hasattr(found, "map"):
            return found.map(lambda each: int(np.argmax(each)) + 1)
        return np.argmax(found, axis=-1) + 1

    predict_local = predict_distributed = predict
    predict_class_local = predict_class_distributed = predict_class

    @in_tensorflow_2
    def lowered(self, shapes: Sequence[tuple[int | None, ...]] | None = None) -> Any:
        """Returns the model of Keras, for inputs of shapes without the batch; those of the last batch by default."""
        self._shapes = list(shapes) if shapes is not None else self._shapes or self.known_shapes()
        if self._shapes is None:
            raise ModelError(
                "The module must know the shapes of its inputs. Received: a module that was neither trained nor run. "
                "Call forward, or train it, first."
            )
        inputs = [keras.Input(shape) for shape in self._shapes]
        return keras.Model(inputs, self.connect(inputs if len(inputs) > 1 else inputs[0]))

    @in_tensorflow_2
    def saveModel(self, modelPath: str, weightPath: str | None = None, over_write: bool = False) -> None:
        """Write a file of Keraunos's, which `Model.loadModel` reads; BigDL's own files are JVM objects."""
        if weightPath is not None:
            raise JobError(f"`weightPath` must be left out: weights are in the file. Received: {weightPath!r}.")
        file = given_path(modelPath, "modelPath")
        if file.exists() and not over_write:
            raise JobError(f"`path` must not exist yet, or `over_write` must be True. Received: {str(modelPath)!r}.")
        file.replace(to_archive(self.lowered()))

    def save(self, path: str, over_write: bool = False) -> None:
        """Write the same file."""
        self.saveModel(path, over_write=over_write)

    @staticmethod
    @in_tensorflow_2
    def loadModel(modelPath: str, weightPath: str | None = None, bigdl_type: str = "float") -> Layer:
        """Returns the module that `saveModel` wrote."""
        del bigdl_type
        content = given_path(modelPath, "modelPath").read()
        if weightPath is not None or content[:2] != b"PK":
            raise DataError(
                "loadModel reads files that saveModel wrote here; BigDL's own are JVM objects, which cannot be read. "
                f"Received: {modelPath!r}."
            )
        from keraunos.compat.zoo.bigdl.nn.loading import LoadedModule

        with trusting(*session_trust()):
            return LoadedModule(from_archive(content))

    load = loadModel

    def known_shapes(self) -> list[tuple[int | None, ...]] | None:
        """Returns the shapes of the inputs, if they follow from the module's weights."""
        return None

    def source(self) -> Any:
        """Returns the lowered model as workers get it."""
        return live_source(self.lowered(), backend="tensorflow")

    def _draw(self) -> None:
        for weight in self._weights:
            weight.assign(weight.begins.values(weight.value().shape, *weight.fans))

    def _stepped(self, inputs: Any) -> Any:
        return self.connect(inputs, training=self._training)

    def counts_batch(self) -> bool:
        """Whether dimensions are counted from the batch, so that a vector's are others than those of a batch of it."""
        return False

    def _batch_of(self, inputs: Any) -> tuple[Any, bool]:
        given, single = _as_batch(inputs)
        if not single or not self.counts_batch():
            return given, single
        if self._keras is not None:  # a function of dimensions, which may be a vector's
            return _without_batch(given), False
        raise JobError(
            f"{self._name} must be given a batch, whose dimension its modules count. Received: a vector. Give an array "
            "with a row, and take the row of what comes out."
        )

    def _note_shapes(self, inputs: Any) -> None:
        arrays = inputs if isinstance(inputs, (list, tuple)) else [inputs]
        if not any(isinstance(each, (list, tuple)) for each in arrays):
            self._shapes = [tuple(np.shape(each)[1:]) for each in arrays]

    def _set_trainable(self, names: Sequence[str] | None, *, trainable: bool) -> Self:
        if (names is None or self._name in names) and self._keras is not None:
            self._keras.trainable = trainable
        return self

    def __str__(self) -> str:
        return self._name


def _as_batch(inputs: Any) -> tuple[Any, bool]:
    """Inputs with a batch, and whether they came as vectors, which have none."""
    if isinstance(inputs, (list, tuple)):
        inputs = [each.to_ndarray() if isinstance(each, JTensor) else each for each in inputs]
    elif isinstance(inputs, JTensor):
        inputs = inputs.to_ndarray()
    arrays = inputs if isinstance(inputs, list) else [inputs]
    nested = any(isinstance(each, (list, tuple)) for each in arrays)
    if nested or any(np.ndim(each) != 1 for each in arrays):
        return inputs, False
    rows = [np.expand_dims(each, 0) for each in arrays]
    return (rows if isinstance(inputs, list) else rows[0]), True


def _without_batch(outputs: Any) -> Any:
    return [_without_batch(each) for each in outputs] if isinstance(outputs, list) else outputs[0]
