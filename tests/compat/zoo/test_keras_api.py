"""`zoo.pipeline.api.keras`: Keras 1's names, trained by BigDL's methods; Keras runs on TensorFlow."""

import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from keraunos.compat.zoo.bigdl.optim.optimizer import AUC, SGD, Adam, Plateau, Top1Accuracy
from keraunos.compat.zoo.bigdl.util.common import Sample
from keraunos.compat.zoo.pipeline.api.keras import layers as zoo
from keraunos.compat.zoo.pipeline.api.keras import objectives
from keraunos.compat.zoo.pipeline.api.keras.models import KerasNet, Model, Sequential
from keraunos.compat.zoo.pipeline.api.keras.training import Records, split
from keraunos.compat.zoo.tfpark.tfnet import TFNet
from keraunos.errors import DataError, JobError, ModelError

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(240, 4)).astype(np.float32)
Y = (X[:, 0] + X[:, 1] > 0).astype(np.int32)


def classifier():
    model = Sequential()
    model.add(zoo.Dense(8, activation="relu", input_shape=(4,)))
    model.add(zoo.Dense(2, activation="softmax"))
    return model


@pytest.mark.parametrize(
    ("layer", "shape", "expected"),
    [
        (lambda s: zoo.Dense(3, input_dim=5), (5,), (3,)),
        (lambda s: zoo.Convolution2D(4, 3, 2, input_shape=s), (1, 8, 9), (4, 6, 8)),
        (lambda s: zoo.Conv2D(4, 3, 3, border_mode="same", subsample=(2, 2), dim_ordering="tf", input_shape=s),
         (8, 8, 1), (4, 4, 4)),
        (lambda s: zoo.Convolution1D(5, 3, input_shape=s), (10, 2), (8, 5)),
        (lambda s: zoo.MaxPooling2D(input_shape=s), (3, 8, 8), (3, 4, 4)),
        (lambda s: zoo.AveragePooling2D((4, 2), input_shape=s), (3, 8, 8), (3, 2, 4)),
        (lambda s: zoo.MaxPooling1D(input_shape=s), (6, 2), (3, 2)),
        (lambda s: zoo.AveragePooling1D(3, input_shape=s), (6, 2), (2, 2)),
        (lambda s: zoo.GlobalMaxPooling1D(input_shape=s), (6, 2), (2,)),
        (lambda s: zoo.GlobalAveragePooling1D(input_shape=s), (6, 2), (2,)),
        (lambda s: zoo.GlobalMaxPooling2D(input_shape=s), (3, 8, 8), (3,)),
        (lambda s: zoo.GlobalAveragePooling2D("tf", input_shape=s), (8, 8, 3), (3,)),
        (lambda s: zoo.ZeroPadding2D(input_shape=s), (1, 4, 4), (1, 6, 6)),
        (lambda s: zoo.UpSampling2D(input_shape=s), (1, 4, 4), (1, 8, 8)),
        (lambda s: zoo.BatchNormalization(input_shape=s), (3, 4, 4), (3, 4, 4)),
        (lambda s: zoo.Flatten(input_shape=s), (3, 4), (12,)),
        (lambda s: zoo.Reshape((6, 2), input_shape=s), (3, 4), (6, 2)),
        (lambda s: zoo.Permute((2, 1), input_shape=s), (3, 4), (4, 3)),
        (lambda s: zoo.RepeatVector(3, input_shape=s), (4,), (3, 4)),
        (lambda s: zoo.Masking(input_shape=s), (3, 4), (3, 4)),
        (lambda s: zoo.Activation("relu", input_shape=s), (4,), (4,)),
        (lambda s: zoo.Dropout(0.5, input_shape=s), (4,), (4,)),
        (lambda s: zoo.GaussianNoise(0.1, input_shape=s), (4,), (4,)),
        (lambda s: zoo.LeakyReLU(input_shape=s), (4,), (4,)),
        (lambda s: zoo.ELU(input_shape=s), (4,), (4,)),
        (lambda s: zoo.Embedding(20, 3, input_length=7), (7,), (7, 3)),
        (lambda s: zoo.SimpleRNN(3, input_shape=s), (5, 2), (3,)),
        (lambda s: zoo.LSTM(3, return_sequences=True, input_shape=s), (5, 2), (5, 3)),
        (lambda s: zoo.GRU(3, input_shape=s), (5, 2), (3,)),
        (lambda s: zoo.Bidirectional(zoo.LSTM(3), input_shape=s), (5, 2), (6,)),
        (lambda s: zoo.TimeDistributed(zoo.Dense(3), input_shape=s), (5, 2), (5, 3)),
    ],
)  # fmt: skip
def test_a_layer_gives_the_shape_that_analytics_zoos_gives(layer, shape, expected):
    model = Sequential([layer(shape)])
    assert model.model.output_shape == (None, *expected)
    given = np.zeros((2, *shape), np.float32)
    assert model.forward(given).shape == (2, *expected)


