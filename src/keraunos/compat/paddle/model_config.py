"""A Paddle configuration as plain data. Runs on the driver and on workers.

The configuration language writes it, and everything else here reads nothing but it: the lowering to a Keras model, the
summary, the update rules, parameter files. Names are those of Paddle's own protocol buffers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class ParameterConfig:
    """One parameter: its shape as Paddle stores it, how it starts and how it is trained.

    Attributes:
        dims: Paddle's dimensions of it, empty where it leaves them unset (convolution filters).
        initial_strategy: 0 for a normal distribution, 1 for a uniform one over mean - std to mean + std.
        initial_smart: whether mean and std are worked out from the shape instead.
    """

    name: str
    size: int
    dims: tuple[int, ...] = ()
    learning_rate: float = 1.0
    momentum: float = 0.0
    decay_rate: float = 0.0
    decay_rate_l1: float = 0.0
    initial_mean: float = 0.0
    initial_std: float = 0.01
    initial_strategy: int = 0
    initial_smart: bool = False
    num_batches_regularization: int = 1
    gradient_clipping_threshold: float = 0.0
    is_static: bool = False
    is_shared: bool = False
    sparse_update: bool = False
    sparse_remote_update: bool = False


@dataclass(frozen=True)
class InputConfig:
    """One input of a layer.

    Attributes:
        layer: the name of the layer that feeds it.
        parameter: the name of the weight on it, if it has one.
        argument: which of the feeding layer's outputs is meant (`get_output`), if not its first.
        settings: what belongs to this input alone, by kind: `conv`, `pool`, `norm`, `image`, `block_expand`, `maxout`,
            `spp`, `pad`, `bilinear_interp`, or `proj` (a projection of a mixed or concat2 layer). Each is a mapping
            with the fields of Paddle's protocol buffer of that name, sizes worked out.
    """

    layer: str
    parameter: str | None = None
    argument: str | None = None
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class LayerConfig:
    """One layer, its sizes worked out.

    Attributes:
        size: the width of a row of its output.
        bias: the name of its bias parameter; `None` without one.
        coeff: for costs, a factor on the gradient.
        operators: of a mixed layer: mappings with `type`, `input_indices`, `input_sizes`, `output_size` and their own.
        attributes: everything else that the type takes (`num_filters`, `reversed`, `shared_biases`, …), defaults
            filled in.
    """

    name: str
    type: str
    size: int
    inputs: tuple[InputConfig, ...] = ()
    active_type: str = ""
    bias: str | None = None
    drop_rate: float = 0.0
    coeff: float = 1.0
    error_clipping_threshold: float = 0.0
    operators: tuple[Mapping[str, Any], ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class EvaluatorConfig:
    """Something measured beside the cost."""

    name: str
    type: str
    input_layers: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelConfig:
    """The layers in the order of their definition, and the parameters by name, in the order of theirs."""

    layers: tuple[LayerConfig, ...]
    parameters: tuple[ParameterConfig, ...]
    input_layer_names: tuple[str, ...]
    output_layer_names: tuple[str, ...]
    evaluators: tuple[EvaluatorConfig, ...] = ()
    type: str = "nn"

    def layer(self, name: str) -> LayerConfig:
        """Returns the layer of that name."""
        return next(layer for layer in self.layers if layer.name == name)

    def parameter(self, name: str) -> ParameterConfig:
        """Returns the parameter of that name."""
        return next(parameter for parameter in self.parameters if parameter.name == name)


@dataclass(frozen=True)
class OptimizationConfig:
    """`Settings`, defaults filled in."""

    batch_size: int
    algorithm: str = "async_sgd"
    async_lagged_grad_discard_ratio: float = 1.5
    learning_method: str = "momentum"
    num_batches_per_send_parameter: int = 1
    num_batches_per_get_parameter: int = 1
    center_parameter_update_method: str = "average"
    learning_rate: float = 1.0
    learning_rate_decay_a: float = 0.0
    learning_rate_decay_b: float = 0.0
    learning_rate_schedule: str = "poly"
    learning_rate_args: str = ""
    average_window: float = 0.0
    max_average_window: int | None = None
    do_average_in_cpu: bool = False
    ada_epsilon: float = 1e-6
    ada_rou: float = 0.95
    delta_add_rate: float = 1.0
    shrink_parameter_value: float = 0.0
    adam_beta1: float = 0.9
    adam_beta2: float = 0.999
    adam_epsilon: float = 1e-8


@dataclass(frozen=True)
class TrainerConfig:
    """A whole configuration: the network, its training, and the other options of Paddle's trainer."""

    model_config: ModelConfig
    opt_config: OptimizationConfig
    save_dir: str = "./output/model"
    init_model_path: str | None = None
    start_pass: int = 0
    config_args: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """Returns text that `from_json` reads back."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> TrainerConfig:
        """Returns the configuration that `to_json` wrote."""
        data = json.loads(text)
        return cls(**{**data, "model_config": _model(data["model_config"]),
                      "opt_config": OptimizationConfig(**data["opt_config"])})  # fmt: skip


def keras_name(name: str) -> str:
    """Returns the name of a layer or a parameter in Keras: paths and PyTorch do not accept every character."""
    return name.replace("/", "_").replace(".", "-")


def layer_to_json(layer: LayerConfig) -> dict[str, Any]:
    """Returns plain data that `layer_from_json` reads back."""
    told: dict[str, Any] = json.loads(json.dumps(asdict(layer)))
    return told


def layer_from_json(data: Mapping[str, Any]) -> LayerConfig:
    """Returns the layer that `layer_to_json` described."""
    inputs = tuple(InputConfig(**each) for each in data["inputs"])
    return LayerConfig(**{**data, "inputs": inputs, "operators": tuple(data["operators"])})


def parameter_from_json(data: Mapping[str, Any]) -> ParameterConfig:
    """Returns the parameter that `dataclasses.asdict` described."""
    return ParameterConfig(**{**data, "dims": tuple(data["dims"])})


def settings_names() -> tuple[str, ...]:
    """Returns all names of `Settings` for the optimization."""
    return tuple(each.name for each in fields(OptimizationConfig))


def _model(data: Mapping[str, Any]) -> ModelConfig:
    evaluators = [
        EvaluatorConfig(**{**each, "input_layers": tuple(each["input_layers"])}) for each in data["evaluators"]
    ]
    return ModelConfig(
        layers=tuple(map(layer_from_json, data["layers"])),
        parameters=tuple(map(parameter_from_json, data["parameters"])),
        input_layer_names=tuple(data["input_layer_names"]),
        output_layer_names=tuple(data["output_layer_names"]),
        evaluators=tuple(evaluators),
        type=data["type"],
    )
