from __future__ import annotations

import keras
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException
from pyspark.ml import PipelineModel
from pyspark.ml.evaluation import BinaryClassificationEvaluator, MulticlassClassificationEvaluator, RegressionEvaluator
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.functions import vector_to_array
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, DoubleType, FloatType, LongType, StructField, StructType

from keraunos import KerasClassifier, KerasEstimator, KerasRegressor
from keraunos.errors import ColumnError
from tests.extended import extended
from tests.ml.models import mlp, two_inputs, two_outputs
from tests.ml.untrained import fitted_of

pytestmark = pytest.mark.spark

ROWS = np.random.default_rng(3).normal(size=(23, 3)).astype(np.float32)


@pytest.fixture(scope="module")
def frame(spark):
    """The same three numbers in every form that a column can have them."""
    fields = [
        StructField("id", LongType()),
        StructField("dense", VectorUDT()),
        StructField("mixed", VectorUDT()),
        StructField("array", ArrayType(FloatType())),
        StructField("label", DoubleType()),
    ]
    rows = []
    for i, row in enumerate(ROWS.tolist()):
        dense = Vectors.dense(row)
        rows.append((i, dense, Vectors.sparse(3, [0, 1, 2], row) if i % 2 else dense, row, float(i % 4)))
    array = sf.col("array")
    return (
        spark.createDataFrame(rows, StructType(fields))
        .repartition(3)
        .select(
            "*",
            sf.transform(array, lambda value: sf.array(value.cast("double"))).alias("nested"),
            array[0].cast("double").alias("a"),
            array[1].alias("b"),
            array[2].cast("decimal(18, 12)").alias("c"),
        )
    )


def scores(model):
    return np.asarray(model.predict_on_batch(ROWS))


def test_a_classifier_gives_what_keras_gives(spark, frame):
    model = mlp()
    served = fitted_of(KerasClassifier(model=model, featuresCol="dense"), frame.schema).transform(frame)
    assert served.columns == [*frame.columns, "rawPrediction", "probability", "prediction"]
    assert served.schema["probability"].dataType == VectorUDT()
    assert served.schema["prediction"].dataType == DoubleType()
    found = served.orderBy("id").collect()
    np.testing.assert_allclose([row.probability.toArray() for row in found], scores(model), rtol=1e-5)
    assert [row.prediction for row in found] == scores(model).argmax(axis=1).tolist()
    assert MulticlassClassificationEvaluator(metricName="accuracy").evaluate(served) <= 1.0


@pytest.mark.parametrize("features", ["dense", "mixed", extended("array"), extended(["a", "b", "c"])])
def test_features_in_any_form_give_the_same(frame, features):
    model = mlp(units=1, activation=None, loss="mse")
    served = fitted_of(KerasRegressor(model=model, featuresCol=features), frame.schema).transform(frame)
    found = [row.prediction for row in served.orderBy("id").select("prediction").collect()]
    np.testing.assert_allclose(found, scores(model)[:, 0], rtol=1e-4, atol=1e-5)


