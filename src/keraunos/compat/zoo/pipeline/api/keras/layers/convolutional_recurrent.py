"""`zoo.pipeline.api.keras.layers.convolutional_recurrent`. Runs on the driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keraunos.compat.zoo.own_layers.channels_first import TransposedConvLSTM2D
from keraunos.compat.zoo.pipeline.api.keras.layer_making import Shape, activation_of, border, made, ordering
from keraunos.errors import JobError
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled

__all__ = ["ConvLSTM2D", "ConvLSTM3D"]


def ConvLSTM2D(
    nb_filter: int,
    nb_row: int,
    nb_col: int,
    activation: Any = "tanh",
    inner_activation: Any = "hard_sigmoid",
    dim_ordering: str = "th",
    border_mode: str = "valid",
    subsample: Sequence[int] = (1, 1),
    W_regularizer: Any = None,
    U_regularizer: Any = None,
    b_regularizer: Any = None,
    return_sequences: bool = False,
    go_backwards: bool = False,
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """Long short-term memory whose matrices are filters over images."""
    _channels_first("ConvLSTM2D", dim_ordering)
    return made(
        TransposedConvLSTM2D,
        input_shape,
        named,
        nb_filter,
        (nb_row, nb_col),
        strides=tuple(subsample),
        padding=border(border_mode),
        data_format="channels_last",
        activation=activation_of(activation),
        recurrent_activation=activation_of(inner_activation),
        kernel_regularizer=W_regularizer,
        recurrent_regularizer=U_regularizer,
        bias_regularizer=b_regularizer,
        return_sequences=return_sequences,
        go_backwards=go_backwards,
    )


def ConvLSTM3D(
    nb_filter: int,
    nb_kernel: int,
    dim_ordering: str = "th",
    border_mode: str = "valid",
    subsample: Sequence[int] = (1, 1, 1),
    W_regularizer: Any = None,
    U_regularizer: Any = None,
    b_regularizer: Any = None,
    return_sequences: bool = False,
    go_backwards: bool = False,
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """Long short-term memory whose matrices are filters over volumes."""
    _channels_first("ConvLSTM3D", dim_ordering)
    return made(
        keras.layers.ConvLSTM3D,
        input_shape,
        named,
        nb_filter,
        (nb_kernel, nb_kernel, nb_kernel),
        strides=tuple(subsample),
        padding=border(border_mode),
        data_format="channels_first",
        activation="tanh",
        recurrent_activation=activation_of("hard_sigmoid"),
        kernel_regularizer=W_regularizer,
        recurrent_regularizer=U_regularizer,
        bias_regularizer=b_regularizer,
        return_sequences=return_sequences,
        go_backwards=go_backwards,
    )


def _channels_first(layer: str, dim_ordering: str) -> None:
    if ordering(dim_ordering) != "channels_first":
        raise JobError(f"`dim_ordering` of {layer} must be 'th', as in Analytics Zoo. Received: {dim_ordering!r}.")
