import re

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from keraunos.compat.zoo.bigdl.optim.optimizer import SGD, MaxEpoch, MaxIteration, TrainSummary, ValidationSummary
from keraunos.compat.zoo.tfpark import KerasModel, TFDataset, TFOptimizer, TFPredictor
from keraunos.errors import JobError, ModelError

pytestmark = [pytest.mark.spark, pytest.mark.slow]

GENERATOR = np.random.default_rng(11)
X = GENERATOR.normal(size=(48, 4)).astype(np.float32)
CLASSES = (X[:, 0] + X[:, 1] > 0).astype(np.int32)


def dataset(**options):
    return TFDataset.from_ndarrays((X, CLASSES), **{"batch_size": 12, "val_tensors": (X[:9], CLASSES[:9])} | options)


@pytest.fixture
def graph(spark):
    with tf.Graph().as_default() as graph:
        yield graph


def keras2(optimizer="sgd", *, metrics=("accuracy",)):
    model = tf_keras.Sequential(
        [
            tf_keras.layers.Dense(6, activation="relu", input_shape=(4,)),
            tf_keras.layers.BatchNormalization(momentum=0.5),
            tf_keras.layers.Dropout(0.1),
            tf_keras.layers.Dense(2, activation="softmax"),
        ]
    )
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=list(metrics))
    return model


@pytest.mark.filterwarnings("ignore:`Model.state_updates` will be removed:UserWarning")
def test_a_keras_2_model_is_trained_by_its_own_optimizer(graph):
    model = keras2(tf_keras.optimizers.legacy.Adam(0.05))
    before = model.get_weights()
    optimizer = TFOptimizer.from_keras(model, dataset())
    optimizer.optimize(MaxEpoch(12))
    after = model.get_weights()
    assert all(not np.array_equal(old, new) for old, new in zip(before, after, strict=True))
    assert optimizer.scores["accuracy"] > 0.7
    assert optimizer.history["loss"][-1] < optimizer.history["loss"][0]
    loss, accuracy = model.evaluate(X[:9], CLASSES[:9], verbose=0)
    assert optimizer.scores["loss"] == pytest.approx(loss, rel=1e-4)
    assert optimizer.scores["accuracy"] == pytest.approx(accuracy, rel=1e-4)
    predictions = TFPredictor.from_keras(model, dataset(batch_size=-1, val_tensors=None)).predict().collect()
    np.testing.assert_allclose(np.stack(predictions), model.predict(X), rtol=1e-4, atol=1e-6)


def test_an_optim_method_takes_the_place_of_keras_2s_optimizer(graph):
    model = tf_keras.Sequential([tf_keras.layers.Dense(1, use_bias=False, input_shape=(4,))])
    model.compile("adam", "mse")
    (first,) = model.get_weights()
    data = TFDataset.from_ndarrays((X, X[:, :1]), batch_size=len(X))
    TFOptimizer.from_keras(model, data, optimizer=SGD(0.1)).optimize(MaxIteration(1))
    expected = first - 0.1 * 2 / len(X) * X.T @ (X @ first - X[:, :1])
    np.testing.assert_allclose(model.get_weights()[0], expected, rtol=1e-4, atol=1e-6)


def test_keras_2_models_that_cannot_be_trained_are_refused(graph):
    uncompiled = tf_keras.Sequential([tf_keras.layers.Dense(2, input_shape=(4,))])
    with pytest.raises(ModelError, match="must be compiled"):
        TFOptimizer.from_keras(uncompiled, dataset())
    with pytest.raises(ModelError, match="'auc' must be a mean over rows"):
        TFOptimizer.from_keras(keras2(metrics=[tf_keras.metrics.AUC(name="auc")]), dataset())
    with pytest.raises(ModelError, match="one tensor for each of"):
        TFOptimizer.from_keras(keras2(), TFDataset.from_ndarrays(((X, X), CLASSES), batch_size=4))
    with pytest.raises(JobError, match="`session_config` must be a tf.ConfigProto. Received: 4"):
        TFOptimizer.from_keras(keras2(), dataset(), session_config=4)


