"""Shared by the layer functions: names, defaults, and the call of the raw language. On the driver."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from keraunos.compat.paddle import config_parser as raw
from keraunos.compat.paddle.language_state import current
from keraunos.compat.paddle.trainer_config_helpers.activations import BaseActivation
from keraunos.compat.paddle.trainer_config_helpers.attrs import ExtraLayerAttribute, ParameterAttribute
from keraunos.compat.paddle.trainer_config_helpers.layer_output import LayerOutput
from keraunos.errors import ModelError


def define(
    function: str,
    layer_type: str,
    name: str,
    inputs: Sequence[Any],
    parents: Iterable[LayerOutput],
    *,
    activation: BaseActivation | None = None,
    depth: int | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
    supports: tuple[str, ...] = (),
    reverse: bool | None = None,
    **arguments: Any,
) -> LayerOutput:
    """Defines a layer in the raw language. Returns its `LayerOutput`.

    Args:
        function: the layer function, for messages.
        layer_type: the raw type.
        name: the layer's.
        inputs: names, `Input`s or the raw language's projections and operators.
        parents: the layers that it reads.
        activation: for `active_type`, if the type has one.
        depth: channels of its output image.
        layer_attr: the caller's argument.
        supports: which of those this function has a meaning for.
        reverse: for the recurrent ones.
        arguments: the type's own.
    """
    if activation is not None:
        arguments["active_type"] = activation.name
    arguments.update(ExtraLayerAttribute.to_kwargs(layer_attr, function, supports))
    made = raw.Layer(name=name, type=layer_type, inputs=list(inputs), **arguments)
    return LayerOutput(
        name,
        layer_type,
        parents,
        activation=activation,
        num_filters=depth,
        size=made.size,
        reverse=reverse,
    )


def named(name: str | None, prefix: str) -> str:
    """The name given, or the next one that Paddle makes up: `__<prefix>_<n>__`, counted from 0 in each parse."""
    counts: dict[str, int] = current(prefix).extras.setdefault("trainer_config_helpers.names", {})
    if name is not None:
        return name
    counts[prefix] = counts.get(prefix, -1) + 1
    return f"__{prefix}_{counts[prefix]}__"


def parameter(param_attr: ParameterAttribute | None) -> ParameterAttribute:
    """Returns the attributes of a weight: those given, or a start by its shape."""
    if param_attr is None:
        return ParameterAttribute()
    if isinstance(param_attr, ParameterAttribute):
        return param_attr
    raise ModelError(f"`param_attr` must be a ParamAttr(…). Received: {param_attr!r}.")


def parameters(
    param_attr: ParameterAttribute | Sequence[ParameterAttribute | None] | None, count: int, function: str
) -> list[ParameterAttribute]:
    """Returns one set of attributes for each input."""
    if not isinstance(param_attr, Sequence):
        return [parameter(param_attr) for _ in range(count)]
    if len(param_attr) != count:
        raise ModelError(
            f"`param_attr` of `{function}` must be one ParamAttr for all of its {count} inputs, or one for each. "
            f"Received: {param_attr!r}."
        )
    return [parameter(each) for each in param_attr]


def parameter_or_none(attr: ParameterAttribute | bool | None, *, has_default: bool) -> ParameterAttribute | None:
    """Returns the attributes of a bias: those given, zeros to start with for `True`, none for `False`.

    Args:
        attr: the caller's argument.
        has_default: whether `None` means one that starts at zero.
    """
    if attr is True or (attr is None and has_default):
        return ParameterAttribute(initial_std=0.0, initial_mean=0.0)
    if isinstance(attr, ParameterAttribute):
        return attr
    if attr is None or attr is False:
        return None
    raise ModelError(f"A bias's attributes must be a ParamAttr(…), True, False or None. Received: {attr!r}.")


def bias(bias_attr: ParameterAttribute | bool | None, *, has_bias: bool = True) -> Any:
    """Returns the raw language's bias.

    Args:
        bias_attr: the caller's argument.
        has_bias: whether `None` means a bias.
    """
    return ParameterAttribute.to_bias(parameter_or_none(bias_attr, has_default=has_bias))


def weighted(layer: LayerOutput, attr: ParameterAttribute, **arguments: Any) -> Any:
    """Returns an input with a weight on it."""
    return raw.Input(layer.name, **arguments, **attr.attr)


def channels(layer: LayerOutput, num_channels: int | None, function: str) -> int:
    """Returns the channels of an image: those given, or those that its layer is known to have."""
    depth = layer.num_filters if num_channels is None else num_channels
    if depth is None:
        raise ModelError(
            f"`{function}` must know the channels of its input {layer.name!r}. Received: num_channels=None. "
            "Give `num_channels`, or the data layer its `height` and `width`."
        )
    return depth


def xy(value: int | Sequence[int], other: int | None) -> tuple[int, int]:
    """A length along x and along y: (x, y) if `value` is both, and the same twice where only one is given."""
    if isinstance(value, Sequence):
        if len(value) != 2:
            raise ModelError(f"A pair of lengths, along x and along y, was expected. Received: {value!r}.")
        across, down = value
        return across, down if other is None else other
    return value, value if other is None else other


def conv_settings(
    sides: tuple[int, int], stride: tuple[int, int], padding: tuple[int, int], depth: int, groups: int = 1
) -> Any:
    """Returns the raw language's convolution; lengths are along x and along y."""
    return raw.Conv(
        filter_size=sides[0],
        channels=depth,
        padding=padding[0],
        stride=stride[0],
        groups=groups,
        filter_size_y=sides[1],
        padding_y=padding[1],
        stride_y=stride[1],
    )


def conv_start(attr: ParameterAttribute, filter_size: int, depth: int) -> dict[str, Any]:
    """Returns a filter's attributes.

    A start by its shape is N(0, 2 / (filter_size² channels)), as Paddle's helpers set it.
    """
    if not attr.attr.get("initial_smart"):
        return dict(attr.attr)
    spread = (2.0 / (filter_size**2 * depth)) ** 0.5
    return {
        **attr.attr,
        "initial_mean": 0.0,
        "initial_std": spread,
        "initial_strategy": 0,
        "initial_smart": False,
    }


def names_of(layers: Iterable[LayerOutput]) -> list[str]:
    """Returns the layers' names."""
    return [layer.name for layer in layers]
