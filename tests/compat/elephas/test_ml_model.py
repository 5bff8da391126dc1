"""Elephas's estimator and transformer as stages of spark.ml pipelines."""

import json

import h5py
import keras
import numpy as np
import pytest
from keras import layers
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.feature import StandardScaler, StringIndexer
from pyspark.mllib.evaluation import MulticlassMetrics, RegressionMetrics
from pyspark.mllib.util import MLUtils
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, DoubleType

import keraunos
from keraunos import JsonlLog, read_log
from keraunos.compat.elephas import optimizers
from keraunos.compat.elephas.ml.adapter import from_data_frame, to_data_frame
from keraunos.compat.elephas.ml_model import (
    ElephasEstimator,
    ElephasTransformer,
    load_ml_estimator,
    load_ml_transformer,
)
from keraunos.compat.elephas.utils.model_utils import LossModelTypeMapper, ModelType, ModelTypeEncoder, argmax
from keraunos.errors import ColumnError, DataError, JobError, ModelError
from tests.compat.elephas import models

pytestmark = [
    pytest.mark.spark,
    # Spark's own metrics of mllib make an SQLContext.
    pytest.mark.filterwarnings("ignore:Deprecated in 3.0.0:FutureWarning"),
]

SGD = {"class_name": "SGD", "config": {"learning_rate": 0.05, "momentum": 0.9}}


def doubled_relu(x):
    return 2 * keras.ops.relu(x)


def half_squared(y_true, y_pred):
    difference = keras.ops.reshape(y_true, (-1, 1)) - y_pred
    return keras.ops.mean(keras.ops.square(difference), axis=-1) / 2


@pytest.fixture(scope="module")
def digits(spark):
    frame = to_data_frame(spark, *models.digits(), categorical=True).repartition(2).cache()
    frame.count()
    yield frame
    frame.unpersist(blocking=True)


@pytest.fixture(scope="module")
def numbers(spark):
    frame = to_data_frame(spark, *models.diabetes()).repartition(2).cache()
    frame.count()
    yield frame
    frame.unpersist(blocking=True)


def keyword_form(model=None, **options):
    """As Elephas's programs since 0.4 write it."""
    estimator = ElephasEstimator(**{"epochs": 12, "batch_size": 16, "mode": "synchronous", **options})
    estimator.set_keras_model_config((model or models.classifier(compiled=False)).to_json())
    estimator.set_optimizer_config(SGD)
    estimator.set_loss("categorical_crossentropy")
    estimator.set_num_workers(2)
    return estimator


@pytest.fixture(scope="module")
def by_keywords(digits):
    return keyword_form(nb_classes=10).fit(digits)


@pytest.fixture(scope="module")
def by_document(spark, digits):
    """As the document writes it."""
    estimator = ElephasEstimator(
        spark.sparkContext, models.classifier(rate=0.2),
        nb_epoch=6, batch_size=8, optimizer=optimizers.Adam(lr=0.01), frequency="batch", mode="asynchronous",
        num_workers=2, verbose=0, validation_split=0.1, categorical=True, nb_classes=10,
    )  # fmt: skip
    return estimator.fit(digits)


def outputs_of(transformer, frame):
    """The predictions, and what Keras itself gives for the same rows."""
    rows = transformer.transform(frame).select("features", transformer.getOutputCol()).collect()
    features = np.asarray([row[0].toArray() for row in rows], dtype=np.float32)
    return np.asarray([row[1] for row in rows]), transformer.get_model().predict(features, verbose=0)


def test_the_documents_form_predicts_classes_as_doubles(by_document, digits):
    predicted = by_document.transform(digits)
    assert predicted.columns == ["features", "label", "prediction"]
    assert predicted.schema["prediction"].dataType == DoubleType()
    metrics = MulticlassMetrics(predicted.select("prediction", "label").rdd.map(tuple))
    assert metrics.accuracy > 0.8
    found, outputs = outputs_of(by_document, digits)
    np.testing.assert_array_equal(found, outputs.argmax(axis=1))


def test_the_keyword_form_predicts_arrays_of_all_outputs(by_keywords, digits):
    predicted = by_keywords.transform(digits)
    assert predicted.schema["prediction"].dataType.elementType == DoubleType()
    classes = predicted.select("label", argmax("prediction").alias("prediction"))
    assert MulticlassMetrics(classes.select("prediction", "label").rdd.map(tuple)).accuracy > 0.8
    found, outputs = outputs_of(by_keywords, digits)
    assert found.shape == (400, 10)
    np.testing.assert_allclose(found, outputs, rtol=1e-4, atol=1e-6)


