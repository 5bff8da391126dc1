"""The Keras layers that a Paddle network is made of. Runs on the driver and on workers.

A Paddle layer becomes one `PaddleLayer`, which owns its parameters. A parameter that several layers share, or that is
static, becomes its own layer, `PaddleParameter`, whose output is the parameter itself. Sequences travel with their
masks as tensors of their own.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import keras

from keraunos.compat.paddle.lowering.call import DENSE, IDS, Call, Value, layer_type
from keraunos.compat.paddle.lowering.output import finished
from keraunos.compat.paddle.model_config import ParameterConfig, keras_name, layer_from_json, parameter_from_json

PACKAGE = "keraunos.paddle"


def initial_spread(parameter: ParameterConfig) -> tuple[float, float]:
    """The mean and the standard deviation (for a uniform start, the half width) that a parameter starts with."""
    if not parameter.initial_smart:
        return parameter.initial_mean, parameter.initial_std
    rows = parameter.dims[0] if parameter.dims else parameter.size
    return 0.0, 1.0 / float(rows) ** 0.5


def initializer_of(parameter: ParameterConfig, seed: int) -> Any:
    """Returns the initializer of a parameter; its random numbers depend on the parameter's name and the seed."""
    mean, std = initial_spread(parameter)
    if std == 0:
        return keras.initializers.Constant(mean)
    own = int.from_bytes(hashlib.blake2b(f"{seed} {parameter.name}".encode(), digest_size=4).digest(), "big") >> 1
    if parameter.initial_strategy == 1:
        return keras.initializers.RandomUniform(mean - std, mean + std, seed=own)
    return keras.initializers.RandomNormal(mean, std, seed=own)


