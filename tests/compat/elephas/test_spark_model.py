"""Elephas's SparkModel on a real Spark: what it predicts and measures is what its Keras model would."""

import itertools

import keras
import numpy as np
import pytest
from pyspark.mllib.linalg import Vectors

from keraunos import History, JsonlLog, read_log
from keraunos.compat.elephas import optimizers
from keraunos.compat.elephas.mllib.adapter import to_matrix, to_vector
from keraunos.compat.elephas.spark_model import AsynchronousSparkModel, SparkMLlibModel, SparkModel
from keraunos.compat.elephas.utils.rdd_utils import to_labeled_point, to_simple_rdd
from keraunos.errors import DataError, JobError, KeraunosError, ModelError
from tests.compat.elephas import models
from tests.extended import extended

pytestmark = pytest.mark.spark


@pytest.fixture
def sc(spark):
    return spark.sparkContext


def rows_of(predictions):
    return np.stack([np.asarray(row) for row in predictions])


@pytest.mark.parametrize(
    ("mode", "frequency", "server", "workers"),
    [
        ("synchronous", "epoch", "http", None),
        extended("synchronous", "batch", "http", 2),
        extended("asynchronous", "epoch", "http", 2),
        ("asynchronous", "batch", "socket", None),
        ("hogwild", "epoch", "socket", 2),
        extended("hogwild", "batch", "http", None),
    ],
)
def test_a_classifier_learns_and_is_the_same_everywhere(sc, mode, frequency, server, workers):
    x, y = models.digits()
    network = models.classifier()
    model = SparkModel(
        network, mode=mode, frequency=frequency, parameter_server_mode=server, num_workers=workers, port=None
    )
    before = network.evaluate(x, y, verbose=0)
    history = model.fit(to_simple_rdd(sc, x, y), epochs=9, batch_size=16)
    after = network.evaluate(x, y, verbose=0)
    assert after[1] > 0.8 > before[1]
    assert len(history["loss"]) == 9
    assert model.training_histories == [dict(history)]
    alone = network.predict(x[:50], verbose=0)
    np.testing.assert_allclose(rows_of(model.predict(x[:50])), alone, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(rows_of(model.predict(sc.parallelize(list(x[:50]), 3))), alone, rtol=1e-5, atol=1e-6)
    assert model.evaluate(x, y) == pytest.approx(after, rel=1e-5)


@pytest.mark.parametrize(("kind", "mode"), [(SparkModel, "synchronous"), extended(AsynchronousSparkModel, "hogwild")])
def test_a_regression_is_the_same_everywhere(sc, kind, mode):
    x, y = models.diabetes()
    network = models.regressor()
    before = network.evaluate(x, y, verbose=0)[0]
    model = kind(network, mode=mode)
    model.fit(to_simple_rdd(sc, x, y), epochs=5, batch_size=16)
    after = network.evaluate(x, y, verbose=0)
    assert after[0] < 0.8 * before
    np.testing.assert_allclose(rows_of(model.predict(x)), network.predict(x, verbose=0), rtol=1e-5, atol=1e-6)
    assert model.evaluate(to_simple_rdd(sc, x, y)) == pytest.approx(after, rel=1e-5)


def test_a_model_without_metrics_is_measured_by_one_number(sc):
    x, y = models.digits(100)
    model = SparkModel(models.classifier(metrics=()))
    assert model.evaluate(x, y) == pytest.approx(model.master_network.evaluate(x, y, verbose=0), rel=1e-5)


def test_measures_that_are_no_means_are_exact(sc):
    x, y = models.digits(203)
    network = models.classifier(metrics=[keras.metrics.AUC(name="auc"), keras.metrics.Precision(name="precision")])
    weights = np.linspace(0.1, 2, len(x))
    model = SparkModel(network)
    assert model.evaluate(x, y, batch_size=7) == pytest.approx(network.evaluate(x, y, verbose=0), rel=1e-4)
    weighted = network.evaluate(x, y, sample_weight=weights, verbose=0)
    assert model.evaluate(x, y, sample_weight=weights) == pytest.approx(weighted, rel=1e-4)


def test_the_documents_form_trains_with_a_servers_optimizer(sc):
    x, y = models.digits()
    network = models.classifier(rate=0.01)
    model = SparkModel(
        sc, network, optimizer=optimizers.Adagrad(), frequency="epoch", mode="asynchronous", num_workers=1
    )
    model.train(to_simple_rdd(sc, x, y), nb_epoch=20, batch_size=8, verbose=0, validation_split=0.1, num_workers=2)
    assert network.evaluate(x, y, verbose=0)[1] > 0.6
    history = model.training_histories[0]
    assert len(history["val_loss"]) == 20


def test_the_state_of_the_servers_optimizer_goes_on_in_a_second_fit(sc):
    x, y = models.digits(64)
    rdd = to_simple_rdd(sc, x, y).coalesce(1)

    def trained(*epochs):
        model = SparkModel(models.classifier(), optimizer=optimizers.Adagrad(lr=0.1), mode="asynchronous")
        for count in epochs:
            model.fit(rdd, epochs=count, batch_size=64, shuffle=False)
        return model.master_network.get_weights()

    for once, twice, anew in zip(trained(4), trained(2, 2), trained(2), strict=True):
        np.testing.assert_allclose(once, twice, rtol=1e-4, atol=1e-6)
        assert not np.allclose(once, anew, atol=1e-4)


def test_the_rdd_is_computed_once_a_fit(sc):
    x, y = models.digits(60)
    seen = sc.accumulator(0)

    def counted(pair):
        seen.add(1)
        return pair

    SparkModel(models.classifier(), num_workers=2).fit(to_simple_rdd(sc, x, y).map(counted), epochs=3, batch_size=8)
    assert seen.value == 60


@pytest.mark.parametrize("sizes", [[0, 40, 3], extended([1, 1]), extended([0, 0, 5])], ids=str)
def test_empty_and_tiny_partitions_count_as_they_should(sc, sizes):
    x, y = models.digits(sum(sizes))
    cuts = np.cumsum([0, *sizes])
    parts = [list(zip(x[a:b], y[a:b], strict=True)) for a, b in itertools.pairwise(cuts)]
    rdd = sc.parallelize(parts, len(parts)).flatMap(lambda part: part)
    network = models.classifier()
    before = network.evaluate(x, y, verbose=0)[0]
    model = SparkModel(network, num_workers=2)
    model.fit(rdd, epochs=5, batch_size=32)
    assert network.evaluate(x, y, verbose=0)[0] < before
    assert model.evaluate(rdd) == pytest.approx(network.evaluate(x, y, verbose=0), rel=1e-5)
    predicted = model.predict(rdd.map(lambda pair: pair[0]))
    np.testing.assert_allclose(rows_of(predicted), network.predict(x, verbose=0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("form", ["lists", extended("dicts"), extended("flat")])
def test_several_inputs_and_outputs(sc, form):
    random = np.random.default_rng(0)
    left, right = random.normal(size=(2, 120, 2)).astype("float32")
    total = (left + right).sum(1, keepdims=True)
    sign = (total > 0).astype("float32")
    features = {
        "lists": [[a, b] for a, b in zip(left, right, strict=True)],
        "dicts": [{"left": a, "right": b} for a, b in zip(left, right, strict=True)],
        "flat": list(np.hstack([left, right])),
    }[form]
    labels = {
        "lists": [[a, b] for a, b in zip(total, sign, strict=True)],
        "dicts": [{"total": a, "sign": b} for a, b in zip(total, sign, strict=True)],
        "flat": list(np.hstack([total, sign])),
    }[form]
    network = models.two_inputs()
    model = SparkModel(network)
    model.fit(sc.parallelize(list(zip(features, labels, strict=True)), 2), epochs=20, batch_size=8)
    loss = network.evaluate([left, right], [total, sign], verbose=0)
    assert loss[0] < 0.7
    assert model.evaluate([left, right], [total, sign])[0] == pytest.approx(loss[0], rel=1e-4)
    predicted = model.predict(sc.parallelize(features, 3))
    for at, alone in enumerate(network.predict([left, right], verbose=0)):
        np.testing.assert_allclose(rows_of(row[at] for row in predicted), alone, rtol=1e-5, atol=1e-6)


def test_images_callbacks_listeners_weights_and_validation(sc, tmp_path):
    x, y = models.digits(200)
    images = x.reshape(-1, 8, 8, 1)
    keras.utils.set_random_seed(1)
    network = keras.Sequential(
        [
            keras.layers.Input((8, 8, 1)),
            keras.layers.Conv2D(8, 3, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Flatten(),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    network.compile("adam", "categorical_crossentropy", metrics=["accuracy"])
    model = SparkModel(network, num_workers=2)
    stopping = keras.callbacks.EarlyStopping("val_loss", patience=0, min_delta=100.0)
    held_out = (images[150:], y[150:])
    history = model.fit(
        to_simple_rdd(sc, images[:150], y[:150]),
        epochs=9,
        batch_size=16,
        validation_data=held_out,
        callbacks=[stopping],
        listeners=[JsonlLog(tmp_path / "fit.jsonl")],
        class_weight={0: 3.0},
    )
    assert History.from_events(read_log(tmp_path / "fit.jsonl")) == history
    assert len(history["val_loss"]) == 2
    assert history["val_loss"][-1] == pytest.approx(network.evaluate(*held_out, verbose=0)[0], rel=1e-4)
    statistics = network.layers[1].moving_variance
    assert not np.allclose(statistics, 1.0)


def test_an_rdd_to_validate_on_is_not_trained_on(sc):
    x, y = models.diabetes(80)
    network = models.regressor()
    held_out = to_simple_rdd(sc, x[60:], y[60:] + 100)
    history = SparkModel(network).fit(
        to_simple_rdd(sc, x[:60], y[:60]), epochs=2, batch_size=10, validation_data=held_out
    )
    assert np.abs(network.predict(x, verbose=0)).max() < 10
    expected = network.evaluate(x[60:], y[60:] + 100, verbose=0)[0]
    assert history["val_loss"][-1] == pytest.approx(expected, rel=1e-4)


def test_rows_have_the_weights_that_come_with_them(sc):
    x, y = models.diabetes(60)
    weights = np.repeat([0.0, 1.0], 30)
    shifted = np.where(weights > 0, y, 100.0).astype("float32")
    rdd = sc.parallelize(list(zip(x, shifted, weights, strict=True)), 2)
    network = models.regressor()
    SparkModel(network).fit(rdd, epochs=5, batch_size=10, sample_weight=True)
    assert np.abs(network.predict(x, verbose=0)).max() < 10


def test_labeled_points(sc):
    x, y = models.digits()
    points = to_labeled_point(sc, x, y, categorical=True)
    network = models.classifier()
    model = SparkMLlibModel(
        sc, network, optimizer=optimizers.Adadelta(), frequency="batch", mode="hogwild", num_workers=2
    )
    model.train(points, 4, 16, 0, 0.1, True, 10)
    expected = network.evaluate(x, y, verbose=0)
    assert expected[1] > 0.6
    assert model.evaluate(points, categorical=True) == pytest.approx(expected, rel=1e-5)
    alone = network.predict(x, verbose=0)
    np.testing.assert_allclose(model.predict(to_matrix(x)), alone, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.predict(to_vector(x[3])), alone[3], rtol=1e-5, atol=1e-6)
    vectors = sc.parallelize([Vectors.dense(row) for row in x[:20]], 2)
    np.testing.assert_allclose(rows_of(model.predict(vectors)), alone[:20], rtol=1e-5, atol=1e-6)


@pytest.mark.extended
def test_a_custom_activation(sc):
    def doubled(x):
        return 2 * x

    custom = {"doubled": doubled}
    with keras.saving.custom_object_scope(custom):
        network = keras.Sequential([keras.layers.Input((10,)), keras.layers.Dense(1, activation=doubled)])
        network.compile("sgd", "mse")
    x, y = models.diabetes(40)
    model = SparkModel(network, custom_objects=custom)
    model.fit(to_simple_rdd(sc, x, y), epochs=1, batch_size=10)
    np.testing.assert_allclose(rows_of(model.predict(x)), network.predict(x, verbose=0), rtol=1e-5, atol=1e-6)
    assert model.evaluate(x, y) == pytest.approx(network.evaluate(x, y, verbose=0), rel=1e-5)


def test_a_failing_task_ends_the_fit_with_its_error_and_leaves_the_weights(sc):
    x, y = models.digits(40)
    network = models.classifier()
    before = network.get_weights()

    def failing(pair):
        raise ValueError("these rows are not for reading")

    model = SparkModel(network)
    with pytest.raises(KeraunosError, match="these rows are not for reading"):
        model.fit(to_simple_rdd(sc, x, y).map(failing), epochs=1)
    for ours, theirs in zip(network.get_weights(), before, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    model.fit(to_simple_rdd(sc, x, y), epochs=1)
    assert not np.array_equal(network.get_weights()[0], before[0])


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: SparkModel(models.classifier(), mode="sync"), JobError, "`mode` must be one of"),
        (lambda: SparkModel(models.classifier(), frequency="step"), JobError, "`frequency` must be one of"),
        (lambda: SparkModel(models.classifier(compiled=False)), ModelError, "must be compiled"),
        (lambda: SparkModel("a model"), ModelError, "must be a compiled Keras model. Received: str"),
        (SparkModel, JobError, "must be given a compiled Keras model"),
        (lambda: SparkModel(models.classifier(), parameter_server_mode="ftp"), JobError, "`parameter_server_mode`"),
        (lambda: SparkModel(models.classifier(), modes="hogwild"), JobError, "Did you mean 'mode'?"),
        (lambda: AsynchronousSparkModel(models.classifier(), mode="synchronous"), JobError, "Use SparkModel"),
        (lambda: SparkModel(models.classifier()).fit([1, 2]), DataError, "must be given an RDD. Received: list"),
        (lambda: SparkModel(models.classifier()).evaluate([[1.0]], [1.0], bath=1), JobError, "'bath'"),
    ],
)
def test_mistakes_are_told_before_any_work(make, error, said):
    with pytest.raises(error, match=said):
        make()


@pytest.mark.parametrize(
    ("element", "said"),
    [
        ((np.zeros(63, "float32"), np.zeros(10, "float32")), r"Expected rows of shape \(64,\)"),
        ((np.zeros(64, "float32"),), "has 1 entries"),
        (np.zeros(64, "float32"), "is one ndarray"),
        ((np.zeros(64, "float32"), None), "None"),
    ],
)
def test_elements_of_the_wrong_shape_are_told(sc, element, said):
    with pytest.raises(KeraunosError, match=said):
        SparkModel(models.classifier()).fit(sc.parallelize([element] * 4, 1), epochs=1)


HOGWILD = {"mode": "hogwild", "frequency": "batch"}


@pytest.mark.parametrize(
    ("positional", "named"),
    [
        (("sc", "model", None, "hogwild", "batch", 2), {}),
        (("model", "hogwild", "batch", "http", 2), {}),
        (("model", 2), HOGWILD),
        ((), {"model": "model", "num_workers": 2, **HOGWILD}),
        ((), {"sc": "sc", "master_network": "model", "num_workers": 2, **HOGWILD}),
    ],
    ids=["0.3", "6.2", "7.3", "by name", "0.3 by name"],
)
def test_the_arguments_of_every_release(sc, positional, named):
    model = models.classifier()
    live = {"sc": sc, "model": model}
    made = SparkModel(
        *(live.get(each, each) for each in positional), **{name: live.get(each, each) for name, each in named.items()}
    )
    assert made.master_network is model
    assert {key: made.get_config()[key] for key in ("mode", "frequency", "num_workers", "batch_size")} == {
        "mode": "hogwild",
        "frequency": "batch",
        "num_workers": 2,
        "batch_size": 32,
    }


def test_what_is_not_said_is_what_the_release_of_that_form_took(sc):
    assert SparkModel(sc, models.classifier()).get_config()["mode"] == "asynchronous"
    assert SparkModel(models.classifier()).get_config()["mode"] == "synchronous"
    assert AsynchronousSparkModel(models.classifier()).get_config()["mode"] == "asynchronous"
