"""Layers and calls of Keras 1: whether they are taken, the shape they give and the parameters they have.

`DOCUMENTED` has the examples of Keras 1.2.2's own documentation with the shapes that it prints. In `TABLE` shapes and
numbers follow from its rules and from the weights that its layers had: a Dense layer inputs * outputs + outputs, an
LSTM 4 * (outputs * (inputs + outputs + 1)), a GRU three of those, a BatchNormalization four for each feature, a
MaxoutDense nb_feature Dense layers, a Highway two as wide as its input.
"""

import keras
import numpy as np
import pytest

from keraunos.compat.keras1 import layers as L  # noqa: N812 - a short name for a long table
from keraunos.compat.keras1.constraints import maxnorm
from keraunos.compat.keras1.models import Model, Sequential
from keraunos.compat.keras1.regularizers import WeightRegularizer, l2
from keraunos.errors import JobError

# A layer, the input without its rows, the output, and how many parameters there are.
TABLE = {
    "Dense": (lambda: L.Dense(32), (16,), (32,), 16 * 32 + 32),
    "Dense by names": (
        lambda: L.Dense(output_dim=5, init="uniform", activation="tanh", W_regularizer=l2(0.01), bias=False),
        (3,),
        (5,),
        15,
    ),
    "Dense by places": (lambda: L.Dense(5, "he_normal", "relu"), (3,), (5,), 20),
    "Dense with constraints": (lambda: L.Dense(4, W_constraint=maxnorm(2), b_constraint="nonneg"), (3,), (4,), 16),
    "TimeDistributedDense": (lambda: L.TimeDistributedDense(8), (10, 16), (10, 8), 16 * 8 + 8),
    "MaxoutDense": (lambda: L.MaxoutDense(6, nb_feature=3), (5,), (6,), 3 * (5 * 6 + 6)),
    "MaxoutDense, four features": (lambda: L.MaxoutDense(6), (5,), (6,), 4 * (5 * 6 + 6)),
    "Highway": (lambda: L.Highway(activation="relu"), (7,), (7,), 2 * (7 * 7 + 7)),
    "Activation": (lambda: L.Activation("hard_sigmoid"), (4,), (4,), 0),
    "Dropout": (lambda: L.Dropout(p=0.5), (4,), (4,), 0),
    "SpatialDropout1D": (lambda: L.SpatialDropout1D(0.5), (4, 3), (4, 3), 0),
    "SpatialDropout2D": (lambda: L.SpatialDropout2D(0.5, dim_ordering="tf"), (4, 4, 3), (4, 4, 3), 0),
    "GaussianNoise": (lambda: L.GaussianNoise(sigma=0.1), (4,), (4,), 0),
    "GaussianDropout": (lambda: L.GaussianDropout(0.1), (4,), (4,), 0),
    "Masking": (lambda: L.Masking(mask_value=0.0), (4, 3), (4, 3), 0),
    "Flatten": (L.Flatten, (64, 32, 32), (65536,), 0),
    "Reshape": (lambda: L.Reshape((3, 4)), (12,), (3, 4), 0),
    "Reshape, one open": (lambda: L.Reshape((-1, 2, 2)), (12,), (3, 2, 2), 0),
    "Permute": (lambda: L.Permute((2, 1)), (10, 64), (64, 10), 0),
    "RepeatVector": (lambda: L.RepeatVector(3), (32,), (3, 32), 0),
    "Lambda": (lambda: L.Lambda(lambda x: x**2), (4,), (4,), 0),
    "Embedding": (lambda: L.Embedding(1000, 64, input_length=10), (10,), (10, 64), 64000),
    "Convolution1D": (lambda: L.Convolution1D(64, 3, border_mode="same"), (10, 32), (10, 64), 3 * 32 * 64 + 64),
    "Convolution1D, valid": (lambda: L.Convolution1D(32, 3), (10, 64), (8, 32), 3 * 64 * 32 + 32),
    "Convolution1D, subsampled": (
        lambda: L.Convolution1D(nb_filter=4, filter_length=3, subsample_length=2),
        (11, 2),
        (5, 4),
        3 * 2 * 4 + 4,
    ),
    "AtrousConvolution1D": (lambda: L.AtrousConvolution1D(64, 3, atrous_rate=2), (10, 32), (6, 64), 3 * 32 * 64 + 64),
    "Convolution2D": (
        lambda: L.Convolution2D(64, 3, 3, border_mode="same", dim_ordering="th"),
        (3, 32, 32),
        (64, 32, 32),
        3 * 3 * 3 * 64 + 64,
    ),
    "Convolution2D, valid": (lambda: L.Convolution2D(32, 5, 3), (28, 28, 1), (24, 26, 32), 5 * 3 * 32 + 32),
    "Convolution2D, subsampled": (
        lambda: L.Convolution2D(8, 3, 3, subsample=(2, 2)),
        (9, 9, 2),
        (4, 4, 8),
        3 * 3 * 2 * 8 + 8,
    ),
    "AtrousConvolution2D": (
        lambda: L.AtrousConvolution2D(64, 3, 3, atrous_rate=(2, 2), dim_ordering="tf"),
        (32, 32, 3),
        (28, 28, 64),
        3 * 3 * 3 * 64 + 64,
    ),
    "Deconvolution2D": (
        lambda: L.Deconvolution2D(3, 3, 3, output_shape=(None, 14, 14, 3)),
        (12, 12, 5),
        (14, 14, 3),
        3 * 3 * 5 * 3 + 3,
    ),
    "SeparableConvolution2D": (
        lambda: L.SeparableConvolution2D(8, 3, 3),
        (10, 10, 4),
        (8, 8, 8),
        3 * 3 * 4 + 4 * 8 + 8,
    ),
    "Convolution3D": (lambda: L.Convolution3D(4, 2, 3, 3), (6, 8, 8, 2), (5, 6, 6, 4), 2 * 3 * 3 * 2 * 4 + 4),
    "ConvLSTM2D": (
        lambda: L.ConvLSTM2D(4, 3, 3, border_mode="same"),
        (5, 6, 6, 2),
        (6, 6, 4),
        4 * (3 * 3 * 2 * 4 + 3 * 3 * 4 * 4 + 4),
    ),
    "MaxPooling1D": (lambda: L.MaxPooling1D(pool_length=3), (12, 4), (4, 4), 0),
    "AveragePooling1D": (lambda: L.AveragePooling1D(2, stride=1), (12, 4), (11, 4), 0),
    "MaxPooling2D": (lambda: L.MaxPooling2D((2, 2)), (28, 28, 3), (14, 14, 3), 0),
    "MaxPooling2D, same": (lambda: L.MaxPooling2D((2, 2), (2, 2), "same"), (7, 7, 3), (4, 4, 3), 0),
    "AveragePooling2D": (lambda: L.AveragePooling2D(pool_size=(3, 3), dim_ordering="th"), (2, 9, 9), (2, 3, 3), 0),
    "MaxPooling3D": (L.MaxPooling3D, (8, 8, 8, 2), (4, 4, 4, 2), 0),
    "AveragePooling3D": (lambda: L.AveragePooling3D((2, 2, 2)), (8, 8, 8, 2), (4, 4, 4, 2), 0),
    "GlobalMaxPooling1D": (L.GlobalMaxPooling1D, (8, 3), (3,), 0),
    "GlobalAveragePooling1D": (L.GlobalAveragePooling1D, (8, 3), (3,), 0),
    "GlobalMaxPooling2D": (lambda: L.GlobalMaxPooling2D(dim_ordering="th"), (3, 8, 8), (3,), 0),
    "GlobalAveragePooling2D": (L.GlobalAveragePooling2D, (8, 8, 3), (3,), 0),
    "UpSampling1D": (lambda: L.UpSampling1D(length=3), (4, 2), (12, 2), 0),
    "UpSampling2D": (lambda: L.UpSampling2D((2, 3)), (4, 4, 2), (8, 12, 2), 0),
    "UpSampling3D": (L.UpSampling3D, (2, 2, 2, 1), (4, 4, 4, 1), 0),
    "ZeroPadding1D": (lambda: L.ZeroPadding1D(2), (4, 2), (8, 2), 0),
    "ZeroPadding2D": (lambda: L.ZeroPadding2D((1, 2), dim_ordering="th"), (3, 4, 4), (3, 6, 8), 0),
    "ZeroPadding3D": (lambda: L.ZeroPadding3D((1, 1, 1)), (2, 2, 2, 1), (4, 4, 4, 1), 0),
    "Cropping1D": (lambda: L.Cropping1D((1, 2)), (8, 2), (5, 2), 0),
    "Cropping2D": (lambda: L.Cropping2D(((2, 2), (4, 4))), (28, 28, 3), (24, 20, 3), 0),
    "SimpleRNN": (lambda: L.SimpleRNN(6), (5, 3), (6,), 6 * (3 + 6 + 1)),
    "GRU": (lambda: L.GRU(6, return_sequences=True), (5, 3), (5, 6), 3 * 6 * (3 + 6 + 1)),
    "LSTM": (lambda: L.LSTM(32), (10, 64), (32,), 4 * 32 * (64 + 32 + 1)),
    "LSTM by names": (
        lambda: L.LSTM(
            output_dim=4,
            inner_init="orthogonal",
            forget_bias_init="zero",
            inner_activation="sigmoid",
            U_regularizer=WeightRegularizer(l2=0.1),
            dropout_W=0.1,
            dropout_U=0.1,
            consume_less="gpu",
            go_backwards=True,
        ),
        (5, 3),
        (4,),
        4 * 4 * (3 + 4 + 1),
    ),
    "BatchNormalization": (lambda: L.BatchNormalization(mode=0, axis=1), (6, 4), (6, 4), 4 * 6),
    "BatchNormalization by places": (lambda: L.BatchNormalization(1e-5, 0, -1, 0.9), (6,), (6,), 24),
    "LeakyReLU": (lambda: L.LeakyReLU(alpha=0.2), (4,), (4,), 0),
    "PReLU": (L.PReLU, (6,), (6,), 6),
    "ELU": (lambda: L.ELU(0.5), (4,), (4,), 0),
    "ThresholdedReLU": (lambda: L.ThresholdedReLU(theta=2.0), (4,), (4,), 0),
    "Bidirectional": (
        lambda: L.Bidirectional(L.LSTM(10, return_sequences=True)),
        (5, 10),
        (5, 20),
        2 * 4 * 10 * (10 + 10 + 1),
    ),
    "Bidirectional, summed": (
        lambda: L.Bidirectional(L.GRU(3), merge_mode="sum"),
        (5, 2),
        (3,),
        2 * 3 * 3 * (2 + 3 + 1),
    ),
    "TimeDistributed": (lambda: L.TimeDistributed(L.Dense(8)), (10, 16), (10, 8), 16 * 8 + 8),
}
MERGES = {
    "sum": ((4,), (4,), (4,)),
    "mul": ((4,), (4,), (4,)),
    "ave": ((4,), (4,), (4,)),
    "max": ((4,), (4,), (4,)),
    "concat": ((4,), (3,), (7,)),
    "dot": ((4,), (4,), (1,)),
    "cos": ((4,), (4,), (1,)),
}


