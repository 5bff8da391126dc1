"""Batch normalization as tf-slim offers it, on today's TensorFlow. Runs on the driver and on workers.

The arguments, their defaults, the names of the variables and the collections are those of `tf.contrib.slim`, so that
checkpoints and programs of its time fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from keraunos.compat.tensorflow1 import _mode

_v1 = _mode.tensorflow_1()
_utils: Any = import_module("tf_slim.layers.utils")
_variables: Any = import_module("tf_slim.ops.variables")
_arg_scope: Any = import_module("tf_slim.ops.arg_scope")


@_arg_scope.add_arg_scope  # type: ignore[untyped-decorator]
def batch_norm(
    inputs: Any,
    decay: float = 0.999,
    center: bool = True,
    scale: bool = False,
    epsilon: float = 0.001,
    activation_fn: Callable[[Any], Any] | None = None,
    param_initializers: Mapping[str, Any] | None = None,
    param_regularizers: Mapping[str, Any] | None = None,
    updates_collections: Any = _v1.GraphKeys.UPDATE_OPS,
    is_training: Any = True,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    batch_weights: Any = None,
    fused: bool | None = None,
    data_format: str = "NHWC",
    zero_debias_moving_mean: bool = False,
    scope: Any = None,
    renorm: bool = False,
    renorm_clipping: Mapping[str, Any] | None = None,
    renorm_decay: float = 0.99,
    adjustment: Callable[[Any], Any] | None = None,
) -> Any:
    """Normalize over all axes but the channels', with the batch's statistics in training and moving ones otherwise.

    `is_training` is a bool, a tensor or a variable. The operations that move the averages go to `updates_collections`;
    with `None` the output waits for them.
    """
    _refuse_others(renorm, renorm_clipping, renorm_decay, adjustment)
    with _v1.variable_scope(scope, "BatchNorm", [inputs], reuse=reuse) as entered:
        inputs = _v1.convert_to_tensor(inputs)
        axis = _channel_axis(inputs, data_format)
        make = _VariableMaker(
            inputs.shape.as_list()[axis],
            param_initializers or {},
            param_regularizers or {},
            variables_collections,
            trainable,
        )
        layer = _Layer(
            inputs=inputs,
            axis=axis,
            epsilon=epsilon,
            decay=decay,
            zero_debias=zero_debias_moving_mean,
            is_training=is_training,
            weights=batch_weights,
            fused=fused is not False and batch_weights is None and inputs.shape.ndims in (2, 4),
            beta=make("beta", 0.0) if center else None,
            gamma=make("gamma", 1.0) if scale else None,
            moving_mean=make("moving_mean", 0.0, moving=True),
            moving_variance=make("moving_variance", 1.0, moving=True),
        )
        outputs = layer.outputs(updates_collections)
        if activation_fn is not None:
            outputs = activation_fn(outputs)
        return _utils.collect_named_outputs(outputs_collections, entered.name, outputs)


def _refuse_others(renorm: bool, renorm_clipping: Any, renorm_decay: float, adjustment: Any) -> None:
    if renorm or adjustment is not None:
        raise ValueError(
            "slim.batch_norm takes neither `renorm` nor `adjustment` on today's TensorFlow. "
            f"Received: renorm={renorm!r} (with {renorm_clipping!r} and {renorm_decay!r}), adjustment={adjustment!r}. "
            "Leave both out, or call tf.layers.batch_normalization, which takes `renorm`."
        )


def _channel_axis(inputs: Any, data_format: str) -> int:
    if data_format not in ("NHWC", "NCHW"):
        raise ValueError(f"`data_format` must be 'NHWC' or 'NCHW'. Received: {data_format!r}.")
    if inputs.shape.ndims is None or inputs.shape.ndims < 2:
        raise ValueError(f"batch_norm needs inputs of a known rank, at least 2. Received: {inputs!r}.")
    axis = 1 if data_format == "NCHW" else inputs.shape.ndims - 1
    if inputs.shape.as_list()[axis] is None:
        raise ValueError(f"batch_norm needs to know how many channels its inputs have. Received: {inputs!r}.")
    return axis


@dataclass(frozen=True)
class _VariableMaker:
    """Makes, or finds again, the variables of the scope it is called in."""

    channels: int
    initializers: Mapping[str, Any]
    regularizers: Mapping[str, Any]
    collections: Any
    trainable: bool

    def __call__(self, name: str, initial: float, *, moving: bool = False) -> Any:
        return _variables.model_variable(
            name,
            shape=[self.channels],
            dtype=_v1.float32,  # half precision would lose the averages
            initializer=self.initializers.get(name) or _v1.constant_initializer(initial),
            regularizer=None if moving else self.regularizers.get(name),
            collections=_utils.get_variable_collections(self.collections, name),
            trainable=self.trainable and not moving,
            partitioner=None,
        )


@dataclass(frozen=True)
class _Layer:
    """One use of batch normalization: its inputs, its variables, and the operations between them."""

    inputs: Any
    axis: int
    epsilon: float
    decay: float
    zero_debias: bool
    is_training: Any
    weights: Any
    fused: bool
    beta: Any
    gamma: Any
    moving_mean: Any
    moving_variance: Any

    def outputs(self, updates_collections: Any) -> Any:
        """Returns the normalized inputs; the averages move along with them or by the operations in the collections."""
        normalized, mean, variance = _choose(self.is_training, self._by_batch, self._by_averages)
        normalized.set_shape(self.inputs.shape)
        if _constant(self.is_training) is False:
            return normalized
        updates = _choose(self.is_training, lambda: self._updates(mean, variance), self._unmoved)
        if updates_collections is None:
            with _v1.control_dependencies(updates):
                return _v1.identity(normalized)
        for update in updates:
            _v1.add_to_collections(updates_collections, update)
        return normalized

    def _updates(self, mean: Any, variance: Any) -> list[Any]:
        from tensorflow.python.training import moving_averages

        return [
            moving_averages.assign_moving_average(self.moving_mean, mean, self.decay, zero_debias=self.zero_debias),
            moving_averages.assign_moving_average(self.moving_variance, variance, self.decay, zero_debias=False),
        ]

    def _unmoved(self) -> list[Any]:
        return [_v1.identity(self.moving_mean), _v1.identity(self.moving_variance)]

    def _by_averages(self) -> tuple[Any, Any, Any]:
        mean, variance = _v1.identity(self.moving_mean), _v1.identity(self.moving_variance)
        return self._normalized(mean, variance), mean, variance

    def _by_batch(self) -> tuple[Any, Any, Any]:
        if self.fused:
            return self._fused()
        axes = [axis for axis in range(self.inputs.shape.ndims) if axis != self.axis]
        values = _v1.cast(self.inputs, _v1.float32)
        if self.weights is None:
            mean, variance = _v1.nn.moments(values, axes)
        else:
            shape = [-1] + [1] * (self.inputs.shape.ndims - 1)
            weights = _v1.reshape(_v1.cast(self.weights, _v1.float32), shape)
            mean, variance = _v1.nn.weighted_moments(values, axes, weights)
        return self._normalized(mean, variance), mean, variance

    def _fused(self) -> tuple[Any, Any, Any]:
        """TensorFlow's one operation for it; its variance, for the averages, is that of a sample."""
        channels = self.inputs.shape.as_list()[self.axis]
        flat = self.inputs.shape.ndims == 2
        values = _v1.reshape(self.inputs, [-1, 1, 1, channels]) if flat else self.inputs
        outputs, mean, variance = _v1.nn.fused_batch_norm(
            values,
            _v1.ones([channels]) if self.gamma is None else self.gamma,
            _v1.zeros([channels]) if self.beta is None else self.beta,
            epsilon=self.epsilon,
            data_format="NCHW" if self.axis == 1 and not flat else "NHWC",
            is_training=True,
        )
        return (_v1.reshape(outputs, _v1.shape(self.inputs)) if flat else outputs), mean, variance

    def _normalized(self, mean: Any, variance: Any) -> Any:
        shape = [1] * self.inputs.shape.ndims
        shape[self.axis] = self.inputs.shape.as_list()[self.axis]
        wide = [None if each is None else _v1.reshape(each, shape) for each in (mean, variance, self.beta, self.gamma)]
        values = _v1.cast(self.inputs, _v1.float32)
        return _v1.cast(_v1.nn.batch_normalization(values, *wide, variance_epsilon=self.epsilon), self.inputs.dtype)


def _choose(condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    constant = _constant(condition)
    if constant is None:
        return _v1.cond(_v1.cast(condition, _v1.bool), then, otherwise)
    return then() if constant else otherwise()


def _constant(condition: Any) -> bool | None:
    """Returns the condition's value where the graph fixes it."""
    if isinstance(condition, _v1.Variable):
        return None
    if isinstance(condition, _v1.Tensor):
        value = _v1.get_static_value(condition)
        return None if value is None else bool(value)
    return bool(condition)
