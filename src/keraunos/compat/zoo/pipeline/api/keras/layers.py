"""`zoo.pipeline.api.keras.layers`: layers of Keras by their Keras 1 names and arguments. Runs on the driver.

Each function makes a Keras layer. `input_shape`, without the batch, is noted on the layer; a `Sequential` whose first
layer it is reads it there. Images have their channels first unless `dim_ordering="tf"` is given, as in Analytics Zoo.
What is not here is refused by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from keraunos.compat.zoo.pipeline.api.keras.channels_first import TransposedConv2D
from keraunos.compat.zoo.pipeline.api.keras.elsewhere import ELSEWHERE
from keraunos.compat.zoo.tensorflow_mode import tensorflow_2
from keraunos.errors import JobError, one_of
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled

Shape = Sequence[int | None] | int | None

_ORDERINGS = {"th": "channels_first", "tf": "channels_last"}
_INITIALIZERS = {"zero": "zeros", "one": "ones", "normal": "random_normal", "uniform": "random_uniform"}


def Input(shape: Shape = None, name: str | None = None) -> Any:
    """Where a `Model` begins."""
    with tensorflow_2():
        return keras.Input(_shape(shape), name=name)


def Dense(
    output_dim: int,
    init: str = "glorot_uniform",
    activation: str | None = None,
    W_regularizer: Any = None,
    b_regularizer: Any = None,
    bias: bool = True,
    input_dim: int | None = None,
    input_shape: Shape = None,
    name: str | None = None,
) -> Any:
    """A matrix and a bias."""
    return _layer(
        keras.layers.Dense,
        input_shape if input_dim is None else (input_dim,),
        output_dim,
        activation=activation,
        use_bias=bias,
        kernel_initializer=_initializer(init),
        kernel_regularizer=W_regularizer,
        bias_regularizer=b_regularizer,
        name=name,
    )


def Activation(activation: str, input_shape: Shape = None, name: str | None = None) -> Any:
    """A function of each element, or softmax."""
    return _layer(keras.layers.Activation, input_shape, activation, name=name)


def Dropout(p: float, input_shape: Shape = None, name: str | None = None) -> Any:
    """Drop a share `p` of the elements while training."""
    return _layer(keras.layers.Dropout, input_shape, p, name=name)


def Flatten(input_shape: Shape = None, name: str | None = None) -> Any:
    """A row as one vector."""
    return _layer(keras.layers.Flatten, input_shape, name=name)


def Reshape(target_shape: Sequence[int], input_shape: Shape = None, name: str | None = None) -> Any:
    """A row in another shape."""
    return _layer(keras.layers.Reshape, input_shape, tuple(target_shape), name=name)


def Permute(dims: Sequence[int], input_shape: Shape = None, name: str | None = None) -> Any:
    """A row with its dimensions, counted from 1, in another order."""
    return _layer(keras.layers.Permute, input_shape, tuple(dims), name=name)


def RepeatVector(n: int, input_shape: Shape = None, name: str | None = None) -> Any:
    """A vector `n` times."""
    return _layer(keras.layers.RepeatVector, input_shape, n, name=name)


def Masking(mask_value: float = 0.0, input_shape: Shape = None, name: str | None = None) -> Any:
    """Steps that later layers leave out where all elements have a value."""
    return _layer(keras.layers.Masking, input_shape, mask_value, name=name)


def Embedding(
    input_dim: int,
    output_dim: int,
    init: str = "uniform",
    W_regularizer: Any = None,
    input_length: int | None = None,
    input_shape: Shape = None,
    name: str | None = None,
) -> Any:
    """A row of a table for each whole number."""
    return _layer(
        keras.layers.Embedding,
        input_shape if input_length is None else (input_length,),
        input_dim,
        output_dim,
        embeddings_initializer=_initializer(init),
        embeddings_regularizer=W_regularizer,
        name=name,
    )


def BatchNormalization(
    epsilon: float = 0.001,
    momentum: float = 0.99,
    beta_init: str = "zero",
    gamma_init: str = "one",
    dim_ordering: str = "th",
    input_shape: Shape = None,
    name: str | None = None,
) -> Any:
    """Outputs of mean 0 and variance 1 over a batch, channel by channel, then scaled and shifted."""
    return _layer(
        keras.layers.BatchNormalization,
        input_shape,
        axis=1 if _ordering(dim_ordering) == "channels_first" else -1,
        momentum=momentum,
        epsilon=epsilon,
        beta_initializer=_initializer(beta_init),
        gamma_initializer=_initializer(gamma_init),
        name=name,
    )


def Convolution1D(
    nb_filter: int,
    filter_length: int,
    init: str = "glorot_uniform",
    activation: str | None = None,
    border_mode: str = "valid",
    subsample_length: int = 1,
    W_regularizer: Any = None,
    b_regularizer: Any = None,
    bias: bool = True,
    input_shape: Shape = None,
    name: str | None = None,
) -> Any:
    """Filters over steps, whose channels come last."""
    return _layer(
        keras.layers.Conv1D,
        input_shape,
        nb_filter,
        filter_length,
        strides=subsample_length,
        padding=border_mode,
        activation=activation,
        use_bias=bias,
        kernel_initializer=_initializer(init),
        kernel_regularizer=W_regularizer,
        bias_regularizer=b_regularizer,
        name=name,
    )


def Convolution2D(
    nb_filter: int,
    nb_row: int,
    nb_col: int,
    init: str = "glorot_uniform",
    activation: str | None = None,
    border_mode: str = "valid",
    subsample: Sequence[int] = (1, 1),
    dim_ordering: str = "th",
    W_regularizer: Any = None,
    b_regularizer: Any = None,
    bias: bool = True,
    input_shape: Shape = None,
    name: str | None = None,
) -> Any:
    """Filters over images."""
    return _layer(
        TransposedConv2D if _ordering(dim_ordering) == "channels_first" else keras.layers.Conv2D,
        input_shape,
        nb_filter,
        (nb_row, nb_col),
        strides=tuple(subsample),
        padding=border_mode,
        data_format=_ordering(dim_ordering),
        activation=activation,
        use_bias=bias,
        kernel_initializer=_initializer(init),
        kernel_regularizer=W_regularizer,
        bias_regularizer=b_regularizer,
        name=name,
    )


def MaxPooling1D(
    pool_length: int = 2,
    stride: int | None = None,
    border_mode: str = "valid",
    input_shape: Shape = None,
    name: str | None = None,
) -> Any:
    """The largest of neighbouring steps."""
    return _layer(keras.layers.MaxPooling1D, input_shape, pool_length, stride, border_mode, name=name)


def AveragePooling1D(
    pool_length: int = 2,
    stride: int | None = None,
    border_mode: str = "valid",
    input_shape: Shape = None,
    name: str | None = None,
) -> Any:
    """The mean of neighbouring steps."""
    return _layer(keras.layers.AveragePooling1D, input_shape, pool_length, stride, border_mode, name=name)


def MaxPooling2D(
    pool_size: Sequence[int] = (2, 2),
    strides: Sequence[int] | None = None,
    border_mode: str = "valid",
    dim_ordering: str = "th",
    input_shape: Shape = None,
    name: str | None = None,
) -> Any:
    """The largest of neighbouring points."""
    return _pooling(keras.layers.MaxPooling2D, input_shape, pool_size, strides, border_mode, dim_ordering, name)


def AveragePooling2D(
    pool_size: Sequence[int] = (2, 2),
    strides: Sequence[int] | None = None,
    border_mode: str = "valid",
    dim_ordering: str = "th",
    input_shape: Shape = None,
    name: str | None = None,
) -> Any:
    """The mean of neighbouring points."""
    return _pooling(keras.layers.AveragePooling2D, input_shape, pool_size, strides, border_mode, dim_ordering, name)


def GlobalMaxPooling1D(input_shape: Shape = None, name: str | None = None) -> Any:
    """The largest of all steps."""
    return _layer(keras.layers.GlobalMaxPooling1D, input_shape, name=name)


def GlobalAveragePooling1D(input_shape: Shape = None, name: str | None = None) -> Any:
    """The mean of all steps."""
    return _layer(keras.layers.GlobalAveragePooling1D, input_shape, name=name)


def GlobalMaxPooling2D(dim_ordering: str = "th", input_shape: Shape = None, name: str | None = None) -> Any:
    """The largest of all points."""
    return _layer(keras.layers.GlobalMaxPooling2D, input_shape, data_format=_ordering(dim_ordering), name=name)


def GlobalAveragePooling2D(dim_ordering: str = "th", input_shape: Shape = None, name: str | None = None) -> Any:
    """The mean of all points."""
    return _layer(keras.layers.GlobalAveragePooling2D, input_shape, data_format=_ordering(dim_ordering), name=name)


def ZeroPadding2D(
    padding: Sequence[int] = (1, 1), dim_ordering: str = "th", input_shape: Shape = None, name: str | None = None
) -> Any:
    """Zeros around an image."""
    return _layer(
        keras.layers.ZeroPadding2D, input_shape, tuple(padding), data_format=_ordering(dim_ordering), name=name
    )


def UpSampling2D(
    size: Sequence[int] = (2, 2), dim_ordering: str = "th", input_shape: Shape = None, name: str | None = None
) -> Any:
    """Every point several times."""
    return _layer(keras.layers.UpSampling2D, input_shape, tuple(size), data_format=_ordering(dim_ordering), name=name)


def SimpleRNN(
    output_dim: int,
    activation: str = "tanh",
    return_sequences: bool = False,
    go_backwards: bool = False,
    input_shape: Shape = None,
    name: str | None = None,
) -> Any:
    """A recurrent layer."""
    return _layer(
        keras.layers.SimpleRNN,
        input_shape,
        output_dim,
        activation=activation,
        return_sequences=return_sequences,
        go_backwards=go_backwards,
        name=name,
    )


def LSTM(
    output_dim: int,
    activation: str = "tanh",
    inner_activation: str = "hard_sigmoid",
    return_sequences: bool = False,
    go_backwards: bool = False,
    input_shape: Shape = None,
    name: str | None = None,
) -> Any:
    """Long short-term memory."""
    return _layer(
        keras.layers.LSTM,
        input_shape,
        output_dim,
        activation=activation,
        recurrent_activation=inner_activation,
        return_sequences=return_sequences,
        go_backwards=go_backwards,
        name=name,
    )


def GRU(
    output_dim: int,
    activation: str = "tanh",
    inner_activation: str = "hard_sigmoid",
    return_sequences: bool = False,
    go_backwards: bool = False,
    input_shape: Shape = None,
    name: str | None = None,
) -> Any:
    """Gated recurrent units, with the reset before the matrix, as in Keras 1."""
    return _layer(
        keras.layers.GRU,
        input_shape,
        output_dim,
        activation=activation,
        recurrent_activation=inner_activation,
        return_sequences=return_sequences,
        go_backwards=go_backwards,
        reset_after=False,
        name=name,
    )


def Bidirectional(layer: Any, merge_mode: str = "concat", input_shape: Shape = None, name: str | None = None) -> Any:
    """A recurrent layer, forwards and backwards."""
    if merge_mode not in {"concat", "sum", "mul", "ave"}:
        raise JobError(one_of("merge_mode", merge_mode, ("concat", "sum", "mul", "ave")))
    return _layer(keras.layers.Bidirectional, input_shape, layer, merge_mode=merge_mode, name=name)


def TimeDistributed(layer: Any, input_shape: Shape = None, name: str | None = None) -> Any:
    """A layer for every step."""
    return _layer(keras.layers.TimeDistributed, input_shape, layer, name=name)


def LeakyReLU(alpha: float = 0.01, input_shape: Shape = None, name: str | None = None) -> Any:
    """What is below zero, times `alpha`."""
    return _layer(keras.layers.LeakyReLU, input_shape, negative_slope=alpha, name=name)


def ELU(alpha: float = 1.0, input_shape: Shape = None, name: str | None = None) -> Any:
    """What is below zero, as `alpha` times (its exponential less 1)."""
    return _layer(keras.layers.ELU, input_shape, alpha, name=name)


def GaussianNoise(sigma: float, input_shape: Shape = None, name: str | None = None) -> Any:
    """Normal noise while training."""
    return _layer(keras.layers.GaussianNoise, input_shape, sigma, name=name)


def merge(inputs: Sequence[Any], mode: str = "sum", concat_axis: int = -1, name: str | None = None) -> Any:
    """Several outputs as one."""
    return _merging(mode, concat_axis, name)(list(inputs))


def Merge(
    layers: Any = None,
    mode: str = "sum",
    concat_axis: int = -1,
    input_shape: Shape = None,
    name: str | None = None,
) -> Any:
    """The layer that `merge` applies."""
    if layers is not None or input_shape is not None:
        raise JobError(
            "`layers` and `input_shape` must be left out: branches are joined in a Model. Received: "
            f"{layers!r}, {input_shape!r}. Write Merge(mode=…)([a, b]) or merge([a, b], mode=…)."
        )
    return _merging(mode, concat_axis, name)


Conv1D = Convolution1D
Conv2D = Convolution2D

_MERGES = {
    "sum": "Add",
    "mul": "Multiply",
    "ave": "Average",
    "max": "Maximum",
    "min": "Minimum",
    "sub": "Subtract",
    "dot": "Dot",
    "concat": "Concatenate",
}


def __getattr__(name: str) -> NoReturn:
    if name in ELSEWHERE:
        raise JobError(
            f"The layer {name!r} is not among zoo.pipeline.api.keras.layers here. Received: an import of it. Use "
            f"{ELSEWHERE[name]}; a Sequential and a Model take any layer of Keras."
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def noted_shape(layer: Any) -> tuple[int | None, ...] | None:
    """The `input_shape` that a layer was made with."""
    return getattr(layer, "zoo_input_shape", None)


def _layer(kind: Any, input_shape: Shape, *arguments: Any, **named: Any) -> Any:
    # Some layers make variables, for random numbers, when they are made.
    with tensorflow_2():
        layer = kind(*arguments, **named)
    if input_shape is not None:
        layer.zoo_input_shape = _shape(input_shape)
    return layer


def _shape(shape: Shape) -> tuple[int | None, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape or ())


def _ordering(value: str) -> str:
    if value not in _ORDERINGS:
        raise JobError(one_of("dim_ordering", value, _ORDERINGS))
    return _ORDERINGS[value]


def _initializer(name: Any) -> Any:
    return _INITIALIZERS.get(name, name) if isinstance(name, str) else name


def _pooling(
    kind: Any,
    input_shape: Shape,
    size: Sequence[int],
    strides: Sequence[int] | None,
    border_mode: str,
    ordering: str,
    name: str | None,
) -> Any:
    strides = None if strides is None else tuple(strides)
    return _layer(kind, input_shape, tuple(size), strides, border_mode, data_format=_ordering(ordering), name=name)


def _merging(mode: str, concat_axis: int, name: str | None) -> Any:
    if mode not in _MERGES:
        raise JobError(one_of("mode", mode, _MERGES))
    kind = getattr(keras.layers, _MERGES[mode])
    if mode == "concat":
        return kind(axis=concat_axis, name=name)
    return kind(axes=-1, name=name) if mode == "dot" else kind(name=name)