# The examples in Keras 1.2.2's own documentation, with the shapes that it prints. Its pictures have channels first.
_FIRST = {"dim_ordering": "th"}
DOCUMENTED = {
    "Reshape": (
        lambda: [L.Reshape((3, 4), input_shape=(12,)), L.Reshape((6, 2)), L.Reshape((-1, 2, 2))],
        [(3, 4), (6, 2), (3, 2, 2)],
    ),
    "Permute": (lambda: [L.Permute((2, 1), input_shape=(10, 64))], [(64, 10)]),
    "Flatten": (
        lambda: [L.Convolution2D(64, 3, 3, border_mode="same", input_shape=(3, 32, 32), **_FIRST), L.Flatten()],
        [(64, 32, 32), (65536,)],
    ),
    "RepeatVector": (lambda: [L.Dense(32, input_dim=32), L.RepeatVector(3)], [(32,), (3, 32)]),
    "Dense": (lambda: [L.Dense(32, input_dim=16), L.Dense(32)], [(32,), (32,)]),
    "TimeDistributed": (
        lambda: [L.TimeDistributed(L.Dense(8), input_shape=(10, 16)), L.TimeDistributed(L.Dense(32))],
        [(10, 8), (10, 32)],
    ),
    "TimeDistributed of a convolution": (
        lambda: [L.TimeDistributed(L.Convolution2D(64, 3, 3, **_FIRST), input_shape=(10, 3, 299, 299))],
        [(10, 64, 297, 297)],
    ),
    "Bidirectional": (
        lambda: [
            L.Bidirectional(L.LSTM(10, return_sequences=True), input_shape=(5, 10)),
            L.Bidirectional(L.LSTM(10)),
            L.Dense(5),
        ],
        [(5, 20), (20,), (5,)],
    ),
    "Bidirectional, told within": (lambda: [L.Bidirectional(L.LSTM(10, input_shape=(5, 10)))], [(20,)]),
    "LSTM": (
        lambda: [L.LSTM(32, return_sequences=True, input_shape=(10, 64)), L.LSTM(16)],
        [(10, 32), (16,)],
    ),
    "LSTM by length and dimension": (lambda: [L.LSTM(32, input_dim=64, input_length=10)], [(32,)]),
    "Embedding": (lambda: [L.Embedding(1000, 64, input_length=10)], [(10, 64)]),
    "Convolution1D": (
        lambda: [
            L.Convolution1D(64, 3, border_mode="same", input_shape=(10, 32)),
            L.Convolution1D(32, 3, border_mode="same"),
        ],
        [(10, 64), (10, 32)],
    ),
    "AtrousConvolution1D": (
        lambda: [
            L.AtrousConvolution1D(64, 3, atrous_rate=2, border_mode="same", input_shape=(10, 32)),
            L.AtrousConvolution1D(32, 3, atrous_rate=2, border_mode="same"),
        ],
        [(10, 64), (10, 32)],
    ),
    "Convolution2D": (
        lambda: [
            L.Convolution2D(64, 3, 3, border_mode="same", input_shape=(3, 256, 256), **_FIRST),
            L.Convolution2D(32, 3, 3, border_mode="same", **_FIRST),
        ],
        [(64, 256, 256), (32, 256, 256)],
    ),
    "AtrousConvolution2D": (
        lambda: [
            L.AtrousConvolution2D(64, 3, 3, atrous_rate=(2, 2), input_shape=(3, 256, 256), **_FIRST)
        ],
        [(64, 252, 252)],
    ),
    "Deconvolution2D": (
        lambda: [
            L.Deconvolution2D(
                3, 3, 3, output_shape=(None, 3, 14, 14), border_mode="valid", input_shape=(3, 12, 12), **_FIRST
            )
        ],
        [(3, 14, 14)],
    ),
    "Cropping2D": (
        lambda: [
            L.Cropping2D(cropping=((2, 2), (4, 4)), input_shape=(3, 28, 28), **_FIRST),
            L.Convolution2D(64, 3, 3, border_mode="same", **_FIRST),
            L.Cropping2D(cropping=((2, 2), (2, 2)), **_FIRST),
        ],
        [(3, 24, 20), (64, 24, 20), (64, 20, 16)],
    ),
}  # fmt: skip