def test_the_history_has_every_epoch(by_keywords):
    (history,) = by_keywords.history
    assert len(history["loss"]) == len(history["val_acc"]) == 12
    assert history["loss"][-1] < history["loss"][0]


def test_training_starts_from_the_given_weights_and_leaves_them_alone(spark, digits):
    model = models.classifier(rate=1e-12)
    before = [weight.copy() for weight in model.get_weights()]
    fitted = ElephasEstimator(spark.sparkContext, model, nb_epoch=1, num_workers=1).fit(digits)
    for now, still, trained in zip(before, model.get_weights(), fitted.weights, strict=True):
        np.testing.assert_array_equal(now, still)
        np.testing.assert_allclose(now, trained, atol=1e-6)


def test_a_model_without_a_context_predicts_arrays(digits):
    estimator = ElephasEstimator(models.classifier(), epochs=1, mode="synchronous", frequency="batch", num_workers=1)
    assert estimator.get_predict_classes() is False
    assert estimator.plan_fit(digits).job.exchange.rule.name == "own"


@pytest.mark.parametrize(
    ("mode", "frequency", "optimizer", "meet", "every", "rule"),
    [
        ("synchronous", "epoch", None, "synchronous", "epoch", "mean"),
        ("asynchronous", "epoch", None, "asynchronous", "epoch", "add"),
        ("hogwild", "batch", None, "hogwild", 1, "add"),
        ("asynchronous", "batch", optimizers.Adadelta(), "asynchronous", 1, "adadelta"),
        ("synchronous", "epoch", keras.optimizers.Adam(0.1), "synchronous", "epoch", "KerasOptimizer"),
    ],
)
def test_mode_frequency_and_optimizer_mean_what_they_say(digits, mode, frequency, optimizer, meet, every, rule):
    estimator = ElephasEstimator(model=models.classifier(), mode=mode, frequency=frequency, optimizer=optimizer)
    plan = estimator.plan_fit(digits).job.exchange
    assert (plan.send, plan.meet, plan.every) == ("updates", meet, every)
    assert rule in (plan.rule.name, "KerasOptimizer")
    assert plan.rule.is_optimizer == (optimizer is not None)


def test_there_are_as_many_workers_as_were_asked_for_and_can_run(digits, caplog):
    estimator = ElephasEstimator(model=models.classifier())
    assert estimator.get_num_workers() == 8
    assert estimator.plan_fit(digits).job.workers == 2
    assert not caplog.records
    assert estimator.set_num_workers(1).plan_fit(digits).job.workers == 1
    assert estimator.set_num_workers(3).plan_fit(digits).job.workers == 2
    assert "num_workers=3" in caplog.text


def test_a_pipeline_of_text_labels_and_scaled_features_can_be_saved_and_loaded(spark, digits, tmp_path):
    named = digits.withColumn("category", sf.concat(sf.lit("class-"), sf.col("label").cast("int")))
    estimator = keyword_form(models.classifier(compiled=False), featuresCol="scaled", labelCol="index")
    pipeline = Pipeline(
        stages=[
            StringIndexer(inputCol="category", outputCol="index"),
            StandardScaler(inputCol="features", outputCol="scaled", withMean=True),
            estimator,
        ]
    )
    pipeline.save(str(tmp_path / "unfitted"))
    loaded = Pipeline.load(str(tmp_path / "unfitted")).getStages()[-1]
    assert isinstance(loaded, ElephasEstimator)
    assert loaded.get_config() == estimator.get_config()

    fitted = Pipeline.load(str(tmp_path / "unfitted")).fit(named)
    predicted = fitted.transform(named)
    right = predicted.select((argmax("prediction") == sf.col("index")).cast("int").alias("right"))
    assert right.agg(sf.avg("right")).head()[0] > 0.8

    fitted.save(str(tmp_path / "fitted"))
    again = PipelineModel.load(str(tmp_path / "fitted"))
    assert isinstance(again.stages[-1], ElephasTransformer)
    assert dict(again.stages[-1].history[0]) == dict(fitted.stages[-1].history[0])
    same = again.transform(named).select("prediction").collect()
    assert same == predicted.select("prediction").collect()