def test_branches_are_merged():
    a, b = zoo.Input((3,)), zoo.Input((3,))
    for mode, expected in (("sum", 5.0), ("mul", 6.0), ("ave", 2.5), ("max", 3.0), ("sub", -1.0)):
        model = Model([a, b], zoo.merge([a, b], mode=mode))
        found = model.predict([np.full((2, 3), 2.0), np.full((2, 3), 3.0)], distributed=False)
        np.testing.assert_allclose(found, np.full((2, 3), expected))
    assert Model([a, b], zoo.Merge(mode="concat")([a, b])).model.output_shape == (None, 6)


def test_what_is_not_here_is_refused_by_name():
    with pytest.raises(AttributeError):
        _ = zoo.Nothing
    with pytest.raises(JobError, match="`dim_ordering` must be one of 'th', 'tf'"):
        zoo.MaxPooling2D(dim_ordering="nchw")
    with pytest.raises(JobError, match="`mode` must be one of"):
        zoo.merge([], mode="cosine")
    with pytest.raises(JobError, match="`optimizer` must be one of .*Received: 'adm'. Did you mean 'adam'?"):
        classifier().compile("adm", "mse")
    with pytest.raises(ModelError, match="must be compiled"):
        classifier().fit(X, Y)
    with pytest.raises(JobError, match="`set_tensorboard` must be called"):
        classifier().get_train_summary("Loss")


@pytest.mark.parametrize("metric", ["auc", AUC(), AUC(20)])
def test_an_area_is_a_mean_over_outputs(metric):
    model = Sequential([zoo.Dense(2, activation="sigmoid", input_shape=(4,))])
    model.compile("sgd", "binary_crossentropy", [metric])
    labels = np.stack([Y, X[:, 2] > 0], 1).astype(np.float32)
    labels[:, 1] *= X[:, 3] > 0
    model.set_weights([np.array([[1, 0], [0, 0], [0, 1], [0, 0]]), np.array([0.5, -1])])
    method, found = AUC() if metric == "auc" else metric, model.predict(X, distributed=False)
    expected = np.mean([method.result(method.state(found[:, i], labels[:, i])) for i in range(2)])
    assert model.evaluate(X, labels)[1] == pytest.approx(expected, abs=1e-3)


def test_labels_that_are_no_classes_are_refused_before_they_are_trained_on():
    model = classifier()
    for loss, first in (
        ("sparse_categorical_crossentropy", 0),
        (objectives.SparseCategoricalCrossEntropy(zero_based_label=False), 1),
    ):
        model.compile(Adam(), loss)
        for wrong in (2 * first - 2, first + 2):
            with pytest.raises(DataError, match=f"a class from {first} to {first + 1}.*Received: {wrong}"):
                model.fit(X, np.where(np.arange(len(Y)) == 7, wrong, Y + first), nb_epoch=1, distributed=False)
            with pytest.raises(DataError, match=f"a class from {first} to {first + 1}.*Received: {wrong}"):
                model.evaluate(X[:1], np.array([wrong]))


@pytest.mark.parametrize(("rows", "share", "first"), [(10, 0.25, 7), (10, 0.3, 7), (7, 0.5, 3), (240, 0.1, 216)])
def test_the_rows_to_validate_on_are_those_behind_the_share_to_train_on(rows, share, first):
    trained, held = split(Records(X[:rows], Y[:rows]), share, None, 2)
    assert [len(each.arrays[0]) for each in (trained, held)] == [first, rows - first]
    np.testing.assert_array_equal(held.arrays[0], X[first:rows])


