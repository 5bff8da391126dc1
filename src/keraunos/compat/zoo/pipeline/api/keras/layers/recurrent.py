"""`zoo.pipeline.api.keras.layers.recurrent`. Runs on the driver."""

from __future__ import annotations

from typing import Any

from keraunos.compat.zoo.pipeline.api.keras.layer_making import Shape, activation_of, made
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled

__all__ = ["GRU", "LSTM", "SimpleRNN"]


def SimpleRNN(
    output_dim: int,
    activation: Any = "tanh",
    return_sequences: bool = False,
    go_backwards: bool = False,
    W_regularizer: Any = None,
    U_regularizer: Any = None,
    b_regularizer: Any = None,
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """Returns a recurrent layer."""
    return made(
        keras.layers.SimpleRNN,
        input_shape,
        named,
        output_dim,
        activation=activation_of(activation),
        return_sequences=return_sequences,
        go_backwards=go_backwards,
        kernel_regularizer=W_regularizer,
        recurrent_regularizer=U_regularizer,
        bias_regularizer=b_regularizer,
    )


def GRU(
    output_dim: int,
    activation: Any = "tanh",
    inner_activation: Any = "hard_sigmoid",
    return_sequences: bool = False,
    go_backwards: bool = False,
    W_regularizer: Any = None,
    U_regularizer: Any = None,
    b_regularizer: Any = None,
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """Gated recurrent units, with the reset before the matrix, as in Keras 1."""
    return made(
        keras.layers.GRU,
        input_shape,
        named,
        output_dim,
        activation=activation_of(activation),
        recurrent_activation=activation_of(inner_activation),
        return_sequences=return_sequences,
        go_backwards=go_backwards,
        kernel_regularizer=W_regularizer,
        recurrent_regularizer=U_regularizer,
        bias_regularizer=b_regularizer,
        reset_after=False,
    )


def LSTM(
    output_dim: int,
    activation: Any = "tanh",
    inner_activation: Any = "hard_sigmoid",
    return_sequences: bool = False,
    go_backwards: bool = False,
    W_regularizer: Any = None,
    U_regularizer: Any = None,
    b_regularizer: Any = None,
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """Long short-term memory."""
    return made(
        keras.layers.LSTM,
        input_shape,
        named,
        output_dim,
        activation=activation_of(activation),
        recurrent_activation=activation_of(inner_activation),
        return_sequences=return_sequences,
        go_backwards=go_backwards,
        kernel_regularizer=W_regularizer,
        recurrent_regularizer=U_regularizer,
        bias_regularizer=b_regularizer,
    )