@pytest.mark.extended
def test_regression_predicts_a_double_in_named_columns(numbers):
    renamed = numbers.toDF("scaled_features", "ground_truth")
    estimator = keyword_form(
        models.regressor(),
        labelCol="ground_truth",
        outputCol="output",
        featuresCol="scaled_features",
        categorical=False,
    )
    estimator.set_loss("mae").set_metrics(["mae"]).set_optimizer_config("adam").set_epochs(40)
    predicted = estimator.fit(renamed).transform(renamed)
    assert predicted.columns == ["scaled_features", "ground_truth", "output"]
    metrics = RegressionMetrics(predicted.select("output", "ground_truth").rdd.map(tuple))
    assert metrics.meanAbsoluteError < renamed.select(sf.avg(sf.abs("ground_truth"))).head()[0]


def test_setters_of_columns_still_work_and_warn():
    estimator = ElephasEstimator()
    for name in ("FeaturesCol", "LabelCol", "OutputCol"):
        with pytest.warns(DeprecationWarning, match=f"set{name} is deprecated"):
            getattr(estimator, f"set{name}")("other")
        assert getattr(estimator, f"get{name}")() == "other"


def test_custom_objects_and_functions_of_ones_own_reach_the_workers(numbers, tmp_path):
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((10,)), layers.Dense(4, activation=doubled_relu), layers.Dense(1)])
    LossModelTypeMapper().register_loss(half_squared, ModelType.REGRESSION)
    estimator = keyword_form(
        model, categorical=False, metrics=[half_squared], epochs=1, custom_objects={"doubled_relu": doubled_relu}
    ).set_loss(half_squared)
    fitted = estimator.fit(numbers)
    (history,) = fitted.history
    np.testing.assert_allclose(history["loss"], history["half_squared"], rtol=1e-5)
    fitted.save(str(tmp_path / "fitted.h5"))
    with pytest.raises(ModelError, match=r"'doubled_relu'.*not trusted|'half_squared'.*not trusted"):
        load_ml_transformer(str(tmp_path / "fitted.h5"))
    own = {"doubled_relu": doubled_relu, "half_squared": half_squared}
    found, outputs = outputs_of(load_ml_transformer(str(tmp_path / "fitted.h5"), custom_objects=own), numbers)
    np.testing.assert_allclose(found, outputs[:, 0], rtol=1e-4, atol=1e-5)
    estimator.save(str(tmp_path / "estimator.h5"))
    with keraunos.trusting(__name__):
        again = load_ml_estimator(str(tmp_path / "estimator.h5"))
    assert again.plan_fit(numbers).job.model.archive


@pytest.mark.extended
def test_batches_of_another_size_predict_the_same(by_keywords, digits):
    once = by_keywords.transform(digits)
    batched = by_keywords.copy().set_params(inference_batch_size=40, outputCol="batched").transform(once)
    rows = batched.select("prediction", "batched").collect()
    np.testing.assert_allclose([row.prediction for row in rows], [row.batched for row in rows], rtol=1e-5, atol=1e-7)
    assert by_keywords.getOutputCol() == "prediction"


@pytest.mark.extended
def test_labels_may_be_one_hot_already_or_plain_class_numbers(spark, digits):
    keras.utils.set_random_seed(0)
    x, y = models.digits(60)
    as_arrays = to_data_frame(spark, x, y)
    model = models.classifier(metrics=())
    options = {"epochs": 2, "mode": "synchronous", "frequency": "batch", "num_workers": 1, "validation_split": 0}
    one_hot = ElephasEstimator(model, **options).fit(as_arrays)
    encoded = ElephasEstimator(model, **options).fit(to_data_frame(spark, x, y, categorical=True))
    sparse = keras.models.clone_model(model)
    sparse.set_weights(model.get_weights())
    sparse.compile(keras.optimizers.SGD(0.1), "sparse_categorical_crossentropy")
    numbered = ElephasEstimator(sparse, **options).fit(to_data_frame(spark, x, y, categorical=True))
    for other in (encoded, numbered):
        # The rows are put in an order by content, which differs with what labels are.
        np.testing.assert_allclose(one_hot.history[0]["loss"], other.history[0]["loss"], rtol=0.05)