@keras.saving.register_keras_serializable(PACKAGE)
class PaddleParameter(keras.layers.Layer):  # type: ignore[misc]  # Keras is untyped
    """One parameter, passed to every layer that uses it; the argument of its call is ignored."""

    def __init__(self, parameter: Mapping[str, Any], seed: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.parameter = parameter_from_json(parameter)
        self._seed = seed
        if self.parameter.is_static:
            self.trainable = False

    def build(self, input_shape: Any) -> None:
        """Create the one variable."""
        self.value = self.add_weight(
            name=keras_name(self.parameter.name),
            shape=_shape(self.parameter),
            initializer=initializer_of(self.parameter, self._seed),
        )

    def variables_by_parameter(self) -> dict[str, Any]:
        """Returns the variable by the parameter's name in Paddle."""
        return {self.parameter.name: self.value}

    def call(self, inputs: Any) -> Any:
        """Returns the parameter."""
        return keras.ops.convert_to_tensor(self.value)

    def compute_output_spec(self, inputs: Any) -> Any:
        """Returns the parameter's shape, whatever the inputs are."""
        return keras.KerasTensor(_shape(self.parameter), dtype=self.variable_dtype)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {**super().get_config(), "parameter": asdict(self.parameter), "seed": self._seed}


@keras.saving.register_keras_serializable(PACKAGE)
class PaddleLayer(keras.layers.Layer):  # type: ignore[misc]  # Keras is untyped
    """One Paddle layer.

    Args:
        layer: its configuration, as `layer_to_json` returns it.
        parameters: the configurations of the parameters that belong to it alone.
        given: the names of the parameters that come as its last inputs.
        arrivals: of each of its inputs, the kind (see `Value`) and whether a mask follows it.
        seed: what its parameters' first values are drawn from, with their names.

    Attributes:
        gives: after a call, the kind of its output, whether a mask follows, and the names of further outputs.
    """

    def __init__(
        self,
        layer: Mapping[str, Any],
        parameters: Sequence[Mapping[str, Any]],
        given: Sequence[str],
        arrivals: Sequence[tuple[str, bool]],
        seed: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._layer = dict(layer)
        self.layer = layer_from_json(layer)
        self._parameter_configs = [parameter_from_json(each) for each in parameters]
        self._given = list(given)
        self._arrivals = [(kind, bool(masked)) for kind, masked in arrivals]
        self._seed = seed
        self._type = layer_type(self.layer.type)
        draws = self._type.draws or self.layer.drop_rate
        self._random = keras.random.SeedGenerator(seed) if draws else None
        self.gives: tuple[str, bool, tuple[str, ...]] = (DENSE, False, ())

    def build(self, input_shape: Any) -> None:
        """Create the parameters; those that training moves without a gradient are static in Paddle's own words."""
        self._own = {
            each.name: self.add_weight(
                name=keras_name(each.name),
                shape=_shape(each),
                initializer=initializer_of(each, self._seed),
                trainable=not each.is_static,
            )
            for each in self._parameter_configs
        }

    def variables_by_parameter(self) -> dict[str, Any]:
        """Returns the variables by the parameters' names in Paddle."""
        return dict(self._own)

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Returns the layer's output: a tensor, or a list of it, its mask and its further outputs."""
        flat = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        count = len(flat) - len(self._given)
        parameters = {name: keras.ops.convert_to_tensor(value) for name, value in self._own.items()}
        parameters |= dict(zip(self._given, flat[count:], strict=True))
        call = Call(self.layer, self._values(flat[:count]), parameters, bool(training), self._random)
        value = finished(call, self._type.function(call), self._type)
        for name, moved in call.moved.items():
            self._own[name].assign(moved)
        names = tuple(sorted(value.parts))
        self.gives = (value.kind, value.is_sequence, names)
        outputs = [value.tensor, *([value.mask] if value.is_sequence else []), *(value.parts[name] for name in names)]
        return outputs[0] if len(outputs) == 1 else outputs

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {
            **super().get_config(),
            "layer": self._layer,
            "parameters": [asdict(each) for each in self._parameter_configs],
            "given": self._given,
            "arrivals": self._arrivals,
            "seed": self._seed,
        }

    def _values(self, tensors: Sequence[Any]) -> list[Value]:
        following = iter(tensors)
        return [Value(next(following), next(following) if masked else None, kind) for kind, masked in self._arrivals]


@keras.saving.register_keras_serializable(PACKAGE)
class Planes(keras.layers.Layer):  # type: ignore[misc]  # Keras is untyped
    """Converts images from Keras's layout, (height, width, channels), to Paddle's flat one, channel after channel."""

    def call(self, inputs: Any) -> Any:
        """Returns the same numbers, in Paddle's order."""
        return keras.ops.reshape(keras.ops.transpose(inputs, (0, 3, 1, 2)), (-1, math.prod(inputs.shape[1:])))


@keras.saving.register_keras_serializable(PACKAGE)
class IdSteps(keras.layers.Layer):  # type: ignore[misc]  # Keras is untyped
    """Which steps of padded ids there are: those that are not negative. Gives the ids and the mask."""

    def call(self, inputs: Any) -> Any:
        """Returns the ids, and true if there is one."""
        return [inputs, keras.ops.greater_equal(inputs, 0)]


@keras.saving.register_keras_serializable(PACKAGE)
class VectorSteps(keras.layers.Layer):  # type: ignore[misc]  # Keras is untyped
    """The existing steps of padded vectors: the first ones, up to the length. Returns vectors and mask."""

    def call(self, inputs: Any) -> Any:
        """Returns the vectors, and true if there is one."""
        vectors, length = inputs
        steps = keras.ops.arange(keras.ops.shape(vectors)[1])
        return [vectors, steps[None, :] < keras.ops.cast(length, "int32")[:, None]]


@keras.saving.register_keras_serializable(PACKAGE)
class CostReport(keras.layers.Layer):  # type: ignore[misc]  # Keras is untyped
    """The cost of each row, summed over the costs, followed by the evaluators' measures."""

    def __init__(self, costs: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._costs = costs

    def call(self, inputs: Any) -> Any:
        """Returns a tensor of shape (rows, 1 + evaluators)."""
        columns = [keras.ops.cast(keras.ops.reshape(each, (-1,)), self.compute_dtype) for each in inputs]
        cost = sum(columns[1 : self._costs], start=columns[0])
        return keras.ops.stack([cost, *columns[self._costs :]], axis=1)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {**super().get_config(), "costs": self._costs}


@keras.saving.register_keras_serializable(PACKAGE)
class SummedCost(keras.losses.Loss):  # type: ignore[misc]  # Keras is untyped
    """The sum of the rows' costs, which the model itself computes: Paddle sums where Keras takes a mean."""

    def __init__(self, name: str = "summed_cost", reduction: str = "sum", **kwargs: Any) -> None:
        super().__init__(name=name, reduction=reduction, **kwargs)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns each row's cost; the targets have played their part as inputs."""
        return y_pred[:, 0]


@keras.saving.register_keras_serializable(PACKAGE)
class Reported(keras.metrics.Mean):  # type: ignore[misc]  # Keras is untyped
    """The mean over rows of one column of the report: the cost, or what an evaluator measures."""

    def __init__(self, column: int = 0, name: str = "cost", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self._column = column

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Take a batch in."""
        return super().update_state(y_pred[:, self._column], sample_weight=sample_weight)

    def merge_state(self, metrics: Any) -> None:
        """Take in what others of the kind have seen."""
        for each in metrics:
            self.total.assign_add(each.total)
            self.count.assign_add(each.count)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {**super().get_config(), "column": self._column}


def _shape(parameter: ParameterConfig) -> tuple[int, ...]:
    return parameter.dims if math.prod(parameter.dims) == parameter.size and parameter.dims else (parameter.size,)


__all__ = [
    "IDS",
    "CostReport",
    "IdSteps",
    "PaddleLayer",
    "PaddleParameter",
    "Planes",
    "Reported",
    "SummedCost",
    "VectorSteps",
]
