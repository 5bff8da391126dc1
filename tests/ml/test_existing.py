from __future__ import annotations

import keras
import numpy as np
import pytest
from keras import layers
from pyspark.ml import PipelineModel

from keraunos import KerasClassificationModel, KerasClassifier, KerasModel, KerasRegressionModel
from keraunos.errors import JobError, ModelError
from tests.ml.models import mlp, two_inputs, two_outputs, unbuilt
from tests.ml.untrained import fitted_of

pytestmark = pytest.mark.spark

ROWS = np.random.default_rng(3).normal(size=(7, 3)).astype("float32")


@pytest.fixture(scope="module")
def frame(spark):
    return spark.createDataFrame([(row.tolist(),) for row in ROWS], "x array<float>").coalesce(1)


@keras.saving.register_keras_serializable("test_existing")
class Doubled(keras.Model):
    """A model with a `call` of its own."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = layers.Dense(2)

    def call(self, inputs):
        return 2 * self.dense(inputs)


def encoder_and_decoder():
    keras.utils.set_random_seed(5)
    encoder = keras.Sequential([keras.Input((3,)), layers.Dense(2, activation="tanh")], name="encoder")
    inputs = keras.Input((3,), name="inputs")
    hidden = layers.Dense(4, activation="relu", name="hidden")(inputs)
    code = encoder(inputs)
    decoded = layers.Dense(3, name="decoder")(layers.Concatenate(name="joined")([code, hidden]))
    return keras.Model(inputs, decoded), encoder


def served(model, frame, column="prediction"):
    return np.array([np.asarray(row[0]) for row in model.transform(frame).select(column).collect()])


def test_a_live_model_that_was_never_compiled(frame, tmp_path):
    keras.utils.set_random_seed(1)
    plain = keras.Sequential([keras.Input((3,)), layers.Dense(2)])
    model = KerasModel.of(plain, featuresCol="x", predictionCol="out")
    expected = plain.predict(ROWS, verbose=0)
    np.testing.assert_allclose(served(model, frame, "out"), expected, rtol=1e-5, atol=1e-6)
    assert dict(model.history) == {}
    PipelineModel([model]).save(str(tmp_path / "pipeline"))
    again = PipelineModel.load(str(tmp_path / "pipeline"))
    np.testing.assert_allclose(served(again, frame, "out"), expected, rtol=1e-5, atol=1e-6)
    assert dict(again.stages[0].history) == {}
    assert again.stages[0].getFeaturesCol() == "x"


def test_files_local_and_on_any_hadoop_path(spark, frame, tmp_path):
    plain = mlp(units=1, activation=None, loss="mse")
    path = tmp_path / "plain.keras"
    plain.save(path)
    expected = plain.predict(ROWS, verbose=0)[:, 0]
    spark.sparkContext._jsc.hadoopConfiguration().set(
        f"fs.viewfs.mounttable.{tmp_path.name}.link./data", tmp_path.as_uri()
    )
    for given in (path, str(path), path.as_uri(), f"viewfs://{tmp_path.name}/data/plain.keras"):
        model = KerasRegressionModel.of(given, featuresCol="x")
        np.testing.assert_allclose(served(model, frame), expected, rtol=1e-5, atol=1e-6)


def test_paths_that_hold_no_model(frame, tmp_path):
    with pytest.raises(ModelError, match=r"path of a \.keras file.*gone\.keras', where there is none"):
        KerasModel.of(str(tmp_path / "gone.keras"))
    (tmp_path / "old.h5").write_bytes(b"\x89HDF")
    with pytest.raises(ModelError, match=r"old\.h5', a file of another format"):
        KerasModel.of(tmp_path / "old.h5")
    KerasModel.of(mlp()).save(str(tmp_path / "fitted"))
    with pytest.raises(ModelError, match=r"fitted', a folder that a fitted model was saved to.*`load`"):
        KerasModel.of(str(tmp_path / "fitted"))
    with pytest.raises(ModelError, match=r"Keras 3 model, the path.*or a fitted model.*Received: <class 'int'>"):
        KerasModel.of(3)
    with pytest.raises(TypeError, match=r"KerasModel has no Param 'featureCol'.*Did you mean 'featuresCol'"):
        KerasModel.of(mlp(), featureCol="x")


def test_a_fitted_model_as_another_kind(frame):
    fitted = fitted_of(KerasClassifier(model=mlp(), featuresCol="x"), frame.selectExpr("x", "0 as label").schema)
    model = KerasModel.of(fitted)
    assert model.getFeaturesCol() == "x"
    np.testing.assert_allclose(served(model, frame), served(fitted, frame, "probability"), rtol=1e-5)
    assert dict(model.history) == {}


def test_a_layer_by_name_and_several(frame, tmp_path):
    model, encoder = encoder_and_decoder()
    part = KerasModel.of(model, layer="encoder", featuresCol="x")
    expected = encoder.predict(ROWS, verbose=0)
    np.testing.assert_allclose(served(part, frame), expected, rtol=1e-5, atol=1e-6)
    part.save(str(tmp_path / "part"))
    np.testing.assert_allclose(served(KerasModel.load(str(tmp_path / "part")), frame), expected, rtol=1e-5, atol=1e-6)
    several = KerasModel.of(model, layer=["encoder", "hidden"], featuresCol="x")
    np.testing.assert_allclose(served(several, frame, "prediction_encoder"), expected, rtol=1e-5, atol=1e-6)
    assert served(several, frame, "prediction_hidden").shape == (7, 4)
    sequential = mlp()
    hidden = KerasModel.of(sequential, layer=sequential.layers[0].name, featuresCol="x")
    assert served(hidden, frame).shape == (7, 5)


def test_a_layer_that_cannot_be_served():
    model, _ = encoder_and_decoder()
    with pytest.raises(ModelError, match=r"does not have. Expected .*'encoder'.*'encodr'. Did you mean 'encoder'"):
        KerasModel.of(model, layer="encodr")
    own = Doubled()
    own(ROWS)
    with pytest.raises(ModelError, match=r"`layer` needs a functional or sequential model.*a Doubled with a `call`"):
        KerasModel.of(own, layer="dense")
    shared = layers.Dense(3, name="twice")
    inputs = keras.Input((3,))
    with pytest.raises(ModelError, match="'twice', which the model .* uses 2 times"):
        KerasModel.of(keras.Model(inputs, shared(shared(inputs))), layer="twice")
    with pytest.raises(ModelError, match=r"`layer` must be the name of a layer.*Received: \[\]"):
        KerasModel.of(model, layer=[])


def test_models_without_shapes():
    with pytest.raises(ModelError, match=r"must know the shapes.*Call it once on a batch of rows, or .*keras.Input"):
        KerasModel.of(unbuilt())
    called = unbuilt()
    called(ROWS)
    assert KerasModel.of(called).model.count_params() == called.count_params()


def test_a_subclassed_model_that_was_called(frame):
    model = Doubled()
    expected = np.asarray(model(ROWS))
    serving = KerasModel.of(model, featuresCol="x")
    np.testing.assert_allclose(served(serving, frame), expected, rtol=1e-5, atol=1e-6)


def test_several_inputs_and_outputs(spark):
    frame = spark.createDataFrame([(1.0, 2.0, [1.0, 2.0, 3.0])], "a float, b float, l array<float>")
    model = two_inputs()
    serving = KerasRegressionModel.of(model, featuresCol={"left": "l", "right": ["a", "b"]})
    expected = model.predict([np.array([[1.0, 2, 3]]), np.array([[1.0, 2]])], verbose=0)
    np.testing.assert_allclose(served(serving, frame), expected[:, 0], rtol=1e-5)
    row = KerasModel.of(two_outputs(), featuresCol="l").transform(frame).first()
    assert len(row.prediction_pair) == 2
    with pytest.raises(ModelError, match=r"KerasRegressionModel needs a model with one output.*Use KerasModel"):
        KerasRegressionModel.of(two_outputs())
    with pytest.raises(ModelError, match=r"KerasClassificationModel needs a model with one output.*'pair', 'single'"):
        KerasClassificationModel.of(two_outputs())


def plain_classifier(*tail, units=3):
    keras.utils.set_random_seed(2)
    return keras.Sequential([keras.Input((3,)), layers.Dense(units), *tail])


@pytest.mark.parametrize(
    ("tail", "units"),
    [
        ([layers.Activation("softmax")], 3),
        ([layers.Softmax()], 3),
        ([layers.Dense(3, activation="softmax")], 3),
        ([layers.Activation("sigmoid")], 1),
    ],
)
def test_the_activation_says_that_outputs_are_probabilities(tail, units, frame):
    model = plain_classifier(*tail, units=units)
    fitted = KerasClassificationModel.of(model, featuresCol="x")
    outputs = model.predict(ROWS, verbose=0)
    expected = outputs if units > 1 else np.hstack([1 - outputs, outputs])
    assert fitted.numClasses == max(2, units)
    np.testing.assert_allclose(served(fitted, frame, "probability"), expected, rtol=1e-5)


def test_operations_and_nested_models_say_it_too(frame):
    inputs = keras.Input((3,))
    made = keras.Model(inputs, keras.ops.softmax(layers.Dense(4)(inputs)))
    assert KerasClassificationModel.of(made, featuresCol="x").numClasses == 4
    nested = keras.Sequential([keras.Input((3,)), plain_classifier(layers.Activation("softmax"))])
    np.testing.assert_allclose(
        served(KerasClassificationModel.of(nested, featuresCol="x"), frame, "probability").sum(axis=1), 1, rtol=1e-5
    )


def test_what_says_nothing_has_to_be_told(frame):
    with pytest.raises(ModelError, match=r"logits or probabilities.*'linear'.*fromLogits=True"):
        KerasClassificationModel.of(plain_classifier())
    with pytest.raises(ModelError, match=r"logits or probabilities.*the activation 'sigmoid'"):
        KerasClassificationModel.of(plain_classifier(layers.Activation("sigmoid")))
    with pytest.raises(JobError, match=r"`fromLogits` must be True or False. Received: 'yes'"):
        KerasClassificationModel.of(plain_classifier(), fromLogits="yes")
    model = plain_classifier()
    fitted = KerasClassificationModel.of(model, featuresCol="x", fromLogits=True)
    logits = model.predict(ROWS, verbose=0)
    np.testing.assert_allclose(served(fitted, frame, "rawPrediction"), logits, rtol=1e-5, atol=1e-6)
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(served(fitted, frame, "probability"), expected, rtol=1e-5)
    assert KerasClassificationModel.of(fitted).numClasses == 3


def test_the_compiled_loss_says_whether_outputs_are_logits(frame, tmp_path):
    model = plain_classifier()
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.save(tmp_path / "logits.keras")
    fitted = KerasClassificationModel.of(tmp_path / "logits.keras", featuresCol="x")
    np.testing.assert_allclose(served(fitted, frame, "probability").sum(axis=1), 1, rtol=1e-5)
    # A loss that is for numbers says nothing, and the activation does.
    softmax = plain_classifier(layers.Activation("softmax"))
    softmax.compile("sgd", "mse")
    assert KerasClassificationModel.of(softmax).numClasses == 3


def test_custom_code_is_found_in_the_model_or_handed_over(frame, tmp_path):
    class Plus(layers.Layer):
        def call(self, inputs):
            return inputs + 1.0

    model = keras.Sequential([keras.Input((3,)), Plus(name="plus")])
    np.testing.assert_allclose(served(KerasModel.of(model, featuresCol="x"), frame), ROWS + 1)
    given = {"Plus": Plus}
    np.testing.assert_allclose(served(KerasModel.of(model, featuresCol="x", customObjects=given), frame), ROWS + 1)
    model.save(tmp_path / "plus.keras")
    read = KerasModel.of(tmp_path / "plus.keras", layer="plus", featuresCol="x", customObjects=given)
    np.testing.assert_allclose(served(read, frame), ROWS + 1)