def test_vectors_of_mllib_are_vectors_too(by_keywords, digits):
    old = MLUtils.convertVectorColumnsFromML(digits, "features")
    assert keyword_form().plan_fit(old).job.columns.labels[0].classes == 10
    found, outputs = outputs_of(by_keywords, old)
    np.testing.assert_allclose(found, outputs, rtol=1e-4, atol=1e-6)


@pytest.mark.extended
def test_images_and_series_are_nested_arrays(spark):
    random = np.random.default_rng(0)
    images = random.normal(size=(40, 6, 6, 1))
    labels = np.eye(2)[(images.mean(axis=(1, 2, 3)) > 0).astype(int)]
    frame = to_data_frame(spark, images, labels, categorical=True)
    model = keras.Sequential(
        [keras.Input((6, 6, 1)), layers.Conv2D(2, 3), layers.BatchNormalization(), layers.Flatten(), layers.Dense(2)]
    )
    model.compile("adam", keras.losses.CategoricalCrossentropy(from_logits=True))
    fitted = ElephasEstimator(spark.sparkContext, model, nb_epoch=1, num_workers=2, class_weight={1: 2.0}).fit(frame)
    assert {row.prediction for row in fitted.transform(frame).collect()} <= {0.0, 1.0}

    series = keras.Sequential([keras.Input((6, 6)), layers.SimpleRNN(3), layers.Dense(1)])
    series.compile("adam", "mse")
    frame = to_data_frame(spark, images[..., 0], images.sum(axis=(1, 2, 3)))
    fitted = ElephasEstimator(model=series, epochs=1).fit(frame)
    assert fitted.transform(frame).schema["prediction"].dataType == DoubleType()


@pytest.mark.extended
def test_several_inputs_and_outputs_are_named_columns(spark, tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 2))
    rows = [(row.tolist(), row[::-1].tolist(), float(row.sum()), float(row.sum() > 0), 1.0) for row in x]
    frame = spark.createDataFrame(rows, ["a", "b", "total", "sign", "weight"])
    estimator = ElephasEstimator(
        model=models.two_inputs(), featuresCol={"left": "a", "right": "b"}, weightCol="weight", epochs=1, num_workers=1,
        labelCol={"total": "total", "sign": "sign"}, callbacks=[keras.callbacks.EarlyStopping("loss")],
        listeners=[JsonlLog(tmp_path / "fit.jsonl")],
    )  # fmt: skip
    predicted = estimator.fit(frame).transform(frame)
    assert read_log(tmp_path / "fit.jsonl")[-1].how == "trained"
    assert predicted.schema["prediction_total"].dataType == ArrayType(DoubleType(), containsNull=False)
    assert len(predicted.head().prediction_sign) == 1
    with pytest.raises(JobError, match="`callbacks` cannot be saved"):
        estimator.save("never.h5")


def test_a_transformer_without_weights_keeps_its_architecture(tmp_path):
    model = models.classifier()
    transformer = ElephasTransformer()
    transformer.set_keras_model_config(model.to_json())
    transformer.save(str(tmp_path / "test.h5"))
    assert load_ml_transformer(str(tmp_path / "test.h5")).get_model().to_json() == model.to_json()
    with pytest.raises(ModelError, match="must have weights"):
        transformer.transform(None)


@pytest.mark.parametrize("name", ["test.h5", "folder"])
def test_an_estimator_keeps_everything_in_a_file_and_in_a_folder(tmp_path, name, spark):
    estimator = keyword_form(optimizer=optimizers.Adagrad(lr=0.5), metrics=[keras.metrics.AUC(name="area")])
    estimator.save(str(tmp_path / name))
    loaded = load_ml_estimator(str(tmp_path / name))
    assert loaded.get_model().to_json() == estimator.get_model().to_json()
    assert loaded.get_config() == estimator.get_config()


@pytest.mark.parametrize("name", ["test.h5", "folder"])
def test_a_compiled_model_is_saved_with_its_weights(spark, tmp_path, name, digits):
    estimator = ElephasEstimator(spark.sparkContext, models.classifier(rate=0.125), nb_epoch=3)
    estimator.save(str(tmp_path / name))
    loaded = load_ml_estimator(str(tmp_path / name))
    for left, right in zip(estimator.get_model().get_weights(), loaded.get_model().get_weights(), strict=True):
        np.testing.assert_array_equal(left, right)
    assert (loaded.get_epochs(), loaded.get_predict_classes(), loaded.get_loss()) == (
        3, True, "categorical_crossentropy",
    )  # fmt: skip
    assert loaded.get_optimizer_config()["config"]["learning_rate"] == 0.125