def _deconvolution():
    return L.Deconvolution2D(3, 3, 3, (None, 9, 9, 3), input_shape=(12, 12, 5))


def _own_layer():
    class Mine(L.Layer):
        pass

    return Mine


REFUSED = {
    "activity_regularizer": (lambda: L.Dense(3, activity_regularizer="l2"), "activity_regularizer"),
    "border_mode full": (lambda: L.Convolution1D(3, 3, border_mode="full"), "'full'"),
    "mode of BatchNormalization": (lambda: L.BatchNormalization(mode=1), "`mode`"),
    "dropout of Embedding": (lambda: L.Embedding(10, 3, dropout=0.2), "`dropout`"),
    "LocallyConnected2D": (lambda: L.LocallyConnected2D(3, 3, 3), "LocallyConnected2D"),
    "SReLU": (L.SReLU, "SReLU"),
    "Keras 0's Dense": (lambda: L.Dense(784, 128), "--keras 0"),
    "unknown init": (lambda: L.Dense(3, init="glorot"), "'glorot_uniform'"),
    "unknown argument": (lambda: L.Dense(3, units=4), "no argument 'units'"),
    "an output of another shape": (lambda: Sequential([_deconvolution()]), "14"),
    "Merge of models": (lambda: L.Merge([Sequential(), Sequential()], mode="concat"), "first layer"),
    "a function as mode": (lambda: L.merge([L.Input((3,)), L.Input((3,))], mode=lambda x: x), "Lambda"),
    "channels at an unsaid end": (lambda: L.Convolution2D(8, 3, 3, input_shape=(1, 28, 28)), "nothing says where"),
    "a class of one's own": (_own_layer, "cannot inherit"),
}  # fmt: skip


