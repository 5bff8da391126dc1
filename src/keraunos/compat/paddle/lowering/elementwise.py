"""Arithmetic between the columns of rows: products, powers, similarities. Runs on the driver and on workers."""

from __future__ import annotations

from typing import Any

import keras

from keraunos.compat.paddle.lowering.arrivals import ids, shared_mask, vectors, with_bias
from keraunos.compat.paddle.lowering.call import Call, Value, lowers

ops = keras.ops


@lowers("out_prod")
def out_prod(call: Call) -> Value:
    """Returns every column of the first input times every column of the second."""
    first, second, mask = *_pair(call), shared_mask(call)
    return Value(_joined(first[..., :, None] * second[..., None, :]), mask)


@lowers("power")
def power(call: Call) -> Value:
    """Returns the second input to the power of the first, a single column."""
    exponent, tensor = _pair(call)
    return Value(ops.power(tensor, exponent), shared_mask(call))


@lowers("slope_intercept")
def slope_intercept(call: Call) -> Value:
    """`slope x + intercept`."""
    slope, intercept = float(call.attributes.get("slope", 1.0)), float(call.attributes.get("intercept", 0.0))
    return Value(slope * vectors(call, 0) + intercept, call.inputs[0].mask)


@lowers("scaling")
def scaling(call: Call) -> Value:
    """Returns the second input times the first, a single column."""
    factor, tensor = _pair(call)
    return Value(factor * tensor, shared_mask(call))


@lowers("interpolation")
def interpolation(call: Call) -> Value:
    """`w x + (1 - w) y`, where the first input is `w`, a single column."""
    share, first, second = (vectors(call, at) for at in range(3))
    return Value(share * first + (1.0 - share) * second, shared_mask(call))


@lowers("conv_shift")
def conv_shift(call: Call) -> Value:
    """Returns the first input around a circle, weighed by the second, which is centred on each column."""
    tensor, kernel = _pair(call)
    width = kernel.shape[-1]
    terms = [ops.roll(tensor, (width - 1) // 2 - at, axis=-1) * kernel[..., at : at + 1] for at in range(width)]
    return Value(sum(terms[1:], start=terms[0]), shared_mask(call))


@lowers("convex_comb")
def convex_comb(call: Call) -> Value:
    """Returns the sum of the vectors that the second input holds, weighed by the columns of the first."""
    weights, tensor = _pair(call)
    return Value(ops.einsum("...m,...ms->...s", weights, _cut(tensor, call.layer.size)), shared_mask(call))


@lowers("sum_to_one_norm")
def sum_to_one_norm(call: Call) -> Value:
    """Returns each row divided by its sum."""
    tensor = vectors(call, 0)
    return Value(tensor / ops.sum(tensor, axis=-1, keepdims=True), call.inputs[0].mask)


@lowers("cos")
def cos(call: Call) -> Value:
    """Returns the cosine between two inputs, times a scale."""
    first, second = _pair(call)
    return Value(_scale(call) * _cosine(first, second)[..., None], shared_mask(call))


@lowers("cos_vm")
def cos_vm(call: Call) -> Value:
    """Returns the cosines between the first input and each of the vectors that the second holds, times a scale."""
    first, second = _pair(call)
    several = _cut(second, first.shape[-1])
    return Value(_scale(call) * _cosine(first[..., None, :], several), shared_mask(call))


@lowers("tensor")
def tensor(call: Call) -> Value:
    """`x W_k y` for its own matrix in every column k; the matrices are stored one after the other."""
    first, second = _pair(call)
    weight = ops.reshape(call.weight(0), (call.layer.size, first.shape[-1], second.shape[-1]))
    return Value(with_bias(call, ops.einsum("...m,kmn,...n->...k", first, weight, second)), shared_mask(call))


@lowers("multiplex")
def multiplex(call: Call) -> Value:
    """Returns each row from the one of the further inputs that the first input names."""
    chosen, mask = ids(call, 0), shared_mask(call)
    several = ops.stack([vectors(call, at) for at in range(1, len(call.inputs))], axis=-2)
    return Value(ops.squeeze(ops.take_along_axis(several, chosen[..., None, None], axis=-2), axis=-2), mask)


def _pair(call: Call) -> tuple[Any, Any]:
    return vectors(call, 0), vectors(call, 1)


def _scale(call: Call) -> float:
    return float(call.attributes.get("cos_scale", 5.0))


def _cosine(first: Any, second: Any) -> Any:
    product = ops.sum(first * second, axis=-1)
    squares = ops.sum(first * first, axis=-1) * ops.sum(second * second, axis=-1)
    # A row of zeros has no direction; it gives 0, and a gradient that is a number.
    there = squares > 0
    return ops.where(there, product / ops.sqrt(ops.where(there, squares, ops.ones_like(squares))), 0.0 * product)


def _joined(tensor: Any) -> Any:
    """Returns the last two axes as one."""
    return ops.reshape(tensor, (*_leading(tensor, 2), tensor.shape[-2] * tensor.shape[-1]))


def _cut(tensor: Any, width: int) -> Any:
    """Returns the last axis as vectors of that width."""
    return ops.reshape(tensor, (*_leading(tensor, 1), tensor.shape[-1] // width, width))


def _leading(tensor: Any, but: int) -> tuple[Any, ...]:
    shape = ops.shape(tensor)
    return (-1, *shape[1 : len(shape) - but])