def test_a_fitted_transformer_is_the_same_from_a_file(by_document, digits, tmp_path, mounted):
    path = str(tmp_path / "fitted.h5")
    by_document.save(path)
    by_document.save(path)
    by_document.save(f"file://{path}", overwrite=True)
    by_document.save(f"{mounted}/elsewhere/fitted.h5")
    assert load_ml_transformer(f"{mounted}/elsewhere/fitted.h5").weights[0].shape == by_document.weights[0].shape
    loaded = load_ml_transformer(f"file:{path}")
    assert dict(loaded.history[0]) == dict(by_document.history[0])
    assert loaded.get_keras_model_config() == by_document.get_keras_model_config()
    np.testing.assert_array_equal(outputs_of(loaded, digits)[0], outputs_of(by_document, digits)[0])
    with pytest.raises(JobError, match="already"):
        by_document.save(path, overwrite=False)
    with pytest.raises(ModelError, match=r"must hold an ElephasEstimator\. Received: ElephasTransformer"):
        load_ml_estimator(path)
    with pytest.raises(JobError, match=r"'\.h5' file"):
        by_document.save(str(tmp_path / "fitted.keras"))


def written_by_elephas(path, class_name, config):
    """The file that Elephas 7 writes: JSON in an attribute."""
    with h5py.File(path, "w") as file:
        text = json.dumps({"class_name": class_name, "config": config}, cls=ModelTypeEncoder)
        file.attrs["distributed_config"] = text.encode("utf8")


def test_a_transformer_of_elephas_itself_is_read(tmp_path, digits):
    model = models.classifier()
    config = {
        "keras_model_config": model.to_json(),
        "labelCol": "label",
        "featuresCol": "features",
        "outputCol": "prediction",
        "weights": [weight.tolist() for weight in model.get_weights()],
        "model_type": ModelType.CLASSIFICATION,
    }
    written_by_elephas(tmp_path / "old.h5", "ElephasTransformer", config)
    loaded = load_ml_transformer(str(tmp_path / "old.h5"))
    assert loaded.model_type is ModelType.CLASSIFICATION
    assert loaded.get_config() == config
    rows = loaded.transform(digits).collect()
    expected = model.predict(np.asarray([row.features.toArray() for row in rows]), verbose=0)
    np.testing.assert_allclose([row.prediction for row in rows], expected, rtol=1e-4, atol=1e-6)


def test_an_estimator_of_elephas_itself_is_read(tmp_path, digits, spark):
    config = {
        "keras_model_config": models.classifier(compiled=False).to_json(), "mode": "synchronous",
        "frequency": "epoch", "num_workers": 2, "categorical": True, "loss": "categorical_crossentropy",
        "metrics": ["acc"], "validation_split": 0.1, "featuresCol": "features", "labelCol": "label", "epochs": 2,
        "batch_size": 16, "verbose": 0, "nb_classes": 10, "outputCol": "prediction",
    }  # fmt: skip
    written_by_elephas(tmp_path / "old.h5", "ElephasEstimator", config)
    loaded = load_ml_estimator(str(tmp_path / "old.h5"))
    assert config.items() <= loaded.get_config().items()
    with pytest.raises(ModelError, match="`optimizer_config` must be set before `fit`"):
        loaded.fit(digits)
    # Its pipelines keep spark.ml's metadata and nothing else.
    metadata = {
        "class": "elephas.ml_model.ElephasEstimator", "timestamp": 0, "sparkVersion": spark.version, "uid": "old",
        "paramMap": {**config, "optimizer_config": SGD}, "defaultParamMap": {"custom_objects": {}, "nb_classes": 10},
    }  # fmt: skip
    spark.sparkContext.parallelize([json.dumps(metadata)], 1).saveAsTextFile(str(tmp_path / "stage" / "metadata"))
    stage = ElephasEstimator.load(str(tmp_path / "stage"))
    assert stage.uid == "old"
    assert stage.plan_fit(digits).job.schedule.epochs == 2


