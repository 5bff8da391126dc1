"""Arithmetic with layers: `+`, `-`, `*` between them and with numbers, and functions of one. On the driver."""

from __future__ import annotations

from keraunos.compat.paddle.trainer_config_helpers.activations import (
    AbsActivation,
    BaseActivation,
    ExpActivation,
    LogActivation,
    ReluActivation,
    SigmoidActivation,
    SquareActivation,
    TanhActivation,
)
from keraunos.compat.paddle.trainer_config_helpers.defining import named
from keraunos.compat.paddle.trainer_config_helpers.layer_output import LayerOutput, a_layer
from keraunos.compat.paddle.trainer_config_helpers.mixed_layers import mixed_layer
from keraunos.compat.paddle.trainer_config_helpers.projections import identity_projection
from keraunos.compat.paddle.trainer_config_helpers.sequence_layers import repeat_layer
from keraunos.compat.paddle.trainer_config_helpers.vector_layers import scaling_layer, slope_intercept_layer
from keraunos.errors import ModelError

__all__ = ["abs", "add", "exp", "log", "mul", "relu", "rsub", "sigmoid", "square", "sub", "tanh"]


def exp(input: LayerOutput, name: str | None = None) -> LayerOutput:
    """Returns the exponential."""
    return _through(ExpActivation(), input, name, "exp")


def log(input: LayerOutput, name: str | None = None) -> LayerOutput:
    """Returns the natural logarithm."""
    return _through(LogActivation(), input, name, "log")


def abs(input: LayerOutput, name: str | None = None) -> LayerOutput:  # noqa: A001  (Paddle's name)
    """Returns the absolute value."""
    return _through(AbsActivation(), input, name, "abs")


def sigmoid(input: LayerOutput, name: str | None = None) -> LayerOutput:
    """Returns the logistic function."""
    return _through(SigmoidActivation(), input, name, "sigmoid")


def tanh(input: LayerOutput, name: str | None = None) -> LayerOutput:
    """Returns the hyperbolic tangent."""
    return _through(TanhActivation(), input, name, "tanh")


def square(input: LayerOutput, name: str | None = None) -> LayerOutput:
    """Returns the square."""
    return _through(SquareActivation(), input, name, "square")


def relu(input: LayerOutput, name: str | None = None) -> LayerOutput:
    """Returns the positive part."""
    return _through(ReluActivation(), input, name, "relu")


def add(layeroutput: LayerOutput, other: LayerOutput | float) -> LayerOutput:
    """Returns a layer and a number, or two layers of one size; one that is one wide is added to every column."""
    if isinstance(other, int | float):
        return slope_intercept_layer(layeroutput, intercept=float(other))
    one, two = layeroutput, a_layer(other, "+", "the other side")
    if one.size != two.size:
        if 1 not in (one.size, two.size):
            raise ModelError(
                f"Layers are added if their sizes are equal or one of them is 1. Received: {one!r} and {two!r}."
            )
        one, two = (repeat_layer(one, two.size), two) if one.size == 1 else (one, repeat_layer(two, one.size))
    return mixed_layer(input=[identity_projection(one), identity_projection(two)])


def sub(layeroutput: LayerOutput, other: LayerOutput | float) -> LayerOutput:
    """Returns a layer less a number or another layer, by the rules of `add`."""
    if isinstance(other, int | float):
        return add(layeroutput, -other)
    return add(layeroutput, slope_intercept_layer(a_layer(other, "-", "the other side"), slope=-1.0))


def rsub(layeroutput: LayerOutput, other: LayerOutput | float) -> LayerOutput:
    """Returns a number or another layer, less the layer."""
    return add(slope_intercept_layer(layeroutput, slope=-1.0), other)


def mul(layeroutput: LayerOutput, other: LayerOutput | float) -> LayerOutput:
    """Returns a layer times a number, or times a layer that is one wide."""
    if isinstance(other, int | float):
        return slope_intercept_layer(layeroutput, slope=float(other))
    one, two = layeroutput, a_layer(other, "*", "the other side")
    if one.size == 1:
        return scaling_layer(two, one)
    if two.size == 1:
        return scaling_layer(one, two)
    raise ModelError(
        f"`*` takes a number or a layer that is one wide. Received: {one!r} and {two!r}. For a product by columns "
        "write mixed_layer(input=dotmul_operator(a, b))."
    )


def _through(act: BaseActivation, input: LayerOutput, name: str | None, prefix: str) -> LayerOutput:
    return mixed_layer(input=identity_projection(input), name=named(name, prefix), act=act)