@pytest.mark.spark
def test_files_of_a_model_lie_under_any_hadoop_path(mounted, tmp_path):
    model = classifier()
    model.compile(Adam(0.05), "sparse_categorical_crossentropy")
    model.set_tensorboard(f"{mounted}/logs", "zoo")
    model.set_checkpoint(f"{mounted}/checkpoints")
    model.fit(X[:40], Y[:40], batch_size=20, nb_epoch=2, distributed=False)
    assert model.get_train_summary("Loss")[:, 0].tolist() == [2, 4]
    assert (tmp_path / "logs" / "zoo" / "train").is_dir()
    model.save(f"{mounted}/model.keras")
    with pytest.raises(JobError, match="`over_write` must be True"):
        model.save(f"{mounted}/model.keras")
    for path in (f"{mounted}/model.keras", f"{mounted}/checkpoints/model.keras", f"file:{tmp_path}/model.keras"):
        for again, expected in zip(KerasNet.load(path).get_weights(), model.get_weights(), strict=True):
            np.testing.assert_array_equal(again, expected)


def test_a_model_learns_in_a_process_of_this_machine(tmp_path):
    model = classifier()
    model.compile(Adam(0.05), "sparse_categorical_crossentropy", ["accuracy"])
    model.set_tensorboard(str(tmp_path), "zoo")
    model.set_checkpoint(str(tmp_path / "checkpoints"), over_write=False)
    model.set_gradient_clipping_by_l2_norm(5.0)
    model.fit(X, Y, batch_size=24, nb_epoch=4, validation_split=0.25, distributed=False)
    loss, accuracy = model.evaluate(X, Y)
    assert accuracy > 0.85
    assert loss < 0.5
    noted = model.get_train_summary("Loss")
    # 180 rows are 8 batches of 24 an epoch.
    assert noted[:, 0].tolist() == [8, 16, 24, 32]
    assert noted[-1, 1] < noted[0, 1]
    assert model.get_validation_summary("accuracy")[-1, 1] > 0.8
    assert sorted(each.name for each in (tmp_path / "checkpoints").iterdir()) == [
        "model.16.keras", "model.24.keras", "model.32.keras", "model.8.keras",
    ]  # fmt: skip
    model.save(str(tmp_path / "model.keras"))
    again = KerasNet.load(str(tmp_path / "model.keras"))
    assert isinstance(again, Sequential)
    np.testing.assert_allclose(
        again.predict(X, distributed=False), model.predict(X, distributed=False), rtol=1e-5, atol=1e-6
    )
    with pytest.raises(JobError, match="`over_write` must be True"):
        model.save(str(tmp_path / "model.keras"))


@pytest.mark.extended
def test_images_with_channels_first_train_as_those_with_channels_last():
    def network(ordering):
        keras.utils.set_random_seed(2)
        shape = (2, 6, 6) if ordering == "th" else (6, 6, 2)
        model = Sequential()
        model.add(zoo.Convolution2D(4, 3, 2, dim_ordering=ordering, activation="relu", input_shape=shape))
        model.add(zoo.BatchNormalization(dim_ordering=ordering))
        model.add(zoo.MaxPooling2D(dim_ordering=ordering))
        model.add(zoo.GlobalAveragePooling2D(ordering))
        model.add(zoo.Dense(2, activation="softmax"))
        model.compile(Adam(0.05), "sparse_categorical_crossentropy", ["accuracy"])
        return model

    images = np.random.default_rng(5).normal(size=(96, 2, 6, 6)).astype(np.float32)
    labels = (images[:, 0].mean((1, 2)) > 0).astype(np.int32)
    by_ordering = {"th": images, "tf": images.transpose(0, 2, 3, 1)}
    predicted = {}
    for ordering, given in by_ordering.items():
        model = network(ordering)
        # One batch: the order of rows follows from their bytes.
        model.fit(given, labels, batch_size=96, nb_epoch=6, distributed=False)
        predicted[ordering] = model.predict(given, distributed=False)
    np.testing.assert_allclose(predicted["th"], predicted["tf"], rtol=1e-3, atol=1e-4)