def test_there_are_sixty():
    assert len(TABLE) >= 60


@pytest.mark.parametrize("name", TABLE)
def test_a_layer_has_the_shape_and_the_parameters_of_keras_1(name):
    make, given, expected, parameters = TABLE[name]
    layer = make()
    assert isinstance(layer, keras.layers.Layer)
    tensor = L.Input(shape=given)
    model = Model(input=tensor, output=layer(tensor))
    assert model.output_shape == (None, *expected)
    assert model.count_params() == parameters


@pytest.mark.parametrize("name", DOCUMENTED)
def test_an_example_of_the_documentation_has_its_shapes(name):
    make, expected = DOCUMENTED[name]
    model = Sequential()
    for layer, shape in zip(make(), expected, strict=True):
        model.add(layer)
        assert model.output_shape == (None, *shape)


@pytest.mark.parametrize("mode", MERGES)
def test_merge(mode):
    one, other, expected = MERGES[mode]
    left, right = L.Input(shape=one), L.Input(shape=other)
    model = Model(input=[left, right], output=L.merge([left, right], mode=mode))
    x, y = np.full((1, *one), 2.0), np.full((1, *other), 3.0)
    found = model.predict([x, y])
    assert found.shape == (1, *expected)
    value = {"sum": 5, "mul": 6, "ave": 2.5, "max": 3, "concat": 2, "dot": 24, "cos": 1}[mode]
    assert found.ravel()[0] == pytest.approx(value, rel=1e-5)
    assert L.Merge(mode=mode)([left, right]).shape == (None, *expected)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_kept_is_refused_by_name(name):
    make, told = REFUSED[name]
    with pytest.raises(JobError, match=told):
        make()
