"""`Paddle()` on real Spark: what a user of the document, of Pipelines and of sequences sees."""

import gc

import numpy as np
import pytest
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.evaluation import MulticlassClassificationEvaluator
from pyspark.ml.feature import StandardScaler
from pyspark.ml.linalg import Vectors
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder
from pyspark.sql import functions as sf
from sklearn.datasets import load_digits

from keraunos import History, JsonlLog, read_log
from keraunos.compat.paddle.config_parser import *  # noqa: F403 - the document's own way
from keraunos.compat.paddle.estimator import Paddle, PaddleModel, keras_models
from keraunos.errors import ColumnError, DataError, JobError
from tests.extended import extended

# ruff: noqa: F405 - the names come from the star


def digits_config():
    batch = get_config_arg("batch", int, 16)
    Settings(
        algorithm=get_config_arg("algorithm", str, "sgd"),
        learning_method="momentum",
        batch_size=batch,
        learning_rate=0.003,
        num_batches_per_send_parameter=get_config_arg("send", int, 1),
        center_parameter_update_method=get_config_arg("center", str, "average"),
        average_window=get_config_arg("window", float, 0),
    )
    Inputs("label", "pixels")
    Outputs("cost")
    default_momentum(0.9)
    Layer(name="pixels", type="data", size=64)
    Layer(
        name="hidden",
        type="fc",
        size=24,
        active_type="tanh",
        bias=Bias(initial_std=0),
        inputs=Input("pixels", initial_std=0.1),
    )
    Layer(
        name="output",
        type="fc",
        size=10,
        active_type="softmax",
        bias=Bias(initial_std=0),
        inputs=Input("hidden", initial_std=0.1, decay_rate=0.01),
    )
    Layer(name="label", type="data", size=1)
    Layer(name="cost", type="multi-class-cross-entropy", inputs=["output", "label"])
    Evaluator(name="error", type="classification_error", inputs=["output", "label"])


@pytest.fixture(scope="module")
def digits(spark):
    found = load_digits()
    rows = [(Vectors.dense(x / 16), float(y)) for x, y in zip(found.data[:800], found.target[:800], strict=True)]
    frame = spark.createDataFrame(rows, ["image", "label"]).repartition(2).cache()
    frame.count()
    yield frame
    frame.unpersist(blocking=True)


def paddle(**params):
    usual = {"featuresCol": "image", "numPasses": 8, "verbose": 0}
    return Paddle(config=parse_config(digits_config, ""), **{**usual, **params})


@pytest.fixture(scope="module")
def fitted(digits):
    return paddle().setCluster(trainerNum=1, pServerNum=1).fit(digits)


def accuracy(frame, prediction="prediction"):
    return frame.select(sf.avg((sf.col(prediction) == sf.col("label")).cast("double"))).head()[0]


def test_the_documents_calls_train_and_predict_a_class_and_its_probabilities(digits, fitted):
    model = fitted.copy()
    model.setPredictionCol("predict")
    model.setFeaturesCol("image")
    predicted = model.transform(digits)
    assert predicted.columns == ["image", "label", "probability", "predict"]
    assert dict(predicted.dtypes)["predict"] == "double"
    assert accuracy(predicted, "predict") > 0.9
    row = predicted.head()
    assert row.probability.size == 10
    assert row.probability.toArray().sum() == pytest.approx(1, abs=1e-5)
    assert row.predict == row.probability.toArray().argmax()


def test_history_has_the_cost_of_a_sample_and_the_evaluators(fitted):
    history = dict(fitted.history)
    assert len(history["cost"]) == 8
    assert history["cost"][0] > history["cost"][-1]
    assert history["error"][-1] < 0.1


def test_a_model_is_saved_and_loaded_elsewhere(digits, fitted, tmp_path):
    fitted.save(str(tmp_path / "cnn.model"))
    loaded = PaddleModel.load(str(tmp_path / "cnn.model"))
    assert loaded.config == fitted.config
    assert loaded.transform(digits).select("prediction").collect() == (
        fitted.transform(digits).select("prediction").collect()
    )