PROGRAM = """
from keraunos.compat import tensorflow1 as tf
import numpy as np
from keraunos.compat.zoo.bigdl.optim.optimizer import Adam
from keraunos.compat.zoo.pipeline.api.keras.layers import Dense, Dropout, Input, merge
from keraunos.compat.zoo.pipeline.api.keras.models import KerasNet, Model, Sequential
from keraunos.compat.zoo.tfpark.tfnet import TFNet

x = tf.placeholder(tf.float32, [None, 4], name="x")
w = tf.get_variable("w", [4, 8])
hidden = tf.nn.relu(tf.matmul(x, w))
session = tf.Session()
session.run(tf.global_variables_initializer())
rows = np.random.default_rng(0).normal(size=(240, 4)).astype(np.float32)
labels = (rows[:, 0] > 0).astype(np.int32)

net = TFNet.from_session(session, [x], [hidden], generate_backward=True)
np.testing.assert_allclose(net.forward(rows), session.run(hidden, {x: rows}), rtol=1e-4, atol=1e-5)
model = Sequential([net, Dropout(0.1), Dense(2, activation="softmax")])
model.compile(Adam(0.05), "sparse_categorical_crossentropy", ["accuracy"])
model.fit(rows, labels, batch_size=24, nb_epoch=4, distributed=False)
print("accuracy", model.evaluate(rows, labels)[1] > 0.8)
print("moved", not np.allclose(net.parameters()["w"]["weight"], session.run(w)))
# More than one batch.
print("rows", model.predict(rows, distributed=False).shape)

one, two = Input((4,)), Input((3,))
net = TFNet.from_session(session, [x], [hidden], generate_backward=True)
left, right = net(one), Dense(8, activation="relu", name="right")(two)
joined = merge([left, right, left + right * 0.5], mode="concat")
model = Model([one, two], Dense(2, activation="softmax")(joined))
others = np.random.default_rng(1).normal(size=(240, 3)).astype(np.float32)
labels = (rows[:, 0] + others[:, 1] > 0).astype(np.int32)
model.compile(Adam(0.05), "sparse_categorical_crossentropy", ["accuracy"])
model.fit([rows, others], labels, batch_size=24, nb_epoch=4, distributed=False)
print("accuracy", model.evaluate([rows, others], labels)[1] > 0.9)
print("moved", not np.allclose(net.parameters()["w"]["weight"], session.run(w)))
model.save("model.keras")
again = KerasNet.load("model.keras")
predicted = [each.predict([rows, others], distributed=False) for each in (model, again)]
print("loaded", type(again).__name__, np.allclose(*predicted))
# The session's program goes on as before.
print("still", session.run(tf.reduce_sum(tf.ones([3]))))
print("tensors", (x == x) is True)
"""


@pytest.mark.slow
@pytest.mark.extended
def test_a_program_for_tensorflow_1_trains_a_net_in_a_sequential_and_in_a_branch_of_a_model(tmp_path):
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == [
        "accuracy True", "moved True", "rows (240, 2)",
        "accuracy True", "moved True", "loaded Model True",
        "still 3.0", "tensors True",
    ]  # fmt: skip


@pytest.mark.spark
@pytest.mark.extended
def test_a_net_and_layers_around_it_learn_on_executors(spark):
    graph = tf.Graph()
    with graph.as_default(), tf.compat.v1.Session(graph=graph) as session:
        x = tf.compat.v1.placeholder(tf.float32, [None, 4], "x")
        hidden = tf.nn.relu(tf.matmul(x, tf.compat.v1.get_variable("w", [4, 8])))
        session.run(tf.compat.v1.global_variables_initializer())
        net = TFNet.from_session(session, [x], [hidden], generate_backward=True)
    before = net.parameters()["w"]["weight"]
    model = Sequential([net, zoo.Dense(2, activation="softmax")])
    schedule = Plateau("score", factor=0.5, patience=5, mode="max")
    model.compile(SGD(0.5, leaningrate_schedule=schedule), "sparse_categorical_crossentropy", [Top1Accuracy()])
    samples = [Sample.from_ndarray(row, np.array(label)) for row, label in zip(X, Y, strict=True)]
    rdd = spark.sparkContext.parallelize(samples, 2)
    model.fit(rdd, batch_size=24, nb_epoch=4, validation_data=(X, Y))
    assert model.evaluate(rdd)[1] > 0.85
    assert not np.allclose(net.parameters()["w"]["weight"], before)
    expected = model.predict(X, distributed=False)
    np.testing.assert_allclose(model.predict(rdd).collect(), expected, rtol=1e-4, atol=1e-5)
    assert model.predict_classes(X, 4, False).collect() == (expected.argmax(axis=1) + 1).tolist()
    with pytest.raises(JobError, match="Labels must be in the records"):
        model.fit(rdd, Y)
    with pytest.raises(DataError, match="Give `y` too"):
        model.fit(X)
