"""`zoo.pipeline.api.net` and parts of models by name; losses and optim methods of Analytics Zoo's own."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keraunos.compat.zoo.bigdl.optim.optimizer import Adam, Poly
from keraunos.compat.zoo.bigdl.util.common import Sample
from keraunos.compat.zoo.pipeline.api.keras import layers as zoo
from keraunos.compat.zoo.pipeline.api.keras import metrics, objectives, optimizers, regularizers
from keraunos.compat.zoo.pipeline.api.keras.models import Model, Sequential
from keraunos.compat.zoo.pipeline.api.net import Net
from keraunos.compat.zoo.util.tf import export_tf
from keraunos.errors import JobError, ModelError

v1 = tf.compat.v1
close = {"rtol": 1e-4, "atol": 1e-6}
X = np.random.default_rng(0).normal(size=(120, 4)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int32)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A folder with a graph of two layers, and what the layers give."""
    folder = tmp_path_factory.mktemp("net")
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(1)
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        given = [(4, 8, "one"), (8, 3, "two")]
        found = x
        for rows, columns, name in given:
            kernel, bias = v1.get_variable(f"{name}/w", [rows, columns]), v1.get_variable(f"{name}/b", [columns])
            found = tf.nn.relu(tf.nn.bias_add(tf.matmul(found, kernel), bias, name=f"{name}/add"), name=f"{name}/relu")
        session.run(v1.global_variables_initializer())
        export_tf(session, str(folder), [x], [found])
        return str(folder), *session.run(["one/relu:0", "two/relu:0"], {x: X})


def weights(net):
    return {name: each["weight"].copy() for name, each in net.parameters().items()}


@pytest.mark.spark
def test_frozen_weights_stay_to_the_bit_in_a_fit_and_its_rows_are_measured_by_workers(spark, exported, tmp_path):
    folder, one, two = exported
    net = Net.load_tf(folder)
    np.testing.assert_allclose(net.forward(X), two, **close)
    np.testing.assert_allclose(net.new_graph("one/relu").forward(X), one, **close)
    net.freeze_up_to(["one/relu"])
    before = weights(net)
    keras.utils.set_random_seed(1)
    row = zoo.Input((4,))
    model = Model(row, zoo.Dense(2, activation="softmax", name="out")(net.to_keras()(row)))
    model.compile(Adam(0.05), objectives.SparseCategoricalCrossEntropy(), [metrics.Accuracy()])
    model.set_tensorboard(str(tmp_path), "net")
    samples = [Sample.from_ndarray(row, np.array(label)) for row, label in zip(X, Y, strict=True)]
    rdd = spark.sparkContext.parallelize(samples, 2)
    model.fit(rdd, batch_size=24, nb_epoch=8, validation_data=rdd)
    moved = {name: not np.array_equal(value, before[name]) for name, value in weights(net).items()}
    assert moved == {"one/w": False, "one/b": False, "two/w": True, "two/b": True}
    loss, accuracy = model.evaluate(rdd)
    assert accuracy > 0.8
    np.testing.assert_allclose(model.get_validation_summary("Top1Accuracy")[-1, 1], accuracy, rtol=1e-5)
    np.testing.assert_allclose(model.get_validation_summary("Loss")[-1, 1], loss, rtol=1e-4)
    np.testing.assert_allclose(model.evaluate(X, Y), [loss, accuracy], rtol=1e-4)


def test_a_graph_knows_its_operations(exported):
    net = Net.load_tf(exported[0])
    trained = lambda: [weight.name for weight in net.trainable_weights]  # noqa: E731 - asked several times
    net.freeze("two/add")
    assert trained() == ["one.w", "one.b", "two.w"]
    assert [each.name for each in net.new_graph(["two/relu"]).trainable_weights] == trained()
    net.unfreeze()
    assert len(trained()) == 4
    with pytest.raises(ModelError, match="An operation of the graph must be named. Received: 'three'"):
        net.new_graph(["three"])
    for name in ("bigdl", "torch", "caffe"):
        with pytest.raises(JobError, match=f"Net.load_{name} must be replaced"):
            getattr(Net, f"load_{name}")("file", "other")


