"""Layers of `zoo.pipeline.api.keras.layers`: shapes, parameters and values, as Analytics Zoo documents them."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from keraunos.compat.zoo.bigdl.nn import layer as nn
from keraunos.compat.zoo.bigdl.optim.optimizer import Adam
from keraunos.compat.zoo.pipeline.api.keras import layers as zoo
from keraunos.compat.zoo.pipeline.api.keras.models import KerasNet, Model, Sequential
from keraunos.errors import JobError, ModelError

RANDOM = np.random.default_rng(0)

# layer, shape of a row, shape of its output, number of parameters
TABLE = [
    (lambda s: zoo.Dense(3, input_dim=5), (5,), (3,), 18),
    (lambda s: zoo.Dense(3, "uniform", (-0.1, 0.1), "relu", input_shape=s), (5,), (3,), 18),
    (lambda s: zoo.Dense(3, "uniform", "relu", bias=False, input_shape=s), (5,), (3,), 15),
    (lambda s: zoo.SparseDense(2, input_shape=s), (4,), (2,), 10),
    (lambda s: zoo.MaxoutDense(2, input_shape=s), (3,), (2,), 32),
    (lambda s: zoo.MaxoutDense(2, 3, bias=False, input_dim=3), (3,), (2,), 18),
    (lambda s: zoo.Highway("relu", input_shape=s), (3,), (3,), 24),
    (lambda s: zoo.RepeatVector(4, input_dim=3), (3,), (4, 3), 0),
    (lambda s: zoo.Max(2, input_shape=s), (3, 4), (3,), 0),
    (lambda s: zoo.ExpandDim(1, input_shape=s), (3, 4), (1, 3, 4), 0),
    (lambda s: zoo.SpatialDropout1D(0.4, input_shape=s), (4, 3), (4, 3), 0),
    (lambda s: zoo.SpatialDropout2D(0.4, input_shape=s), (2, 4, 3), (2, 4, 3), 0),
    (lambda s: zoo.SpatialDropout3D(0.4, "tf", input_shape=s), (2, 4, 3, 2), (2, 4, 3, 2), 0),
    (lambda s: zoo.GaussianDropout(0.4, input_shape=s), (4, 3), (4, 3), 0),
    (lambda s: zoo.Embedding(10, 3, input_length=4), (4,), (4, 3), 30),
    (lambda s: zoo.SparseEmbedding(10, 4, "mean", input_shape=s), (6,), (4,), 40),
    (lambda s: zoo.BatchNormalization(input_shape=s), (3, 12, 12), (3, 12, 12), 12),
    (lambda s: zoo.Convolution1D(8, 3, input_shape=s), (3, 4), (1, 8), 104),
    (lambda s: zoo.AtrousConvolution1D(8, 3, atrous_rate=2, input_shape=s), (8, 4), (4, 8), 104),
    (lambda s: zoo.Convolution2D(4, 2, 2, pads=(1, 0), input_shape=s), (2, 4, 4), (4, 5, 3), 36),
    (lambda s: zoo.Convolution2D(4, 3, 3, pads=(1, 1), dim_ordering="tf", input_shape=s), (4, 4, 2), (4, 4, 4), 76),
    (lambda s: zoo.AtrousConv2D(4, 2, 2, atrous_rate=(2, 2), input_shape=s), (2, 5, 4), (4, 3, 2), 36),
    (lambda s: zoo.Deconvolution2D(3, 3, 3, (None, 3, 14, 14), input_shape=s), (3, 12, 12), (3, 14, 14), 84),
    (lambda s: zoo.Deconv2D(3, 3, 3, None, subsample=(2, 2), dim_ordering="tf", input_shape=s),
     (12, 12, 3), (25, 25, 3), 84),
    (lambda s: zoo.SeparableConvolution2D(8, 3, 4, depth_multiplier=2, input_shape=s), (3, 8, 8), (8, 6, 5), 128),
    (lambda s: zoo.Convolution3D(8, 2, 1, 2, input_shape=s), (3, 6, 5, 4), (8, 5, 5, 3), 104),
    (lambda s: zoo.Conv3D(2, 3, 3, 3, border_mode="same", dim_ordering="tf", input_shape=s),
     (4, 4, 4, 1), (4, 4, 4, 2), 56),
    (lambda s: zoo.ShareConvolution2D(2, 2, 3, pad_h=1, pad_w=1, input_shape=s), (2, 3, 3), (2, 4, 3), 26),
    (lambda s: zoo.LocallyConnected1D(6, 3, input_shape=s), (8, 12), (6, 6), 1332),
    (lambda s: zoo.LocallyConnected2D(2, 2, 2, input_shape=s), (3, 4, 4), (2, 3, 3), 234),
    (lambda s: zoo.LocallyConnected2D(2, 2, 2, border_mode="same", subsample=(2, 2), dim_ordering="tf", bias=False,
                                      input_shape=s), (4, 5, 3), (2, 3, 2), 144),
    (lambda s: zoo.UpSampling1D(3, input_shape=s), (3, 4), (9, 4), 0),
    (lambda s: zoo.UpSampling3D((1, 2, 3), input_shape=s), (2, 2, 2, 2), (2, 2, 4, 6), 0),
    (lambda s: zoo.ZeroPadding1D((1, 2), input_shape=s), (3, 4), (6, 4), 0),
    (lambda s: zoo.ZeroPadding2D((1, 2, 0, 1), input_shape=s), (1, 3, 4), (1, 6, 5), 0),
    (lambda s: zoo.ZeroPadding3D(input_shape=s), (2, 2, 2, 2), (2, 4, 4, 4), 0),
    (lambda s: zoo.Cropping1D(input_shape=s), (5, 4), (3, 4), 0),
    (lambda s: zoo.Cropping2D(((1, 1), (0, 2)), input_shape=s), (2, 5, 6), (2, 3, 4), 0),
    (lambda s: zoo.Cropping3D(dim_ordering="tf", input_shape=s), (5, 4, 3, 2), (3, 2, 1, 2), 0),
    (lambda s: zoo.MaxPooling1D(2, pad=1, input_shape=s), (4, 3), (3, 3), 0),
    (lambda s: zoo.MaxPooling2D(pads=(1, 1), input_shape=s), (3, 4, 4), (3, 3, 3), 0),
    (lambda s: zoo.MaxPooling3D(input_shape=s), (2, 4, 4, 6), (2, 2, 2, 3), 0),
    (lambda s: zoo.AveragePooling3D((2, 1, 2), dim_ordering="tf", input_shape=s), (4, 3, 4, 2), (2, 3, 2, 2), 0),
    (lambda s: zoo.GlobalMaxPooling3D(input_shape=s), (2, 4, 4, 6), (2,), 0),
    (lambda s: zoo.GlobalAveragePooling3D("tf", input_shape=s), (4, 4, 6, 3), (3,), 0),
    (lambda s: zoo.ConvLSTM2D(4, 2, 2, input_shape=s), (3, 2, 5, 5), (4, 4, 4), 400),
    (lambda s: zoo.ConvLSTM2D(4, 3, 3, border_mode="same", return_sequences=True, input_shape=s),
     (3, 2, 5, 4), (3, 4, 5, 4), 880),
    (lambda s: zoo.ConvLSTM3D(2, 2, input_shape=s), (2, 2, 3, 3, 3), (2, 2, 2, 2), 264),
    (lambda s: zoo.LSTM(8, input_shape=s), (2, 3), (8,), 384),
    (lambda s: zoo.GRU(8, input_shape=s), (2, 3), (8,), 288),
    (lambda s: zoo.SimpleRNN(8, W_regularizer="l2", input_shape=s), (2, 3), (8,), 96),
    (lambda s: zoo.SReLU(input_shape=s), (2, 3), (2, 3), 24),
    (lambda s: zoo.SReLU(shared_axes=(1,), input_shape=s), (2, 3), (2, 3), 12),
    (lambda s: zoo.ThresholdedReLU(input_shape=s), (2, 3), (2, 3), 0),
    (lambda s: zoo.PReLU(input_shape=s), (3, 4), (3, 4), 1),
    (lambda s: zoo.PReLU(3, input_shape=s), (3, 4), (3, 4), 3),
    (lambda s: zoo.RReLU(input_shape=s), (3, 4), (3, 4), 0),
    (lambda s: zoo.CAdd((3, 1), input_shape=s), (3, 4), (3, 4), 3),
    (lambda s: zoo.CMul((1, 3, 1), input_shape=s), (3, 4), (3, 4), 3),
    (lambda s: zoo.Mul(input_shape=s), (3, 4), (3, 4), 1),
    (lambda s: zoo.Scale((1, 4), input_shape=s), (3, 4), (3, 4), 8),
    (lambda s: zoo.Select(1, -1, input_shape=s), (3, 4), (4,), 0),
    (lambda s: zoo.Narrow(2, 1, -1, input_shape=s), (3, 4), (3, 3), 0),
    (lambda s: zoo.Squeeze(input_shape=s), (1, 3, 1), (3,), 0),
    (lambda s: zoo.Squeeze((1, 2), input_shape=s), (1, 1, 1, 4), (1, 4), 0),
    (lambda s: zoo.LRN2D(input_shape=s), (7, 3, 3), (7, 3, 3), 0),
    (lambda s: zoo.WithinChannelLRN2D(input_shape=s), (2, 6, 6), (2, 6, 6), 0),
    (lambda s: zoo.ResizeBilinear(4, 6, dim_ordering="tf", input_shape=s), (2, 3, 1), (4, 6, 1), 0),
    (lambda s: zoo.Merge([zoo.InputLayer(input_shape=(3,)), zoo.Dense(2, input_shape=(4,))], "concat"),
     [(3,), (4,)], (5,), 10),
    (lambda s: zoo.Merge([Sequential([zoo.Dense(2, input_shape=(4,))]), zoo.InputLayer(input_shape=(2,))], "cos"),
     [(4,), (2,)], (1, 1), 10),
    (lambda s: zoo.GaussianSampler(input_shape=s), [(3,), (3,)], (3,), 0),
    (lambda s: zoo.SelectTable(1, input_shape=s), [(3,), (4,)], (4,), 0),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "shape", "expected", "parameters"), TABLE)
def test_a_layer_has_the_shape_and_the_parameters_that_it_had(layer, shape, expected, parameters):
    model = Sequential([layer(shape)]).model
    assert model.output_shape == (None, *expected)
    assert model.count_params() == parameters
    several = isinstance(shape, list)
    rows = [np.ones((2, *each), np.float32) for each in (shape if several else [shape])]
    assert model(rows if several else rows[0]).shape == (2, *expected)


def test_every_layer_survives_an_archive(tmp_path):
    for layer, shape, *_ in TABLE:
        model = Sequential([layer(shape)])
        model.save(str(tmp_path / "one.keras"), over_write=True)
        again = KerasNet.load(str(tmp_path / "one.keras"))
        several = isinstance(shape, list)
        given = [np.abs(RANDOM.normal(size=(2, *each))).astype(np.float32) for each in (shape if several else [shape])]
        given = given if several else given[0]
        assert len(again.get_weights()) == len(model.get_weights())
        if "Sampler" not in model.layers[-1].name and "sampler" not in model.layers[-1].name:
            np.testing.assert_allclose(again.model(given), model.model(given), rtol=1e-5, atol=1e-6)


X = np.array([[-2.0, -0.6, -0.5, -0.3], [0.0, 0.3, 0.5, 3.0]], np.float32)


@pytest.mark.parametrize(
    ("layer", "formula"),
    [
        (lambda: zoo.HardShrink(0.5), lambda x: np.where(np.abs(x) > 0.5, x, 0)),
        (lambda: zoo.SoftShrink(0.5), lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0)),
        (lambda: zoo.HardTanh(-0.5, 2), lambda x: np.clip(x, -0.5, 2)),
        (lambda: zoo.Threshold(0.3, -7), lambda x: np.where(x > 0.3, x, -7)),
        (lambda: zoo.BinaryThreshold(0.3), lambda x: (x > 0.3) * 1.0),
        (lambda: zoo.ThresholdedReLU(0.4), lambda x: np.where(x > 0.4, x, 0)),
        (lambda: zoo.Power(2, 3, 1), lambda x: (1 + 3 * x) ** 2),
        (zoo.Square, np.square),
        (zoo.Negative, np.negative),
        (zoo.Exp, np.exp),
        (lambda: zoo.AddConstant(1.5), lambda x: x + 1.5),
        (lambda: zoo.MulConstant(1.5), lambda x: x * 1.5),
        (lambda: zoo.RReLU(0.1, 0.3), lambda x: np.where(x > 0, x, x * 0.2)),
        (zoo.PReLU, lambda x: np.where(x > 0, x, x / 4)),
        (lambda: zoo.Max(1), lambda x: x.max(1)),
        (lambda: zoo.Max(1, return_value=False), lambda x: x.argmax(1) + 1),
        (zoo.GetShape, lambda x: np.array(x.shape)),
        (lambda: zoo.Activation("hard_sigmoid"), lambda x: np.clip(0.2 * x + 0.5, 0, 1)),
        (lambda: zoo.Activation("softmin"), lambda x: np.exp(-x) / np.exp(-x).sum(1, keepdims=True)),
        (lambda: zoo.Activation("tanh_shrink"), lambda x: x - np.tanh(x)),
    ],
    ids=itertools.count(),
)
def test_a_layer_computes_its_formula(layer, formula):
    np.testing.assert_allclose(layer()(X), formula(X), rtol=1e-5, atol=1e-6)


def weighted(layer, shape, weights):
    model = Sequential([layer])
    model.set_weights([np.asarray(each, np.float32) for each in weights])
    return model.model


def test_layers_with_weights_compute_their_formulas():
    t_left, a_left, t_right, a_right = -0.4, 0.5, 0.7, 2.0
    srelu = weighted(zoo.SReLU(input_shape=(4,)), (4,), [[each] * 4 for each in (t_left, a_left, t_right, a_right)])
    right = t_left + t_right
    middle = np.where(t_left > X, t_left + a_left * (X - t_left), X)
    np.testing.assert_allclose(
        srelu(X), np.where(right < X, right + a_right * (X - right), middle), rtol=1e-5, atol=1e-6
    )

    kernel, carry, bias, carry_bias = (RANDOM.normal(size=size) for size in ((4, 4), (4, 4), 4, 4))
    highway = Sequential([zoo.Highway("tanh", input_shape=(4,))]).model
    layer = highway.layers[-1]
    for variable, value in zip((layer.kernel, layer.carry, layer.bias, layer.carry_bias),
                               (kernel, carry, bias, carry_bias), strict=True):  # fmt: skip
        variable.assign(value)
    share = 1 / (1 + np.exp(-(X @ carry + carry_bias)))
    np.testing.assert_allclose(highway(X), share * np.tanh(X @ kernel + bias) + (1 - share) * X, rtol=1e-4, atol=1e-5)

    kernels, biases = RANDOM.normal(size=(3, 4, 2)), RANDOM.normal(size=(3, 2))
    maxout = weighted(zoo.MaxoutDense(2, 3, input_shape=(4,)), (4,), [kernels, biases])
    np.testing.assert_allclose(
        maxout(X), np.max([X @ k + b for k, b in zip(kernels, biases, strict=True)], 0), rtol=1e-4, atol=1e-5
    )

    slopes = np.array([0.1, 0.5])
    images = RANDOM.normal(size=(2, 2, 3, 3)).astype(np.float32)
    prelu = weighted(zoo.PReLU(2, input_shape=(2, 3, 3)), None, [slopes])
    np.testing.assert_allclose(
        prelu(images), np.where(images > 0, images, images * slopes.reshape(1, 2, 1, 1)), rtol=1e-5, atol=1e-6
    )


def test_local_filters_are_others_at_every_place():
    steps = RANDOM.normal(size=(2, 6, 3)).astype(np.float32)
    kernel, bias = RANDOM.normal(size=(2, 9, 4)), RANDOM.normal(size=(2, 4))
    local = weighted(zoo.LocallyConnected1D(4, 3, "relu", subsample_length=2, input_shape=(6, 3)), None,
                     [kernel, bias])  # fmt: skip
    expected = np.stack([steps[:, 2 * i : 2 * i + 3].reshape(2, 9) @ kernel[i] + bias[i] for i in range(2)], 1)
    np.testing.assert_allclose(local(steps), np.maximum(expected, 0), rtol=1e-4, atol=1e-5)
    # With the same filters everywhere it is a convolution.
    images = RANDOM.normal(size=(2, 3, 5, 4)).astype(np.float32)
    convolution = Sequential([zoo.Convolution2D(2, 2, 2, bias=False, input_shape=(3, 5, 4))])
    shared = convolution.get_weights()[0].reshape(1, 12, 2)
    local = weighted(zoo.LocallyConnected2D(2, 2, 2, bias=False, input_shape=(3, 5, 4)), None,
                     [np.repeat(shared, 12, 0)])  # fmt: skip
    np.testing.assert_allclose(local(images), convolution.model(images), rtol=1e-4, atol=1e-5)


def test_local_responses_are_normalized():
    images = RANDOM.normal(size=(2, 6, 5, 5)).astype(np.float32)
    alpha, k, beta, n = 0.3, 1.2, 0.4, 3
    padded = np.pad(images**2, ((0, 0), (1, 1), (0, 0), (0, 0)))
    sums = sum(padded[:, i : i + 6] for i in range(n))
    expected = images / (k + alpha / n * sums) ** beta
    np.testing.assert_allclose(zoo.LRN2D(alpha, k, beta, n)(images), expected, rtol=1e-4, atol=1e-5)
    last = zoo.LRN2D(alpha, k, beta, n, dim_ordering="tf")(images.transpose(0, 2, 3, 1))
    np.testing.assert_allclose(last, expected.transpose(0, 2, 3, 1), rtol=1e-4, atol=1e-5)
    # Numbers from Analytics Zoo's documentation.
    given = [[[0.96982874, 0.80581477, 0.35435895, 0.45537825], [0.61421818, 0.54708709, 0.86205409, 0.07374387],
              [0.67227822, 0.25118575, 0.36258901, 0.28671433]]]  # fmt: skip
    printed = [[[0.87259495, 0.71950066, 0.3164021, 0.42620906], [0.55263746, 0.48848635, 0.76971596, 0.06902022],
                [0.60487646, 0.22428022, 0.32375062, 0.26834887]]]  # fmt: skip
    np.testing.assert_allclose(zoo.WithinChannelLRN2D()(np.array(given, np.float32)), printed, rtol=1e-4)


def test_pads_are_no_part_of_what_is_pooled():
    images = -1 - RANDOM.random((1, 1, 2, 2)).astype(np.float32)
    for layer in (zoo.MaxPooling2D(pads=(1, 1)), zoo.AveragePooling2D(pads=(1, 1))):
        np.testing.assert_allclose(layer(images), images, rtol=1e-6)
    np.testing.assert_allclose(zoo.MaxPooling1D(2, pad=1)(images[0]), images[0], rtol=1e-6)


def test_words_have_rows(tmp_path):
    table = RANDOM.normal(size=(4, 3)).astype(np.float32)
    words = np.array([[0, 3, 1]])
    layer = zoo.Embedding(4, 3, weights=table, trainable=False, input_length=3)
    np.testing.assert_allclose(layer(words), table[words])
    assert not layer.trainable
    counted = zoo.Embedding(4, 3, weights=table, zero_based_id=False, mask_zero=True, padding_value=2)
    np.testing.assert_allclose(counted(np.array([[1, 2]])), [[table[0], np.zeros(3)]])
    file = tmp_path / "glove.txt"
    file.write_text("the 1 2\nof 3 4\n")
    assert zoo.WordEmbedding.get_word_index(str(file)) == {"the": 1, "of": 2}
    np.testing.assert_allclose(zoo.WordEmbedding(str(file))(np.array([[2, 0]])), [[[3, 4], [0, 0]]])
    mine = zoo.WordEmbedding(str(file), {"of": 1, "else": 2}, input_length=2)
    np.testing.assert_allclose(mine(np.array([[1, 2]])), [[[3, 4], [0, 0]]])
    np.testing.assert_allclose(zoo.prepare_embedding(str(file), {"of": 1}, normalize=True)[1], [0.6, 0.8])
    for combiner, by in (("sum", 1.0), ("mean", 3.0), ("sqrtn", np.sqrt(5.0))):
        sparse = zoo.SparseEmbedding(4, 3, combiner)
        sparse([words, words])
        sparse.table.assign(table)
        found = sparse([np.array([[2, 4, 0]]), np.array([[1.0, 2.0, 9.0]])])
        np.testing.assert_allclose(found, [(table[1] + 2 * table[3]) / by], rtol=1e-5)


def test_a_sparse_dense_layer_teaches_only_some_of_its_inputs():
    layer = zoo.SparseDense(1, backward_start=2, backward_length=2, init_weight=np.array([[1.0, 2, 3, 4]]))
    given = tf.constant([[1.0, 1, 1, 1]])
    with tf.GradientTape() as tape:
        tape.watch(given)
        found = layer(given)
    assert found.numpy().tolist() == [[10.0]]
    assert tape.gradient(found, given).numpy().tolist() == [[0.0, 2.0, 3.0, 0.0]]


def test_recurrent_gates_are_keras_1s():
    model = Sequential([zoo.LSTM(1, input_shape=(1, 1))])
    model.set_weights([np.ones((1, 4)), np.zeros((1, 4)), np.zeros(4)])
    gate = 0.2 * 1.0 + 0.5
    expected = gate * np.tanh(gate * np.tanh(1.0))
    np.testing.assert_allclose(model.forward(np.ones((1, 1, 1))), [[expected]], rtol=1e-5)


def test_a_transformer_and_a_bert_attend():
    transformer = zoo.TransformerLayer.init(vocab=20, hidden_size=8, n_head=2, seq_len=5, n_block=2)
    words, places = RANDOM.integers(20, size=(2, 5)), np.zeros((2, 5))
    vectors, pooled = transformer.forward([words, places])
    assert (vectors.shape, pooled.shape) == ((2, 5, 8), (2, 8))
    # Steps see those before them only.
    changed = words.copy()
    changed[:, 3:] = (changed[:, 3:] + 1) % 20
    again, _ = transformer.forward([changed, places])
    np.testing.assert_allclose(again[:, :3], vectors[:, :3], rtol=1e-4, atol=1e-5)
    assert not np.allclose(again[:, 3:], vectors[:, 3:])
    assert [each.shape for each in transformer.backward([words, places], [vectors, pooled])] == [(2, 5), (2, 5)]
    # table, per block: 2 projections, 2 Dense, 2 norms; the pooler
    assert transformer.count_params() == 20 * 8 + 2 * (9 * 24 + 9 * 8 + 9 * 32 + 33 * 8 + 32) + 72

    bert = zoo.BERT.init(vocab=20, hidden_size=8, n_head=2, seq_len=5, n_block=1, intermediate_size=6)
    mask = np.ones((2, 1, 1, 5))
    mask[..., 4] = 0
    inputs = [words, np.zeros((2, 5)), np.tile(np.arange(5), (2, 1)), mask]
    vectors, pooled = bert.forward(inputs)
    changed = words.copy()
    changed[:, 4] = (changed[:, 4] + 1) % 20
    again, _ = bert.forward([changed, *inputs[1:]])
    np.testing.assert_allclose(again[:, :4], vectors[:, :4], rtol=1e-4, atol=1e-5)
    model = Sequential([bert])
    model.add(zoo.SelectTable(1))
    model.add(zoo.Dense(2, activation="softmax"))
    assert model.model.output_shape == (None, 2)


@pytest.mark.spark
def test_layers_of_their_own_learn_on_executors(spark):
    rows = RANDOM.normal(size=(160, 2, 6, 6)).astype(np.float32)
    label = (rows[:, 0].mean((1, 2)) > 0).astype(np.int32)
    model = Sequential()
    model.add(zoo.LRN2D(input_shape=(2, 6, 6)))
    model.add(zoo.LocallyConnected2D(3, 3, 3))
    model.add(zoo.SReLU())
    model.add(zoo.BatchNormalization())
    model.add(zoo.Convolution2D(3, 2, 2, pads=(1, 1), activation="hard_sigmoid"))
    model.add(zoo.Deconvolution2D(2, 2, 2, None))
    model.add(zoo.Flatten())
    model.add(zoo.Highway("relu"))
    model.add(zoo.MaxoutDense(4))
    model.add(zoo.CMul((4,)))
    model.add(zoo.RReLU())
    model.add(zoo.Dense(2, activation="softmax"))
    model.compile(Adam(0.02), "sparse_categorical_crossentropy", ["accuracy"])
    before = model.get_weights()
    model.fit(rows, label, batch_size=32, nb_epoch=6)
    assert model.evaluate(rows, label)[1] > 0.8
    assert not np.allclose(before[0], model.get_weights()[0])
    expected = model.predict(rows, distributed=False)
    np.testing.assert_allclose(np.stack(model.predict(rows).collect()), expected, rtol=1e-3, atol=1e-4)


def test_branches_are_merged_in_every_way():
    a, b = zoo.Input((3,)), zoo.Input((3,))
    left, right = np.full((2, 3), 6.0, np.float32), np.full((2, 3), 3.0, np.float32)
    for mode, expected in (("div", 2.0), ("min", 3.0), ("dot", 54.0), ("cos", 1.0)):
        found = Model([a, b], zoo.merge([a, b], mode=mode)).predict([left, right], distributed=False)
        assert found.shape == {"dot": (2, 1), "cos": (2, 1, 1)}.get(mode, (2, 3))
        np.testing.assert_allclose(found, np.full(found.shape, expected), rtol=1e-5)


def test_the_old_packages_modules_have_their_names():
    scope = {}
    exec("from keraunos.compat.zoo.pipeline.api.keras.layers import *", scope)
    for name in ("Dense", "Conv2D", "BERT", "Merge", "merge", "Input", "np", "math", "sys", "Sequential", "Model"):
        assert name in scope
    from keraunos.compat.zoo.pipeline.api.keras.engine.topology import InputLayer, KerasNet  # noqa: F401
    from keraunos.compat.zoo.pipeline.api.keras.layers.core import Dense
    from keraunos.compat.zoo.pipeline.api.keras.layers.torch import LRN2D  # noqa: F401

    assert Dense is zoo.Dense


def test_statistics_of_batches_are_set():
    layer = zoo.BatchNormalization(epsilon=0.0, input_shape=(2,))
    layer.set_running_mean(np.array([1.0, 2.0])).set_running_std(np.array([4.0, 9.0]))
    np.testing.assert_allclose(layer.get_running_std(), [4.0, 9.0])
    found = Sequential([layer]).forward(np.array([[3.0, 5.0]], np.float32))
    np.testing.assert_allclose(found, [[1.0, 1.0]], rtol=1e-5)


def test_a_number_below_the_first_row_is_in_no_table():
    based = [({}, -1), ({"zero_based_id": False}, 0), ({"mask_zero": True, "padding_value": 2}, -1)]
    tables = [(Sequential([zoo.Embedding(5, 2, input_length=2, **each)]), wrong) for each, wrong in based]
    for table, wrong in [*tables, (nn.LookupTable(5, 2), 0), (nn.LookupTable(5, 2), 6)]:
        assert np.shape(table.forward(np.array([[2, 1]]))) == (1, 2, 2)
        with pytest.raises(tf.errors.InvalidArgumentError, match="is not in \\[0, 5\\)"):
            table.forward(np.array([[2, wrong]]))
    padded = Sequential([zoo.Embedding(5, 2, input_length=2, mask_zero=True, zero_based_id=False)])
    np.testing.assert_array_equal(padded.forward(np.array([[0, 1]]))[0, 0], [0, 0])


@pytest.mark.parametrize(
    ("layer", "share"),
    [
        (lambda: zoo.BatchNormalization(input_shape=(2, 3, 3)), 0.99),
        (lambda: zoo.BatchNormalization(momentum=0.25, input_shape=(2, 3, 3)), 0.25),
        (lambda: nn.SpatialBatchNormalization(2)._keras, 0.1),
    ],
)
def test_the_running_statistics_are_bigdls(layer, share):
    mean, variance, layer = np.zeros(2), np.ones(2), layer()
    again = type(layer).from_config(layer.get_config())
    for each in (layer, again):
        if not each.built:
            each.build((None, 2, 3, 3))
    for rows in RANDOM.normal(2.0, 3.0, size=(3, 4, 2, 3, 3)).astype(np.float32):
        mean = (1 - share) * mean + share * rows.mean((0, 2, 3))
        variance = (1 - share) * variance + share * rows.var((0, 2, 3), ddof=1)
        for each in (layer, again):
            each(rows, training=True)
            np.testing.assert_allclose(each.moving_mean, mean, rtol=1e-4)
            np.testing.assert_allclose(each.moving_variance, variance, rtol=1e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: zoo.Deconvolution2D(1, 3, 3, (None, 1, 5, 5))(np.ones((1, 1, 4, 4), np.float32)),
         "`output_shape` of Deconvolution2D must be .*6, 6"),
        (lambda: zoo.BatchNormalization(mode=1), "`mode` of BatchNormalization must be 0. Received: 1"),
        (lambda: zoo.BatchNormalization(axis=2), "`axis` of BatchNormalization must be 1"),
        (lambda: zoo.Dense(3, limits=(0, 1)), "`limits` is for init='uniform' or 'normal'"),
        (lambda: zoo.Dense(3, "normal", "relu", "l2"), "`limits` of Dense.*Give `activation`"),
        (lambda: zoo.LocallyConnected1D(3, 3, border_mode="same"), "`border_mode` must be one of 'valid'"),
        (lambda: zoo.ConvLSTM2D(3, 3, 3, dim_ordering="tf"), "`dim_ordering` of ConvLSTM2D must be 'th'"),
        (lambda: zoo.AveragePooling2D(count_include_pad=True), "`count_include_pad`.*ZeroPadding2D"),
        (lambda: zoo.SparseDense(2, init_grad_bias=np.zeros(2)), "`init_grad_weight`"),
        (lambda: zoo.Embedding(4, 3, weights=np.zeros((3, 4))), "must have the shape \\(4, 3\\)"),
        (lambda: zoo.Select(0, 1), "`dim` of Select must not be the batch"),
        (lambda: zoo.Max(1, 2), "`num_input_dims` of Max"),
        (lambda: zoo.CAdd((5,))(np.ones((2, 3), np.float32)), "must be that of a row"),
        (lambda: zoo.PReLU(4)(np.ones((2, 3), np.float32)), "`n_output_plane` of PReLU"),
        (lambda: zoo.Dense(3, W_constraint="maxnorm"), "must be one of 'name', 'bigdl_type'"),
        (lambda: zoo.Merge([zoo.Dense(3), zoo.Dense(3)]), "without `input_shape`"),
        (lambda: zoo.SparseEmbedding(3, 3, "max"), "`combiner` must be one of"),
        (lambda: zoo.BERT.init_from_existing_model("/models/bert.bigdl"), "JVM objects.*Received: '/models/bert"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused(call, message):
    with pytest.raises((JobError, ModelError), match=message):
        call()
