"""Projections and operators: what a mixed layer adds up, or a concat layer puts side by side. On the driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from keraunos.compat.paddle import config_parser as raw
from keraunos.compat.paddle.trainer_config_helpers.attrs import ParameterAttribute
from keraunos.compat.paddle.trainer_config_helpers.defining import (
    channels,
    conv_settings,
    conv_start,
    parameter,
    parameter_or_none,
    xy,
)
from keraunos.compat.paddle.trainer_config_helpers.layer_output import LayerOutput, a_layer

__all__ = [
    "context_projection",
    "conv_operator",
    "conv_projection",
    "dotmul_operator",
    "dotmul_projection",
    "full_matrix_projection",
    "identity_projection",
    "scaling_projection",
    "table_projection",
    "trans_full_matrix_projection",
]


@dataclass(frozen=True)
class MixedTerm:
    """One term of a mixed layer: the raw language's object for it, and the layers that it reads."""

    raw: Any
    origin: tuple[LayerOutput, ...]


class MixedProjection(MixedTerm):
    """A term of one layer."""


class MixedOperator(MixedTerm):
    """A term of two layers, without a parameter."""


def full_matrix_projection(
    input: LayerOutput, size: int = 0, param_attr: ParameterAttribute | None = None
) -> MixedProjection:
    """Returns the rows times a matrix of `size` columns (the mixed layer's size where it is 0)."""
    return _projection(raw.FullMatrixProjection, input, "full_matrix_projection", size=size, **_words(param_attr))


def trans_full_matrix_projection(
    input: LayerOutput, size: int = 0, param_attr: ParameterAttribute | None = None
) -> MixedProjection:
    """Returns the rows times the transpose of a matrix, which another layer may share untransposed."""
    function = "trans_full_matrix_projection"
    return _projection(raw.TransposedFullMatrixProjection, input, function, size=size, **_words(param_attr))


def table_projection(
    input: LayerOutput, size: int = 0, param_attr: ParameterAttribute | None = None
) -> MixedProjection:
    """Returns the rows of a matrix that the input's ids name."""
    return _projection(raw.TableProjection, input, "table_projection", size=size, **_words(param_attr))


def identity_projection(input: LayerOutput, offset: int | None = None) -> MixedProjection:
    """Returns the rows themselves, or their part that begins at `offset` and is as wide as the mixed layer."""
    if offset is None:
        return _projection(raw.IdentityProjection, input, "identity_projection")
    return _projection(raw.IdentityOffsetProjection, input, "identity_projection", offset=offset)


def dotmul_projection(input: LayerOutput, param_attr: ParameterAttribute | None = None) -> MixedProjection:
    """Returns the rows times a weight for each column."""
    words = _words(param_attr)
    size = a_layer(input, "dotmul_projection").size
    return _projection(raw.DotMulProjection, input, "dotmul_projection", size=size, **words)


def scaling_projection(input: LayerOutput, param_attr: ParameterAttribute | None = None) -> MixedProjection:
    """Returns the rows times one weight."""
    return _projection(raw.ScalingProjection, input, "scaling_projection", **_words(param_attr))


def context_projection(
    input: LayerOutput,
    context_len: int,
    context_start: int | None = None,
    padding_attr: ParameterAttribute | bool | None = False,
) -> MixedProjection:
    """Returns each step of a sequence beside its neighbours.

    Args:
        input: a sequence.
        context_len: how many steps stand side by side.
        context_start: the first of them, counted from the step itself; by default they lie around it.
        padding_attr: what stands beyond the ends: zeros for `False`, else learned rows.
    """
    padding = parameter_or_none(padding_attr, has_default=True)
    start = -(context_len - 1) // 2 if context_start is None else context_start
    return _projection(
        raw.ContextProjection,
        input,
        "context_projection",
        context_length=context_len,
        context_start=start,
        trainable_padding=padding is not None,
        **({} if padding is None else padding.attr),
    )


def conv_projection(
    input: LayerOutput,
    filter_size: int | tuple[int, int],
    num_filters: int,
    num_channels: int | None = None,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    filter_size_y: int | None = None,
    stride_y: int | None = None,
    padding_y: int | None = None,
    groups: int = 1,
    param_attr: ParameterAttribute | None = None,
    trans: bool = False,
) -> MixedProjection:
    """Returns a convolution, or with `trans` a transposed one, without its own bias."""
    function = "conv_projection"
    depth = channels(a_layer(input, function), num_channels, function)
    width, height = xy(filter_size, filter_size_y)
    return _projection(
        raw.ConvTransProjection if trans else raw.ConvProjection,
        input,
        function,
        num_filters=num_filters,
        conv_conf=conv_settings((width, height), xy(stride, stride_y), xy(padding, padding_y), depth, groups),
        **conv_start(parameter(param_attr), width, depth),
    )


def dotmul_operator(
    a: LayerOutput | None = None,
    b: LayerOutput | None = None,
    scale: float = 1,
    x: LayerOutput | None = None,
    y: LayerOutput | None = None,
) -> MixedOperator:
    """Two layers multiplied column by column, times `scale`.

    Args:
        a: one layer.
        b: the other, of the same size.
        scale: a factor.
        x: an older name of `a`.
        y: an older name of `b`.
    """
    first, second = (x if a is None else a), (y if b is None else b)
    one, two = a_layer(first, "dotmul_operator", "a"), a_layer(second, "dotmul_operator", "b")
    return MixedOperator(raw.DotMulOperator(input_layer_names=[one.name, two.name], scale=scale), (one, two))


def conv_operator(
    img: LayerOutput,
    filter: LayerOutput,
    filter_size: int,
    num_filters: int,
    num_channels: int | None = None,
    stride: int = 1,
    padding: int = 0,
    filter_size_y: int | None = None,
    stride_y: int | None = None,
    padding_y: int | None = None,
    trans: bool = False,
) -> MixedOperator:
    """Returns a convolution of each row of `img` with filters that the same row of `filter` holds."""
    function = "conv_operator"
    image, filters = a_layer(img, function, "img"), a_layer(filter, function, "filter")
    width, height = xy(filter_size, filter_size_y)
    depth = channels(image, num_channels, function)
    made = (raw.ConvTransOperator if trans else raw.ConvOperator)(
        input_layer_names=[image.name, filters.name],
        num_filters=num_filters,
        conv_conf=conv_settings((width, height), xy(stride, stride_y), xy(padding, padding_y), depth),
    )
    return MixedOperator(made, (image, filters))


def _projection(kind: Any, input: LayerOutput, function: str, **arguments: Any) -> MixedProjection:
    layer = a_layer(input, function)
    return MixedProjection(kind(layer.name, **arguments), (layer,))


def _words(param_attr: ParameterAttribute | None) -> dict[str, Any]:
    return parameter(param_attr).attr