def test_another_architecture_takes_over_the_weights(by_keywords, digits):
    model = keras.Sequential([keras.Input((64,)), layers.Dense(16, "relu"), layers.Dense(10, "linear")])
    changed = by_keywords.copy().set_keras_model_config(model.to_json())
    model.set_weights(by_keywords.weights)
    found, outputs = outputs_of(changed, digits.limit(5))
    np.testing.assert_allclose(found, outputs, rtol=1e-4, atol=1e-5)
    model = keras.Sequential([keras.Input((3,)), layers.Dense(1)])
    with pytest.raises(ModelError, match="`weights` must be those of the model"):
        by_keywords.copy().set_keras_model_config(model.to_json()).transform(digits)


def test_a_label_outside_of_the_classes_ends_the_fit_with_its_value(digits):
    wrong = digits.withColumn("label", sf.col("label") + 1)
    with pytest.raises(DataError, match=r"'label' .* from 0 to 9\. Received: 10\.0"):
        ElephasEstimator(model=models.classifier(), epochs=1, num_workers=1).fit(wrong)


def test_the_number_of_classes_must_be_known_and_right(spark, digits):
    inputs = keras.Input((None,))
    model = keras.Model(inputs, layers.Activation("softmax")(inputs))
    model.compile("sgd", "categorical_crossentropy")
    with pytest.raises(JobError, match="`nb_classes` must be given with categorical=True"):
        ElephasEstimator(spark.sparkContext, model, categorical=True).plan_fit(digits)
    with pytest.raises(JobError, match=r"outputs, 10\. Received: 3"):
        ElephasEstimator(model=models.classifier(), nb_classes=3).plan_fit(digits)
    with pytest.raises(ColumnError, match="Set categorical=True"):
        ElephasEstimator(model=models.classifier(), categorical=False).plan_fit(digits)


@pytest.mark.parametrize(
    ("make", "error", "told"),
    [
        (
            lambda: ElephasEstimator(model=models.classifier(), mode="asynchron"),
            JobError,
            "Did you mean 'asynchronous'",
        ),
        (lambda: ElephasEstimator(model=models.classifier(), frequency="epochs"), JobError, "Did you mean 'epoch'"),
        (lambda: ElephasEstimator(model=models.classifier(), batchsize=3), TypeError, "Did you mean 'batch_size'"),
        (lambda: ElephasEstimator("model"), ModelError, "must be a Keras 3 model"),
        (lambda: ElephasEstimator(models.classifier(), 3), JobError, "all else by name"),
    ],
)
def test_wrong_arguments_are_told_where_they_are_given(make, error, told):
    with pytest.raises(error, match=told):
        make()


@pytest.mark.parametrize(
    ("make", "error", "told"),
    [
        (ElephasEstimator, ModelError, "A model must be handed over"),
        (lambda: ElephasEstimator(model=models.classifier(compiled=False)), ModelError, "must be compiled"),
        (lambda: ElephasEstimator(model=models.classifier(), loss="mse"), JobError, "`loss` must be left out"),
        (lambda: keyword_form().set_optimizer_config({"foo": "bar"}), JobError, "`optimizer_config` must be what"),
        (lambda: keyword_form().set_keras_model_config({"class_name": "Old"}), ModelError, "Keras 3 reads"),
    ],
)
def test_what_cannot_be_trained_is_told_before_any_task(digits, make, error, told):
    with pytest.raises(error, match=told):
        make().fit(digits)


def test_classes_need_one_score_each(spark):
    model = keras.Sequential([keras.Input((4, 2)), layers.Dense(3, "softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    frame = spark.createDataFrame([([[0.0, 1.0]] * 4, [0, 1, 2, 0])], ["features", "label"])
    with pytest.raises(ModelError, match="Set predict_classes=False"):
        ElephasEstimator(spark.sparkContext, model).plan_fit(frame)
    assert ElephasEstimator(model=model).plan_fit(frame).job.columns.labels[0].one_hot is False


def test_arrays_of_a_dataframe_come_back_as_they_are_predicted(by_keywords, digits):
    predicted = by_keywords.transform(digits).select("features", argmax("prediction").alias("label"))
    x, y = from_data_frame(predicted)
    np.testing.assert_array_equal(by_keywords.get_model().predict(x, verbose=0).argmax(axis=1), y)