def test_layers_are_found_frozen_and_cut_off_by_name(tmp_path):
    row = zoo.Input((4,))
    first = zoo.Dense(6, name="a")(row)
    model = Model(row, [zoo.Dense(2, name="c")(zoo.Dense(5, name="b")(first)), zoo.Dense(1, name="d")(first)])
    frozen = lambda: [each.name for each in model.layers if each.weights and not each.trainable]  # noqa: E731 - asked several times
    model.freeze_up_to("b")
    assert frozen() == ["a", "b"]
    model.unfreeze(["a"])
    assert frozen() == ["b"]
    model.unfreeze()
    model.freeze(["d"])
    assert frozen() == ["d"]
    part = model.new_graph(["b"])
    assert part.get_output_shape() == (None, 5)
    np.testing.assert_allclose(part.forward(X), model.get_layer("b")(model.get_layer("a")(X)), rtol=1e-4, atol=1e-5)
    outer = Sequential([zoo.Dense(4, input_shape=(4,)), part])
    assert [each.name for each in outer.flattened_layers() if each.weights][1:] == ["a", "b"]
    with pytest.raises(ModelError, match="A layer must be named as one of the model's.*Received: 'z'"):
        model.get_layer("z")
    part.saveModel(str(tmp_path / "model"), str(tmp_path / "weights"))
    expected = part.forward(X)
    part.set_weights([np.zeros_like(each) for each in part.get_weights()])
    part.saveModel(str(tmp_path / "model"), over_write=True)
    np.testing.assert_allclose(Net.load(str(tmp_path / "model")).forward(X), np.zeros((120, 5)))
    np.testing.assert_allclose(Net.load(str(tmp_path / "model"), str(tmp_path / "weights")).forward(X), expected)


def test_models_of_keras_are_loaded(tmp_path):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="relu")])
    (tmp_path / "model.json").write_text(model.to_json())
    model.save(tmp_path / "model.h5")
    model.save_weights(tmp_path / "model.weights.h5")
    assert isinstance(Net.load_keras(json_path=str(tmp_path / "model.json")), Sequential)
    whole = Net.load_keras(hdf5_path=str(tmp_path / "model.h5"))
    both = Net.load_keras(str(tmp_path / "model.json"), str(tmp_path / "model.weights.h5"))
    for each in (whole, both):
        np.testing.assert_allclose(each.forward(X), model.predict(X, verbose=0), **close)
    with pytest.raises(JobError, match="`json_path` must be given"):
        Net.load_keras()


SIGNS, OUT = np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([[0.3, 0.6], [0.9, 0.2]])


@pytest.mark.parametrize(
    ("loss", "labels", "expected"),
    [
        ("hinge", SIGNS, np.maximum(1 - SIGNS * OUT, 0).mean()),
        (objectives.Hinge(0.5), SIGNS, np.maximum(0.5 - SIGNS * OUT, 0).mean()),
        ("squared_hinge", SIGNS, (np.maximum(1 - SIGNS * OUT, 0) ** 2).sum()),
        ("rank_hinge", SIGNS, np.maximum(OUT[:, 1] - OUT[:, 0] + 1, 0).mean()),
        ("mse", SIGNS, ((SIGNS - OUT) ** 2).mean()),
        (objectives.mse(size_average=False), SIGNS, ((SIGNS - OUT) ** 2).sum()),
        (objectives.MeanAbsoluteError(), SIGNS, np.abs(SIGNS - OUT).mean()),
        (objectives.mape(), SIGNS, 100 * np.abs(SIGNS - OUT).mean()),
        (objectives.Poisson(), OUT, (OUT - OUT * np.log(OUT)).mean()),
        ("kld", OUT, 0.0),
        (objectives.msle(), OUT * 2, ((np.log(OUT * 2 + 1) - np.log(OUT + 1)) ** 2).mean()),
        ("cosine", OUT, -0.5),
        (objectives.BinaryCrossEntropy(), OUT > 0.5, -np.log([0.7, 0.6, 0.9, 0.8]).mean()),
        (objectives.SparseCategoricalCrossEntropy(), [1, 0], -np.log([0.6, 0.9]).mean()),
        (objectives.SparseCategoricalCrossEntropy(zero_based_label=False), [2, 1], -np.log([0.6, 0.9]).mean()),
        (objectives.SparseCategoricalCrossEntropy(log_prob_as_input=True), [1, 0], -np.mean([0.6, 0.9])),
        (objectives.SparseCategoricalCrossEntropy(), [1, -1], -np.log(0.6)),
        ("sparse_categorical_crossentropy", [1, -1], -np.log(0.6)),
        (objectives.SparseCategoricalCrossEntropy(), [1, 2], np.nan),
        (objectives.SparseCategoricalCrossEntropy(zero_based_label=False), [1, 0], np.nan),
    ],
)  # fmt: skip
def test_a_loss_has_analytics_zoos_formula(loss, labels, expected):
    found = keras.losses.get(objectives.loss_of(loss))
    value = found(np.asarray(labels, np.float32), OUT.astype(np.float32))
    # Keras takes a function's mean itself.
    np.testing.assert_allclose(np.mean(value), expected, rtol=1e-4, atol=1e-6)
    if isinstance(found, objectives.LossFunction):
        again = keras.losses.deserialize(keras.losses.serialize(found))
        np.testing.assert_allclose(again(np.asarray(labels, np.float32), OUT.astype(np.float32)), value)