def test_parameters_are_written_and_started_from_as_paddle_keeps_them(digits, fitted, tmp_path):
    fitted.saveParameters(str(tmp_path / "pass-00007"))
    assert {path.name for path in (tmp_path / "pass-00007").iterdir() if not path.name.startswith(".")} == {
        "_hidden.w0", "_hidden.wbias", "_output.w0", "_output.wbias",
    }  # fmt: skip
    log = JsonlLog(tmp_path / "fit.jsonl")
    again = paddle(initModelPath=str(tmp_path / "pass-00007"), numPasses=1, listeners=[log]).fit(digits)
    assert dict(again.history)["error"][0] < 0.1
    assert History.from_events(read_log(tmp_path / "fit.jsonl")) == again.history


# Spark's validators leave their thread pools to the garbage collector.
@pytest.mark.filterwarnings("ignore:unclosed running multiprocessing pool:ResourceWarning")
@pytest.mark.extended
def test_in_a_pipeline_that_is_saved_and_in_a_cross_validation(digits, tmp_path):
    scaler = StandardScaler(inputCol="image", outputCol="scaled", withStd=False, withMean=True)
    estimator = paddle(featuresCol="scaled", numPasses=3)
    Pipeline(stages=[scaler, estimator]).save(str(tmp_path / "unfitted"))
    pipeline = Pipeline.load(str(tmp_path / "unfitted"))
    model = pipeline.fit(digits)
    model.save(str(tmp_path / "fitted"))
    expected = model.transform(digits).select("prediction").collect()
    assert PipelineModel.load(str(tmp_path / "fitted")).transform(digits).select("prediction").collect() == expected

    lone = paddle(numPasses=1)
    grid = ParamGridBuilder().addGrid(lone.numPasses, [1, 6]).build()
    search = CrossValidator(
        estimator=lone, estimatorParamMaps=grid, evaluator=MulticlassClassificationEvaluator(), numFolds=2, seed=1
    )
    metrics = search.fit(digits).avgMetrics
    assert metrics[1] > metrics[0]
    gc.collect()


@pytest.mark.parametrize(
    "settings",
    [
        extended("algorithm=async_sgd"),
        extended("send=3"),
        extended("algorithm=async_sgd,send=3"),
        "send=3,center=elastic_average",
        "window=0.2",
    ],
)
def test_every_way_to_share_parameters_learns(digits, settings):
    estimator = Paddle(config=parse_config(digits_config, settings), featuresCol="image", numPasses=12, verbose=0)
    model = estimator.setCluster(trainerNum=2).fit(digits)
    assert accuracy(model.transform(digits)) > 0.85


def two_inputs():
    Settings(algorithm="sgd", learning_method="adam", batch_size=32, learning_rate=0.01)
    Inputs("left", "right", "target")
    Outputs("cost")
    Layer(name="left", type="data", size=2)
    Layer(name="right", type="data", size=1)
    Layer(name="sum", type="fc", size=1, active_type="", inputs=["left", "right"])
    Layer(name="target", type="data", size=1)
    Layer(name="cost", type="square_error", inputs=["sum", "target"])


def test_more_inputs_come_by_a_map_of_columns_or_by_their_names(spark):
    random = np.random.default_rng(0)
    rows = [([float(a), float(b)], float(c), float(a - b + 2 * c)) for a, b, c in random.normal(size=(256, 3))]
    frame = spark.createDataFrame(rows, ["pair", "right", "y"]).repartition(2).cache()
    estimator = Paddle(config=parse_config(two_inputs, ""), labelCol="y", numPasses=60, verbose=0)
    model = estimator.setInputCols({"left": "pair"}).fit(frame)
    predicted = model.transform(frame)
    assert predicted.columns == ["pair", "right", "y", "prediction"]
    assert predicted.select(sf.avg(sf.abs(sf.col("prediction") - sf.col("y")))).head()[0] < 0.2
    with pytest.raises(ColumnError, match="no column is known for 'left'"):
        Paddle(config=parse_config(two_inputs, ""), labelCol="y").fit(frame)
    with pytest.raises(ColumnError, match="a data layer that the configuration does not have.*Received: 'lft'"):
        estimator.copy().setInputCols({"lft": "pair"}).fit(frame)
    frame.unpersist(blocking=True)


