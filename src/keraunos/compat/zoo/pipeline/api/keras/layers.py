"""`zoo.pipeline.api.keras.layers`: layers of Keras by their Keras 1 names and arguments. Runs on the driver.

Each function makes a Keras layer. `input_shape`, without the batch, is noted on the layer; a `Sequential` whose first
layer it is reads it there. Images have their channels first unless `dim_ordering="tf"` is given, as in Analytics Zoo.
What is not here is refused by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from keraunos.errors import JobError, one_of
from keraunos.learners.registry import use_backend

use_backend("tensorflow")

import keras  # noqa: E402 - after the backend is settled

Shape = Sequence[int | None] | int | None

_ORDERINGS = {"th": "channels_first", "tf": "channels_last"}
_INITIALIZERS = {"zero": "zeros", "one": "ones", "normal": "random_normal", "uniform": "random_uniform"}


def Input(shape: Shape = None, name: str | None = None) -> Any:
    """Where a `Model` begins."""
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
    layer = keras.layers.Dense(
        output_dim,
        activation=activation,
        use_bias=bias,
        kernel_initializer=_initializer(init),
        kernel_regularizer=W_regularizer,
        bias_regularizer=b_regularizer,
        name=name,
    )
    return _noted(layer, input_shape if input_dim is None else (input_dim,))


def Activation(activation: str, input_shape: Shape = None, name: str | None = None) -> Any:
    """A function of each element, or softmax."""
    return _noted(keras.layers.Activation(activation, name=name), input_shape)


def Dropout(p: float, input_shape: Shape = None, name: str | None = None) -> Any:
    """Drop a share `p` of the elements while training."""
    return _noted(keras.layers.Dropout(p, name=name), input_shape)


def Flatten(input_shape: Shape = None, name: str | None = None) -> Any:
    """A row as one vector."""
    return _noted(keras.layers.Flatten(name=name), input_shape)


def Reshape(target_shape: Sequence[int], input_shape: Shape = None, name: str | None = None) -> Any:
    """A row in another shape."""
    return _noted(keras.layers.Reshape(tuple(target_shape), name=name), input_shape)


def Permute(dims: Sequence[int], input_shape: Shape = None, name: str | None = None) -> Any:
    """A row with its dimensions, counted from 1, in another order."""
    return _noted(keras.layers.Permute(tuple(dims), name=name), input_shape)


def RepeatVector(n: int, input_shape: Shape = None, name: str | None = None) -> Any:
    """A vector `n` times."""
    return _noted(keras.layers.RepeatVector(n, name=name), input_shape)


def Masking(mask_value: float = 0.0, input_shape: Shape = None, name: str | None = None) -> Any:
    """Steps that later layers leave out where all elements have a value."""
    return _noted(keras.layers.Masking(mask_value, name=name), input_shape)


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
    layer = keras.layers.Embedding(
        input_dim,
        output_dim,
        embeddings_initializer=_initializer(init),
        embeddings_regularizer=W_regularizer,
        name=name,
    )
    return _noted(layer, input_shape if input_length is None else (input_length,))


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
    layer = keras.layers.BatchNormalization(
        axis=1 if _ordering(dim_ordering) == "channels_first" else -1,
        momentum=momentum,
        epsilon=epsilon,
        beta_initializer=_initializer(beta_init),
        gamma_initializer=_initializer(gamma_init),
        name=name,
    )
    return _noted(layer, input_shape)


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
    layer = keras.layers.Conv1D(
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
    return _noted(layer, input_shape)


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
    layer = keras.layers.Conv2D(
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
    return _noted(layer, input_shape)


def MaxPooling1D(
    pool_length: int = 2,
    stride: int | None = None,
    border_mode: str = "valid",
    input_shape: Shape = None,
    name: str | None = None,
) -> Any:
    """The largest of neighbouring steps."""
    return _noted(keras.layers.MaxPooling1D(pool_length, stride, border_mode, name=name), input_shape)


def AveragePooling1D(
    pool_length: int = 2,
    stride: int | None = None,
    border_mode: str = "valid",
    input_shape: Shape = None,
    name: str | None = None,
) -> Any:
    """The mean of neighbouring steps."""
    return _noted(keras.layers.AveragePooling1D(pool_length, stride, border_mode, name=name), input_shape)


def MaxPooling2D(
    pool_size: Sequence[int] = (2, 2),
    strides: Sequence[int] | None = None,
    border_mode: str = "valid",
    dim_ordering: str = "th",
    input_shape: Shape = None,
    name: str | None = None,
) -> Any:
    """The largest of neighbouring points."""
    return _noted(_pooling(keras.layers.MaxPooling2D, pool_size, strides, border_mode, dim_ordering, name), input_shape)


def AveragePooling2D(
    pool_size: Sequence[int] = (2, 2),
    strides: Sequence[int] | None = None,
    border_mode: str = "valid",
    dim_ordering: str = "th",
    input_shape: Shape = None,
    name: str | None = None,
) -> Any:
    """The mean of neighbouring points."""
    made = _pooling(keras.layers.AveragePooling2D, pool_size, strides, border_mode, dim_ordering, name)
    return _noted(made, input_shape)


def GlobalMaxPooling1D(input_shape: Shape = None, name: str | None = None) -> Any:
    """The largest of all steps."""
    return _noted(keras.layers.GlobalMaxPooling1D(name=name), input_shape)


def GlobalAveragePooling1D(input_shape: Shape = None, name: str | None = None) -> Any:
    """The mean of all steps."""
    return _noted(keras.layers.GlobalAveragePooling1D(name=name), input_shape)


def GlobalMaxPooling2D(dim_ordering: str = "th", input_shape: Shape = None, name: str | None = None) -> Any:
    """The largest of all points."""
    return _noted(keras.layers.GlobalMaxPooling2D(data_format=_ordering(dim_ordering), name=name), input_shape)


def GlobalAveragePooling2D(dim_ordering: str = "th", input_shape: Shape = None, name: str | None = None) -> Any:
    """The mean of all points."""
    return _noted(keras.layers.GlobalAveragePooling2D(data_format=_ordering(dim_ordering), name=name), input_shape)


def ZeroPadding2D(
    padding: Sequence[int] = (1, 1), dim_ordering: str = "th", input_shape: Shape = None, name: str | None = None
) -> Any:
    """Zeros around an image."""
    layer = keras.layers.ZeroPadding2D(tuple(padding), data_format=_ordering(dim_ordering), name=name)
    return _noted(layer, input_shape)


def UpSampling2D(
    size: Sequence[int] = (2, 2), dim_ordering: str = "th", input_shape: Shape = None, name: str | None = None
) -> Any:
    """Every point several times."""
    layer = keras.layers.UpSampling2D(tuple(size), data_format=_ordering(dim_ordering), name=name)
    return _noted(layer, input_shape)


def SimpleRNN(
    output_dim: int,
    activation: str = "tanh",
    return_sequences: bool = False,
    go_backwards: bool = False,
    input_shape: Shape = None,
    name: str | None = None,
) -> Any:
    """A recurrent layer."""
    layer = keras.layers.SimpleRNN(
        output_dim, activation=activation, return_sequences=return_sequences, go_backwards=go_backwards, name=name
    )
    return _noted(layer, input_shape)


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
    layer = keras.layers.LSTM(
        output_dim,
        activation=activation,
        recurrent_activation=inner_activation,
        return_sequences=return_sequences,
        go_backwards=go_backwards,
        name=name,
    )
    return _noted(layer, input_shape)


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
    layer = keras.layers.GRU(
        output_dim,
        activation=activation,
        recurrent_activation=inner_activation,
        return_sequences=return_sequences,
        go_backwards=go_backwards,
        reset_after=False,
        name=name,
    )
    return _noted(layer, input_shape)


def Bidirectional(layer: Any, merge_mode: str = "concat", input_shape: Shape = None, name: str | None = None) -> Any:
    """A recurrent layer, forwards and backwards."""
    if merge_mode not in {"concat", "sum", "mul", "ave"}:
        raise JobError(one_of("merge_mode", merge_mode, ("concat", "sum", "mul", "ave")))
    return _noted(keras.layers.Bidirectional(layer, merge_mode=merge_mode, name=name), input_shape)


def TimeDistributed(layer: Any, input_shape: Shape = None, name: str | None = None) -> Any:
    """A layer for every step."""
    return _noted(keras.layers.TimeDistributed(layer, name=name), input_shape)


def LeakyReLU(alpha: float = 0.01, input_shape: Shape = None, name: str | None = None) -> Any:
    """What is below zero, times `alpha`."""
    return _noted(keras.layers.LeakyReLU(negative_slope=alpha, name=name), input_shape)


def ELU(alpha: float = 1.0, input_shape: Shape = None, name: str | None = None) -> Any:
    """What is below zero, as `alpha` times (its exponential less 1)."""
    return _noted(keras.layers.ELU(alpha, name=name), input_shape)


def GaussianNoise(sigma: float, input_shape: Shape = None, name: str | None = None) -> Any:
    """Normal noise while training."""
    return _noted(keras.layers.GaussianNoise(sigma, name=name), input_shape)


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

# Analytics Zoo's other layers, and what does the same in a Keras model, which `Sequential.add` takes as well.
_ELSEWHERE = {
    "AtrousConvolution1D": "keras.layers.Conv1D(dilation_rate=…)",
    "AtrousConvolution2D": "keras.layers.Conv2D(dilation_rate=…)",
    "AveragePooling3D": "keras.layers.AveragePooling3D",
    "BERT": "a Keras model of it",
    "ConvLSTM2D": "keras.layers.ConvLSTM2D",
    "ConvLSTM3D": "keras.layers.ConvLSTM3D",
    "Convolution3D": "keras.layers.Conv3D",
    "Cropping1D": "keras.layers.Cropping1D",
    "Cropping2D": "keras.layers.Cropping2D",
    "Cropping3D": "keras.layers.Cropping3D",
    "Deconvolution2D": "keras.layers.Conv2DTranspose",
    "GaussianDropout": "keras.layers.GaussianDropout",
    "GlobalAveragePooling3D": "keras.layers.GlobalAveragePooling3D",
    "GlobalMaxPooling3D": "keras.layers.GlobalMaxPooling3D",
    "Highway": "a Dense gate in a Model",
    "LocallyConnected1D": "Convolution1D",
    "LocallyConnected2D": "Convolution2D",
    "MaxPooling3D": "keras.layers.MaxPooling3D",
    "MaxoutDense": "several Dense layers and merge(mode='max')",
    "PReLU": "keras.layers.PReLU",
    "SReLU": "keras.layers.PReLU",
    "SeparableConvolution2D": "keras.layers.SeparableConv2D",
    "SpatialDropout1D": "keras.layers.SpatialDropout1D",
    "SpatialDropout2D": "keras.layers.SpatialDropout2D",
    "SpatialDropout3D": "keras.layers.SpatialDropout3D",
    "ThresholdedReLU": "keras.layers.ReLU(threshold=…)",
    "TransformerLayer": "keras.layers.MultiHeadAttention",
    "UpSampling1D": "keras.layers.UpSampling1D",
    "UpSampling3D": "keras.layers.UpSampling3D",
    "WordEmbedding": "Embedding",
    "ZeroPadding1D": "keras.layers.ZeroPadding1D",
    "ZeroPadding3D": "keras.layers.ZeroPadding3D",
}


def __getattr__(name: str) -> NoReturn:
    if name in _ELSEWHERE:
        raise JobError(
            f"The layer {name!r} is not among zoo.pipeline.api.keras.layers here. Received: an import of it. Use "
            f"{_ELSEWHERE[name]}; a Sequential and a Model take any layer of Keras."
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def noted_shape(layer: Any) -> tuple[int | None, ...] | None:
    """The `input_shape` that a layer was made with."""
    return getattr(layer, "zoo_input_shape", None)


def _noted(layer: Any, input_shape: Shape) -> Any:
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
    size: Sequence[int],
    strides: Sequence[int] | None,
    border_mode: str,
    ordering: str,
    name: str | None,
) -> Any:
    return kind(
        tuple(size),
        None if strides is None else tuple(strides),
        border_mode,
        data_format=_ordering(ordering),
        name=name,
    )


def _merging(mode: str, concat_axis: int, name: str | None) -> Any:
    if mode not in _MERGES:
        raise JobError(one_of("mode", mode, _MERGES))
    kind = getattr(keras.layers, _MERGES[mode])
    if mode == "concat":
        return kind(axis=concat_axis, name=name)
    return kind(axes=-1, name=name) if mode == "dot" else kind(name=name)