def test_what_cannot_be_kept_is_refused():
    with pytest.raises(JobError, match="`weights` must be None"):
        objectives.SparseCategoricalCrossEntropy(weights=np.ones(2))
    assert metrics.Top5Accuracy(zero_based_label=True).name == "Top5Accuracy"
    with pytest.raises(JobError, match="`zero_based_label` must be True"):
        metrics.Top5Accuracy(False)
    with pytest.raises(JobError, match="RankHinge must be given pairs"):
        objectives.RankHinge()(np.zeros((2, 3)), np.zeros((2, 3)))
    with pytest.raises(JobError, match="`PolyEpochDecay` must be replaced"):
        optimizers.PolyEpochDecay(0.5, 5)
    with pytest.raises(JobError, match="`save` must be called on"):
        optimizers.Adam().save("method")


def stepped(method, rows, labels, steps):
    """A weight and its steps, by a model of one product whose loss is half the squared error."""
    model = Sequential([zoo.Dense(1, bias=False, init="one", input_shape=(1,))])
    model.compile(method, "mse")
    model.fit(rows, labels, batch_size=len(rows), nb_epoch=steps, distributed=False)
    return float(model.get_weights()[0][0, 0])


def test_the_adams_take_analytics_zoos_steps():
    rows, labels = np.array([[1.0], [2.0]], np.float32), np.array([[3.0], [1.0]], np.float32)
    gradient = lambda w: float((2 * (rows * w - labels) * rows).mean())  # noqa: E731 - the mean square's
    for rate, decay, weighted in ((lambda n: 0.1 * (1 - n / 4) ** 2, 0.3, False), (lambda n: 0.1, 0.2, True)):
        w, m, v = 1.0, 0.0, 0.0
        for n in range(3):
            g = gradient(w) + (0.0 if weighted else decay * w)
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            size = 1.0 if weighted else np.sqrt(1 - 0.999 ** (n + 1)) / (1 - 0.9 ** (n + 1))
            w -= rate(n) * (size * m / (np.sqrt(v) + 1e-6) + (decay * w if weighted else 0.0))
        method = (
            optimizers.AdamWeightDecay(0.1, weight_decay=0.2)
            if weighted
            else optimizers.Adam(0.1, epsilon=1e-6, schedule=Poly(2.0, 4), weight_decay=0.3)
        )
        assert stepped(method, rows, labels, 3) == pytest.approx(w, rel=1e-4)
    warm = optimizers.AdamWeightDecay(1.0, warmup_portion=0.2, total=10, schedule="linear")
    assert [warm.rate_at(step) for step in (1, 2, 3, 6)] == pytest.approx([0.0, 0.5, 0.8, 0.5])


def test_a_regularizer_adds_bigdls_gradient():
    w = tf.Variable([2.0, -3.0])
    with tf.GradientTape() as tape:
        penalty = regularizers.l1l2(0.1, 0.5)(w)
    np.testing.assert_allclose(tape.gradient(penalty, w), [0.1 + 1.0, -0.1 - 1.5], rtol=1e-6)