def words_config():
    Settings(algorithm="sgd", learning_method="adam", batch_size=16, learning_rate=0.02)
    Inputs("words", "label")
    Outputs("cost")
    Layer(name="words", type="data", size=12)
    Layer(name="embedding", type="mixed", size=6, bias=False, inputs=TableProjection("words", initial_std=0.1))
    Layer(name="mean", type="average", inputs="embedding")
    Layer(name="output", type="fc", size=2, active_type="softmax", inputs=Input("mean", initial_std=0.1))
    Layer(name="label", type="data", size=1)
    Layer(name="cost", type="multi-class-cross-entropy", inputs=["output", "label"])


def test_sequences_of_any_length_are_read_as_they_are(spark):
    random = np.random.default_rng(1)
    rows = []
    for at in range(240):
        kind = at % 2
        rows.append((random.integers(6 * kind, 6 * kind + 7, random.integers(1, 9)).tolist(), kind))
    rows = [([min(word, 11) for word in words], kind) for words, kind in rows]
    frame = spark.createDataFrame(rows, "words array<int>, label int").repartition(2).cache()
    model = Paddle(config=parse_config(words_config, ""), featuresCol="words", numPasses=12, verbose=0).fit(frame)
    assert accuracy(model.transform(frame)) > 0.9
    assert model.transform(frame).columns == ["words", "label", "probability", "prediction"]
    unknown = frame.withColumn("words", sf.array(sf.lit(3), sf.lit(12)))
    with pytest.raises(DataError, match="data layer 'words' takes numbers from 0 to 11. Received: 12"):
        Paddle(config=parse_config(words_config, ""), featuresCol="words").fit(unknown)
    # Rows are predicted alike, however long others beside them are.
    short = frame.where(sf.size("words") < 3)
    alone = {tuple(row.words): row.probability for row in model.transform(short).collect()}
    beside = {tuple(row.words): row.probability for row in model.transform(frame).collect()}
    assert all(np.allclose(value.toArray(), beside[words].toArray(), atol=1e-5) for words, value in alone.items())
    frame.unpersist(blocking=True)


def test_the_lowered_models_can_be_used_without_spark():
    found = load_digits()
    trainer, predictor = keras_models(parse_config(digits_config, "batch=32"))
    x, y = (found.data / 16).astype("float32"), found.target
    trainer.fit({"pixels": x, "label": y}, y, batch_size=32, epochs=8, verbose=0)
    assert (predictor.predict(x, verbose=0).argmax(1) == y).mean() > 0.9


def test_what_is_wrong_is_told_before_or_where_it_is_found(spark, digits):
    with pytest.raises(JobError, match="must have a configuration"):
        Paddle().fit(digits)
    with pytest.raises(TypeError, match="what parse_config"):
        Paddle().setConfig(digits_config)
    with pytest.raises(ColumnError, match="labelCol.*Received: 'lable'"):
        paddle(labelCol="lable").fit(digits)
    with pytest.raises(JobError, match="trainerNum.*at least 1"):
        paddle().setCluster(trainerNum=0)
    wrong = digits.withColumn("label", sf.lit(10.0))
    with pytest.raises(DataError, match=r"'label', which is for 'label',.*from 0 to 9. Received: 10"):
        paddle(numPasses=1).fit(wrong)
    narrow = spark.createDataFrame([(Vectors.dense([1.0, 2.0]), 1.0)] * 4, ["image", "label"]).repartition(1)
    with pytest.raises(DataError, match="64"):
        paddle(numPasses=1).fit(narrow)