def test_a_keras_2_model_of_eager_mode_is_refused(spark):
    with pytest.raises(ModelError, match="was made in eager mode"):
        TFOptimizer.from_keras(keras2(), dataset())


def keras3():
    inputs = {name: keras.Input((2,), name=name) for name in ("left", "right")}
    hidden = keras.layers.Dense(8, activation="relu")(keras.layers.Concatenate()(list(inputs.values())))
    model = keras.Model(inputs, keras.layers.Dense(2, activation="softmax")(hidden))
    model.compile(keras.optimizers.Adam(0.05), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def halves(**options):
    tensors = ({"left": X[:, :2], "right": X[:, 2:]}, CLASSES)
    return TFDataset.from_ndarrays(tensors, **{"batch_size": 12, "val_tensors": tensors} | options)


def test_a_keras_3_model_is_trained_and_asked(spark, tmp_path):
    model = keras3()
    optimizer = TFOptimizer.from_keras(model, halves(), model_dir=str(tmp_path / "checkpoints"))
    summary = TrainSummary(str(tmp_path), "app")
    optimizer.set_train_summary(summary)
    optimizer.optimize(MaxEpoch(10))
    assert optimizer.sess is None
    assert optimizer.scores["accuracy"] > 0.8
    assert len(summary.read_scalar("Loss")) == 10
    predictions = np.stack(TFPredictor.from_keras(model, halves(batch_size=-1, val_tensors=None)).predict().collect())
    np.testing.assert_allclose(predictions, model.predict({"left": X[:, :2], "right": X[:, 2:]}, verbose=0), rtol=1e-4)
    trained = model.get_weights()
    optimizer.load_checkpoint(str(tmp_path / "checkpoints"), 4)
    assert not np.array_equal(model.get_weights()[0], trained[0])


def test_an_optim_method_takes_the_place_of_keras_3s_optimizer(spark):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, use_bias=False)])
    model.compile("adam", "mse")
    (first,) = model.get_weights()
    data = TFDataset.from_ndarrays((X, X[:, :1]), batch_size=len(X))
    TFOptimizer.from_keras(model, data, optimizer=SGD(0.1)).optimize(MaxIteration(1))
    expected = first - 0.1 * 2 / len(X) * X.T @ (X @ first - X[:, :1])
    np.testing.assert_allclose(model.get_weights()[0], expected, rtol=1e-4, atol=1e-6)
    with pytest.raises(JobError, match="model.compile\\(metrics="):
        TFOptimizer.from_keras(model, data, metrics={"a": 1})
    with pytest.raises(JobError, match="`session_config` must be left out for a Keras 3 model"):
        TFOptimizer.from_keras(model, data, session_config=tf.compat.v1.ConfigProto())


def check_files(model, root, name, weights):
    """A model and its weights go through files there, which are replaced only with `overwrite`."""
    expected = model.get_weights()
    model.save_model(f"{root}/{name}")
    again = KerasModel.load_model(f"{root}/{name}")
    np.testing.assert_array_equal(again.get_weights()[0], expected[0])
    with pytest.raises(JobError, match="overwrite=True"):
        model.save_model(f"{root}/{name}", overwrite=False)
    model.save_weights(f"{root}/{weights}")
    again.set_weights([np.zeros_like(each) for each in expected])
    again.load_weights(f"{root}/{weights}")
    np.testing.assert_array_equal(again.get_weights()[0], expected[0])
    return again


