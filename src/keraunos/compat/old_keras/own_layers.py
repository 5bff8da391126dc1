"""Layers and functions of old Keras that today's lacks, registered. Runs on the driver and on workers.

Models that hold them name this module, which every worker can import.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

PACKAGE = "keraunos.old_keras"


@keras.saving.register_keras_serializable(PACKAGE)  # type: ignore[untyped-decorator]  # Keras is used untyped
def hard_sigmoid(x: Any) -> Any:
    """Returns a fifth of x and a half, between 0 and 1; today's function of that name has a slope of a sixth."""
    return ops.clip(0.2 * x + 0.5, 0.0, 1.0)


@keras.saving.register_keras_serializable(PACKAGE)  # type: ignore[untyped-decorator]  # Keras is used untyped
def cosine_proximity(y_true: Any, y_pred: Any) -> Any:
    """Minus the mean over the last axis of the product of both, each of length 1; today's is minus the sum."""
    return -ops.mean(ops.normalize(y_true, axis=-1) * ops.normalize(y_pred, axis=-1), axis=-1)


@keras.saving.register_keras_serializable(PACKAGE)  # type: ignore[untyped-decorator]  # Keras is used untyped
def hinge(y_true: Any, y_pred: Any) -> Any:
    """How far outputs are from being 1 on the labels' side; today's takes labels 0 for -1."""
    return ops.mean(_missing(y_true, y_pred), axis=-1)


@keras.saving.register_keras_serializable(PACKAGE)  # type: ignore[untyped-decorator]  # Keras is used untyped
def squared_hinge(y_true: Any, y_pred: Any) -> Any:
    """Returns the mean of the squares of what `hinge` is the mean of."""
    return ops.mean(ops.square(_missing(y_true, y_pred)), axis=-1)


def _missing(y_true: Any, y_pred: Any) -> Any:
    return ops.maximum(1.0 - ops.cast(y_true, y_pred.dtype) * y_pred, 0.0)


def drawn_anew(initializer: Any) -> Any:
    """Returns one that draws other numbers than the one given, which draws the same at every call; a seed stays."""
    # A custom initializer is used unchanged.
    ours = type(initializer).__module__.partition(".")[0] in {"keras", "keraunos"}
    return initializer.clone() if ours and isinstance(initializer, keras.initializers.Initializer) else initializer


@keras.saving.register_keras_serializable(PACKAGE)
class PerGate(keras.initializers.Initializer):  # type: ignore[misc]  # Keras is used untyped
    """Draws the weights of each gate on its own, and joins them; today all gates are one matrix."""

    def __init__(self, initializer: Any, gates: int) -> None:
        self.initializer = keras.initializers.get(initializer)
        self.gates = gates

    def __call__(self, shape: Any, dtype: Any = None) -> Any:
        """Returns the weights, of a shape whose last axis goes through all gates."""
        part = (*shape[:-1], shape[-1] // self.gates)
        drawn = [self.initializer.clone() for _ in range(self.gates)]  # one alone would draw the same again
        return ops.concatenate([each(part, dtype=dtype) for each in drawn], axis=-1)

    def get_config(self) -> dict[str, Any]:
        """From which it is made again."""
        return {"initializer": keras.initializers.serialize(self.initializer), "gates": self.gates}


class _OwnDense(keras.layers.Layer):  # type: ignore[misc]  # Keras is used untyped
    """The arguments of Dense that the layers below share."""

    def __init__(
        self,
        *,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **named: Any,
    ) -> None:
        super().__init__(**named)
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.kernel_constraint = keras.constraints.get(kernel_constraint)
        self.bias_constraint = keras.constraints.get(bias_constraint)
        self.input_spec = keras.layers.InputSpec(ndim=2)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, from which the layer is made again."""
        return {
            **super().get_config(),
            "use_bias": self.use_bias,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "kernel_regularizer": keras.regularizers.serialize(self.kernel_regularizer),
            "bias_regularizer": keras.regularizers.serialize(self.bias_regularizer),
            "kernel_constraint": keras.constraints.serialize(self.kernel_constraint),
            "bias_constraint": keras.constraints.serialize(self.bias_constraint),
        }

    def _kernel(self, name: str, shape: tuple[int, ...]) -> Any:
        return self.add_weight(
            name=name,
            shape=shape,
            initializer=drawn_anew(self.kernel_initializer),
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )

    def _bias(self, name: str, shape: tuple[int, ...]) -> Any:
        return self.add_weight(
            name=name,
            shape=shape,
            initializer="zeros",
            regularizer=self.bias_regularizer,
            constraint=self.bias_constraint,
        )


@keras.saving.register_keras_serializable(PACKAGE)
class MaxoutDense(_OwnDense):
    """The largest of several Dense layers, output by output.

    Args:
        units: the size of the output.
        features: how many layers there are.
        named: the arguments of a Dense layer, without an activation.
    """

    def __init__(self, units: int, features: int = 4, **named: Any) -> None:
        super().__init__(**named)
        self.units = int(units)
        self.features = int(features)

    def build(self, input_shape: Any) -> None:
        """Make the weights: a kernel and a bias for each of the layers."""
        self.kernel = self._kernel("kernel", (self.features, int(input_shape[-1]), self.units))
        self.bias = self._bias("bias", (self.features, self.units)) if self.use_bias else None

    def call(self, inputs: Any) -> Any:
        """Returns the largest of all layers' outputs."""
        output = ops.einsum("bi,fiu->bfu", inputs, self.kernel)
        return ops.max(output if self.bias is None else output + self.bias, axis=1)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns a row of outputs for each row."""
        return (input_shape[0], self.units)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, from which the layer is made again."""
        return {**super().get_config(), "units": self.units, "features": self.features}


@keras.saving.register_keras_serializable(PACKAGE)
class Highway(_OwnDense):
    """A Dense layer as wide as its input and the input itself, in shares that the layer learns.

    Args:
        activation: of the Dense layer.
        transform_bias: where the bias of the share begins; it was -2 until Keras 1.1 and 1 in 1.2.
        named: its other arguments.
    """

    def __init__(self, activation: Any = None, transform_bias: float = 1.0, **named: Any) -> None:
        super().__init__(**named)
        self.transform_bias = float(transform_bias)
        self.activation = keras.activations.get(activation)

    def build(self, input_shape: Any) -> None:
        """Make the weights: a kernel and a bias for the transformation and for its share."""
        width = int(input_shape[-1])
        self.kernel = self._kernel("kernel", (width, width))
        # The shares were never regularized.
        self.carry = self.add_weight(
            name="carry", shape=(width, width), initializer=drawn_anew(self.kernel_initializer)
        )
        if self.use_bias:
            self.bias = self._bias("bias", (width,))
            begin = keras.initializers.Constant(self.transform_bias)
            self.carry_bias = self.add_weight(name="carry_bias", shape=(width,), initializer=begin)

    def call(self, inputs: Any) -> Any:
        """Returns the transformed part and the carried part."""
        share, transformed = ops.matmul(inputs, self.carry), ops.matmul(inputs, self.kernel)
        if self.use_bias:
            share, transformed = share + self.carry_bias, transformed + self.bias
        share = ops.sigmoid(share)
        return share * self.activation(transformed) + (1 - share) * inputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns that of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, from which the layer is made again."""
        config = {"activation": keras.activations.serialize(self.activation), "transform_bias": self.transform_bias}
        return {**super().get_config(), **config}
