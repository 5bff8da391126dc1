"""`forward` and `backward` as BigDL's modules have them. Runs on the driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from keraunos.batch import Array
from keraunos.compat.zoo.tensorflow_mode import in_tensorflow_2
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import tensorflow as tf  # noqa: E402 - after the backend is settled


@in_tensorflow_2
def forward(function: Callable[[Any], Any], inputs: Any) -> Any:
    """Returns the outputs for a batch, as arrays in the nest that the function returns."""
    return _mapped(lambda each: np.asarray(each.numpy() if tf.is_tensor(each) else each), function(_tensors(inputs)))


@in_tensorflow_2
def backward(
    function: Callable[[Any], Any], inputs: Any, gradients: Any, variables: Sequence[Any] = ()
) -> tuple[Any, list[Array]]:
    """Returns the gradients by the inputs, in their nest, and by variables, for gradients by the outputs."""
    with tf.GradientTape() as tape:
        given = _tensors(inputs)
        for each in tf.nest.flatten(given):
            tape.watch(each)
        outputs = function(given)
    sources = [*tf.nest.flatten(given), *(getattr(each, "value", each) for each in variables)]
    weights = [tf.cast(tf.convert_to_tensor(each), tf.float32) for each in _leaves(gradients)]
    targets = tf.nest.flatten(outputs)
    shaped = [tf.reshape(weight, tf.shape(target)) for weight, target in zip(weights, targets, strict=True)]
    found = tape.gradient(targets, sources, shaped, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    arrays = [np.asarray(tf.convert_to_tensor(each).numpy()) for each in found]
    count = len(sources) - len(variables)
    return tf.nest.pack_sequence_as(given, arrays[:count]), arrays[count:]


class Stepping:
    """`forward` and `backward` of a layer that is called with tensors, without its random parts."""

    def forward(self, input: Any) -> Any:  # noqa: A002 - BigDL's name
        """Returns the outputs for a batch."""
        return forward(self, input)  # type: ignore[arg-type]  # a layer is callable

    def backward(self, input: Any, grad_output: Any) -> Any:  # noqa: A002 - BigDL's name
        """Returns the gradients by the inputs for gradients by the outputs."""
        return backward(self, input, grad_output)[0]  # type: ignore[arg-type]  # a layer is callable


def _tensors(inputs: Any) -> Any:
    return _mapped(lambda each: tf.convert_to_tensor(np.asarray(each, dtype=np.float32)), inputs)


def _mapped(function: Callable[[Any], Any], nest: Any) -> Any:
    if isinstance(nest, (list, tuple)):
        return [_mapped(function, each) for each in nest]
    return function(nest)


def _leaves(nest: Any) -> list[Any]:
    return [leaf for each in nest for leaf in _leaves(each)] if isinstance(nest, (list, tuple)) else [nest]