@pytest.mark.filterwarnings("ignore:`Model.state_updates` will be removed:UserWarning")
def test_a_keras_2_model_with_a_tensorflow_optimizer(graph, tmp_path):
    model = keras2(tf.compat.v1.train.AdamOptimizer(0.05))
    optimizer = TFOptimizer.from_keras(model, dataset(val_tensors=(X, CLASSES)))
    summary = ValidationSummary(str(tmp_path), "app")
    optimizer.set_val_summary(summary)
    optimizer.optimize(MaxEpoch(10))
    assert optimizer.scores["accuracy"] > 0.8
    loss, accuracy = model.evaluate(X, CLASSES, verbose=0)
    assert summary.read_scalar("Top1Accuracy")[-1, 1] == pytest.approx(accuracy, rel=1e-6)
    assert summary.read_scalar("Loss")[-1, 1] == pytest.approx(loss, rel=1e-4)


@pytest.mark.filterwarnings("ignore:`Model.state_updates` will be removed:UserWarning")
@pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file:UserWarning")
def test_a_keras_2_model_on_spark(graph, mounted, tmp_path):
    model = KerasModel(keras2(tf_keras.optimizers.legacy.Adam(0.05)))
    again = check_files(model, mounted, "model.h5", "weights.h5")
    # Without a suffix weights are a checkpoint of TensorFlow's, several files.
    model.save_weights(f"{mounted}/weights")
    assert (tmp_path / "weights.index").exists()
    again.set_weights([np.zeros_like(each) for each in again.get_weights()])
    again.load_weights(f"{mounted}/weights")
    np.testing.assert_array_equal(again.get_weights()[0], model.get_weights()[0])
    threads = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1)
    model.fit(X, CLASSES, batch_size=12, epochs=2, distributed=True, session_config=threads)
    here, there = model.evaluate(X, CLASSES), model.evaluate(X, CLASSES, batch_per_thread=7, distributed=True)
    # On Spark a metric goes by Analytics Zoo's name, which has that of BigDL's method in it.
    assert there == pytest.approx({"loss": here["loss"], "accuracy Top1Accuracy": here["accuracy"]}, rel=1e-4)
    # Before 0.9 results were a list.
    assert (here[0], there[1], there[-1]) == (here["loss"], there["accuracy Top1Accuracy"], there[1])
    with pytest.raises(KeyError, match="2 is none of the results. There are: 'loss', 'accuracy Top1Accuracy'"):
        there[2]
    np.testing.assert_allclose(model.predict(X, distributed=True), model.predict(X), rtol=1e-4, atol=1e-6)


def test_a_keras_3_model_on_spark(spark, tmp_path, mounted):
    model = KerasModel(keras3())
    history = model.fit(halves(), epochs=2)
    assert len(history["loss"]) == 2
    measured = model.evaluate(halves(batch_size=-1, val_tensors=None, batch_per_thread=5))
    expected = model.model.evaluate({"left": X[:, :2], "right": X[:, 2:]}, CLASSES, verbose=0, return_dict=True)
    assert measured == pytest.approx(
        {"loss": expected["loss"], "accuracy Top1Accuracy": expected["accuracy"]}, rel=1e-4
    )
    assert model.predict(halves()).count() == len(X)
    model.save_model(str(tmp_path / "model.keras"))
    again = KerasModel.load_model(str(tmp_path / "model.keras"))
    np.testing.assert_array_equal(again.get_weights()[0], model.get_weights()[0])
    check_files(model, mounted, "model.keras", "all.weights.h5")
    with pytest.raises(JobError, match="`validation_data` must be left out"):
        model.fit(halves(), validation_data=(X, CLASSES))
    unbatched = halves(batch_size=-1, val_tensors=None)
    for use, argument in (
        (model.fit, "batch_size"),
        (model.evaluate, "batch_per_thread"),
        (model.predict, "batch_per_thread"),
    ):
        words = f"The {argument} of TFDataset must be specified when used in KerasModel {use.__name__}."
        with pytest.raises(ValueError, match=re.escape(words)):
            use(unbatched)
    with pytest.raises(JobError, match="`callbacks` must be left out of a fit on Spark"):
        model.fit(halves(), callbacks=[])