def test_nested_arrays_in_and_out(frame):
    keras.utils.set_random_seed(5)
    model = keras.Sequential([keras.Input((3, 1)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    estimator = KerasEstimator(model=model, featuresCol="nested", labelCol="nested", predictionCol="out")
    estimator.getModel().compile("sgd", _any_loss)
    served = fitted_of(estimator.setCustomObjects({"_any_loss": _any_loss}), frame.schema).transform(frame)
    assert served.schema["out"].dataType == ArrayType(ArrayType(FloatType(), False), False)
    found = [row.out for row in served.orderBy("id").select("out").collect()]
    np.testing.assert_allclose(found, np.asarray(model.predict_on_batch(ROWS[:, :, None])), rtol=1e-5, atol=1e-6)


def _any_loss(labels, outputs):
    return keras.ops.mean(keras.ops.square(outputs), axis=-1)


def test_inputs_and_outputs_by_name(frame):
    model = two_inputs()
    fitted = fitted_of(
        KerasEstimator(model=model, featuresCol={"right": ["a", "b"], "left": "array"}, labelCol="label"), frame.schema
    )
    found = [row.prediction for row in fitted.transform(frame).orderBy("id").collect()]
    np.testing.assert_allclose(found, np.asarray(model([ROWS, ROWS[:, :2]])), rtol=1e-4, atol=1e-5)

    model = two_outputs()
    labels = {"pair": ["a", "b"], "single": "label"}
    estimator = KerasEstimator(model=model, featuresCol="array", labelCol=labels)
    served = fitted_of(estimator, frame.schema).transform(frame)
    assert served.columns[-2:] == ["prediction_pair", "prediction_single"]
    pair, _ = model(ROWS)
    found = [row.prediction_pair for row in served.orderBy("id").collect()]
    np.testing.assert_allclose(found, np.asarray(pair), rtol=1e-5, atol=1e-6)
    only = fitted_of(estimator.setPredictionCol({"single": "s"}), frame.schema).transform(frame)
    assert only.columns == [*frame.columns, "s"]


def test_a_sigmoid_output_and_the_binary_evaluator(frame):
    model = mlp(units=1, activation="sigmoid", loss="binary_crossentropy")
    binary = frame.withColumn("label", (sf.col("a") > 0).cast("double"))
    fitted = fitted_of(KerasClassifier(model=model, featuresCol="array"), binary.schema)
    served = fitted.transform(binary).orderBy("id")
    assert fitted.numClasses == 2
    found = served.collect()
    expected = scores(model)[:, 0]
    np.testing.assert_allclose([row.probability[1] for row in found], expected, rtol=1e-5)
    assert [row.prediction for row in found] == (expected > 0.5).astype(float).tolist()
    auc = keras.metrics.AUC(num_thresholds=10_000)
    auc.update_state(ROWS[:, 0] > 0, expected)
    assert BinaryClassificationEvaluator().evaluate(served) == pytest.approx(float(auc.result()), abs=0.01)


def test_logits_are_raw_predictions(frame):
    model = mlp(activation=None, loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    served = fitted_of(KerasClassifier(model=model, featuresCol="array"), frame.schema).transform(frame)
    found = served.orderBy("id").collect()
    np.testing.assert_allclose([row.rawPrediction.toArray() for row in found], scores(model), rtol=1e-5, atol=1e-6)
    expected = np.asarray(keras.ops.softmax(scores(model)))
    np.testing.assert_allclose([row.probability.toArray() for row in found], expected, rtol=1e-5)


def test_columns_without_a_name_are_left_out(frame):
    fitted = fitted_of(KerasClassifier(model=mlp(), featuresCol="array"), frame.schema)
    served = fitted.setProbabilityCol("").setRawPredictionCol("").transform(frame)
    assert served.columns == [*frame.columns, "prediction"]
    raw = fitted.setPredictionCol("").setRawPredictionCol("r").transform(frame)
    assert raw.columns == [*frame.columns, "r"]
    np.testing.assert_allclose([row.r.toArray() for row in raw.orderBy("id").collect()], scores(mlp()), rtol=1e-5)
    assert fitted.setRawPredictionCol("").transform(frame).columns == frame.columns


def test_one_evaluation_a_row_and_only_the_features_travel(frame):
    served = fitted_of(KerasClassifier(model=mlp(), featuresCol="array"), frame.schema).transform(frame)
    plan = served._jdf.queryExecution().executedPlan().toString()
    assert plan.count("ArrowEvalPython") == 1
    assert "predict(array#" in plan
    pruned = served.select("id")._jdf.queryExecution().executedPlan().toString()
    assert "ArrowEvalPython" not in pruned


def test_other_columns_stay_as_they_are_with_their_metadata(frame):
    marked = frame.withColumn("id", sf.col("id").alias("id", metadata={"mine": 1})).withColumn("od.d", sf.lit("x"))
    served = fitted_of(KerasClassifier(model=mlp(), featuresCol="array"), marked.schema).transform(marked)
    assert served.schema.fields[: len(marked.columns)] == marked.schema.fields
    assert served.schema["id"].metadata == {"mine": 1}
    assert served.schema["probability"].metadata == {"ml_attr": {"num_attrs": 4}}
    untouched = served.select(*[f"`{name}`" for name in marked.columns])
    assert sorted(map(str, untouched.collect())) == sorted(map(str, marked.collect()))


def test_rows_with_nulls_get_null_predictions(frame):
    holes = frame.withColumn("array", sf.when(sf.col("id") % 3 != 0, sf.col("array")))
    served = fitted_of(KerasClassifier(model=mlp(), featuresCol="array"), holes.schema).transform(holes)
    found = {row.id: row for row in served.collect()}
    assert len(found) == len(ROWS)
    expected = scores(mlp())
    for i, row in found.items():
        if i % 3 == 0:
            assert (row.prediction, row.probability, row.rawPrediction) == (None, None, None)
        else:
            np.testing.assert_allclose(row.probability.toArray(), expected[i], rtol=1e-5)
    vectors = frame.withColumn("dense", sf.when(sf.col("id") > 100, sf.col("dense")))
    served = fitted_of(KerasClassifier(model=mlp(), featuresCol="dense"), vectors.schema).transform(vectors)
    assert served.filter("prediction is null and probability is null").count() == len(ROWS)


def test_no_rows_and_empty_partitions(frame):
    fitted = fitted_of(KerasClassifier(model=mlp(), featuresCol="array"), frame.schema)
    assert fitted.transform(frame.filter("id < 0")).collect() == []
    spread = fitted.transform(frame.filter("id < 2").repartition(4))
    assert spread.filter("prediction >= 0").count() == 2


def test_batches_smaller_than_the_rows(frame):
    fitted = fitted_of(
        KerasRegressor(model=mlp(units=1, activation=None, loss="mse"), featuresCol="array", inferenceBatchSize=4),
        frame.schema,
    )
    found = [row.prediction for row in fitted.transform(frame.coalesce(1)).orderBy("id").collect()]
    np.testing.assert_allclose(found, np.asarray(fitted.model.predict_on_batch(ROWS))[:, 0], rtol=1e-4, atol=1e-5)


def test_parquet_columns(spark, tmp_path):
    features = pa.array(ROWS.tolist(), type=pa.list_(pa.float32()))
    pq.write_table(pa.table({"features": features, "label": pa.array([0] * len(ROWS))}), tmp_path / "rows.parquet")
    rows = spark.read.parquet(str(tmp_path))
    served = fitted_of(KerasClassifier(model=mlp()), rows.schema).transform(rows)
    found = served.withColumn("p", vector_to_array("probability")).select("p").collect()
    np.testing.assert_allclose([row.p for row in found], scores(mlp()), rtol=1e-5)


def test_a_stream(spark, tmp_path):
    features = pa.array(ROWS.tolist(), type=pa.list_(pa.float32()))
    pq.write_table(pa.table({"features": features, "label": pa.array([0] * len(ROWS))}), tmp_path / "rows.parquet")
    schema = spark.read.parquet(str(tmp_path)).schema
    fitted = fitted_of(KerasClassifier(model=mlp()), schema)
    stream = fitted.transform(spark.readStream.schema(schema).parquet(str(tmp_path)))
    assert stream.isStreaming
    query = (
        stream.writeStream.format("memory").queryName("served").trigger(availableNow=True)
        .option("checkpointLocation", str(tmp_path / "_checkpoint")).start()
    )  # fmt: skip
    try:
        assert query.awaitTermination(120)
        found = [row.prediction for row in spark.table("served").collect()]
    finally:
        query.stop()
        spark.catalog.dropTempView("served")
    assert found == scores(mlp()).argmax(axis=1).tolist()


def test_in_a_pipeline_after_an_assembler(frame):
    assembler = VectorAssembler(inputCols=["a", "b", "c"], outputCol="features")
    model = mlp(units=1, activation=None, loss="mse")
    fitted = fitted_of(KerasRegressor(model=model), assembler.transform(frame).schema)
    served = PipelineModel([assembler, fitted]).transform(frame)
    error = RegressionEvaluator(metricName="mae").evaluate(served)
    expected = np.abs(scores(model)[:, 0] - np.arange(len(ROWS)) % 4).mean()
    assert error == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"featuresCol": "arry"}, "Did you mean 'array'"),
        ({"predictionCol": "Label"}, "already has a column 'Label'"),
        ({"featuresCol": ["a", "b"]}, r"Expected rows of shape \(3\)"),
        ({"predictionCol": "probability"}, "must have different names"),
    ],
)
def test_what_the_schema_shows_to_be_wrong(frame, params, message):
    fitted = fitted_of(KerasClassifier(model=mlp(), featuresCol="array"), frame.schema)
    with pytest.raises(ColumnError, match=message):
        fitted.setParams(**params).transform(frame)


def test_rows_that_do_not_fit_fail_with_a_message(frame):
    ragged = frame.withColumn("array", sf.when(sf.col("id") == 5, sf.array(sf.lit(1.0))).otherwise(sf.col("array")))
    fitted = fitted_of(KerasClassifier(model=mlp(), featuresCol="array"), ragged.schema)
    with pytest.raises(PythonException, match="DataError: Column 'array'"):
        fitted.transform(ragged.coalesce(1)).collect()
