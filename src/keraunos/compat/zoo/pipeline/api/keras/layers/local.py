"""`zoo.pipeline.api.keras.layers.local`. Runs on the driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keraunos.compat.zoo.own_layers.weighted import LocallyConnected
from keraunos.compat.zoo.pipeline.api.keras.layer_making import Shape, activation_of, border, made, ordering

__all__ = ["LocallyConnected1D", "LocallyConnected2D"]


def LocallyConnected1D(
    nb_filter: int,
    filter_length: int,
    activation: Any = None,
    border_mode: str = "valid",
    subsample_length: int = 1,
    W_regularizer: Any = None,
    b_regularizer: Any = None,
    bias: bool = True,
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """Filters over steps that are others at every step."""
    return made(
        LocallyConnected,
        input_shape,
        named,
        nb_filter,
        (filter_length,),
        (subsample_length,),
        border(border_mode, ("valid",)),
        activation=activation_of(activation),
        use_bias=bias,
        kernel_regularizer=W_regularizer,
        bias_regularizer=b_regularizer,
    )


def LocallyConnected2D(
    nb_filter: int,
    nb_row: int,
    nb_col: int,
    activation: Any = None,
    border_mode: str = "valid",
    subsample: Sequence[int] = (1, 1),
    dim_ordering: str = "th",
    W_regularizer: Any = None,
    b_regularizer: Any = None,
    bias: bool = True,
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """Filters over images that are others at every point."""
    return made(
        LocallyConnected,
        input_shape,
        named,
        nb_filter,
        (nb_row, nb_col),
        tuple(subsample),
        border(border_mode),
        ordering(dim_ordering),
        activation=activation_of(activation),
        use_bias=bias,
        kernel_regularizer=W_regularizer,
        bias_regularizer=b_regularizer,
    )
