from __future__ import annotations

import logging

import keras
import numpy as np
import pytest
from keras import layers
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.linalg import Vectors

from keraunos import KerasClassifier, KerasEstimator
from keraunos.errors import ColumnError, DataError, JobError
from keraunos.ml.class_balance import balanced_weights
from keraunos.session.registry import session_of
from keraunos.tuning.search import search
from tests.ml.models import mlp, two_outputs

pytestmark = pytest.mark.spark

RNG = np.random.default_rng(5)


@pytest.fixture(scope="module")
def frame(spark):
    values = RNG.normal(size=(60, 3)).astype("float32")
    rows = [(i, row.tolist(), int(row.argmax()), i % 4 == 0) for i, row in enumerate(values)]
    return spark.createDataFrame(rows, "i int, x array<float>, label int, held boolean").coalesce(1).cache()


def model():
    made = mlp(units=3)
    made.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return made


def classifier(**params):
    return KerasClassifier(
        **{"model": model(), "featuresCol": "x", "numWorkers": 1, "batchSize": 8, "verbose": 0, **params}
    )


@pytest.fixture(scope="module")
def by_column(frame):
    """What a fit measures whose validation rows a column marks."""
    return classifier(epochs=2, validationIndicatorCol="held").fit(frame)


@pytest.mark.slow
def test_measures_are_those_of_an_indicator_column(frame, by_column, jobs_run):
    training, held = frame.filter("not held").drop("held"), frame.filter("held").selectExpr("label", "x as X")
    fitted = classifier(epochs=2, validationData=held).fit(training)
    assert dict(fitted.history) == dict(by_column.history)
    assert {"val_loss", "val_accuracy"} <= set(fitted.history)
    for ours, theirs in zip(fitted.model.get_weights(), by_column.model.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_rows_are_moved_only_where_workers_must_share_them(frame):
    training, held = frame.filter("not held"), frame.filter("held")
    alone = classifier(validationData=held).plan_fit(training)
    assert session_of(training).partitions_of(alone.rows) == 1
    assert "Exchange" not in alone.rows._jdf.queryExecution().executedPlan().toString()
    # As many partitions as workers before, of which one would have had no rows to train on.
    several = classifier(validationData=held, numWorkers=2).plan_fit(training).rows
    assert session_of(training).partitions_of(several) == 2
    kinds = several.rdd.mapPartitions(lambda rows: [sorted({row[-1] for row in rows})]).collect()
    assert kinds == [[False, True], [False, True]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["x"], r"every column that the fit reads. Expected 'label'. Received: 'x'"),
        (
            ["x", "cast(label as double) as label"],
            r"'label' must have one type.*Expected int.*double in `vali",
        ),
        (["cast(x as array<double>) as x", "label"], r"'x' must have one type.*array<float>.*array<double>"),
    ],
)
def test_other_schemas_are_refused(frame, change, message, jobs_run):
    with pytest.raises(ColumnError, match=message):
        classifier(validationData=frame.selectExpr(*change)).fit(frame)
    assert list(jobs_run()) == []


def test_vectors_of_another_length_are_refused(frame):
    numbers = frame.selectExpr("x[0] as a", "x[1] as b", "x[2] as c", "label")
    three = VectorAssembler(inputCols=["a", "b", "c"], outputCol="x").transform(numbers)
    two = VectorAssembler(inputCols=["a", "b"], outputCol="x").transform(numbers)
    with pytest.raises(ColumnError, match=r"'x' must have one length.*Expected \(3,\).*Received: \(2,\)"):
        classifier(validationData=two).fit(three)


def test_one_way_to_validate_and_none_to_save(frame, tmp_path):
    estimator = classifier(validationData=frame)
    with pytest.raises(JobError, match="`validationSplit` and `validationData` both say which rows"):
        estimator.copy({estimator.validationSplit: 0.5}).fit(frame)
    with pytest.raises(JobError, match="`validationIndicatorCol` and `validationData` both say"):
        estimator.copy({estimator.validationIndicatorCol: "held"}).fit(frame)
    with pytest.raises(JobError, match=r"`validationData` cannot be saved.*clear\(estimator.validationData\)"):
        estimator.save(str(tmp_path / "estimator"))
    with pytest.raises(JobError, match="`validationData` must be a Spark DataFrame. Received: <class 'list'>"):
        classifier(validationData=[1])


@pytest.mark.slow
def test_searches_and_checkpoints_take_it(frame, by_column, tmp_path):
    training, held = frame.filter("not held"), frame.filter("held")
    estimator = classifier(epochs=2, validationData=held)
    result = search(estimator, {"batchSize": [8]}, training, mode="tasks")
    assert result.best.metric == pytest.approx(by_column.history["val_loss"][-1], rel=1e-6)
    saved = classifier(epochs=1, validationData=held, checkpointDir=str(tmp_path / "saved"))
    saved.fit(training)
    resumed = saved.setEpochs(2).fit(training)
    assert dict(resumed.history) == dict(by_column.history)


def test_balanced_weights_are_those_of_scikit_learn(spark, frame, caplog):
    labels = [0, 0, 0, 0, 2, 2, 1]
    expected = {0: 7 / (3 * 4), 1: 7 / 3, 2: 7 / (3 * 2)}
    one_hot = np.eye(3)[labels].tolist()
    rows = [
        (k, row, Vectors.dense(row), Vectors.sparse(3, [k], [1.0]), *row)
        for k, row in zip(labels, one_hot, strict=True)
    ]
    made = spark.createDataFrame(
        [(k, row, dense, sparse, a, b, c) for k, row, dense, sparse, a, b, c in rows],
        ["number", "array", "dense", "sparse", "a", "b", "c"],
    )
    params = {"model": mlp(units=3, loss="categorical_crossentropy"), "featuresCol": ["a", "b", "c"], "numWorkers": 1}
    with caplog.at_level(logging.INFO, "keraunos.ml.class_balance"):
        for label in ("array", "dense", "sparse", ["a", "b", "c"]):
            plan = KerasClassifier(**params, labelCol=label, classWeight="balanced").plan_fit(made)
            assert plan.job.schedule.class_weight == pytest.approx(expected)
    assert "classWeight='balanced' is {0: 0.58" in caplog.text
    numbers = KerasClassifier(
        model=mlp(units=3), featuresCol=["a", "b", "c"], labelCol="number", classWeight="balanced"
    )
    assert numbers.plan_fit(made).job.schedule.class_weight == pytest.approx(expected)


def test_only_rows_to_train_on_are_counted_and_in_one_job(frame, jobs_run):
    counts = np.bincount([row.label for row in frame.filter("not held").collect()])
    expected = {k: counts.sum() / (3 * count) for k, count in enumerate(counts)}
    before = len(jobs_run())
    marked = classifier(classWeight="balanced", validationIndicatorCol="held")
    assert marked.plan_fit(frame).job.schedule.class_weight == pytest.approx(expected)
    assert len(jobs_run()) == before + 1
    apart = classifier(classWeight="balanced", validationData=frame.filter("held"))
    assert apart.plan_fit(frame.filter("not held")).job.schedule.class_weight == pytest.approx(expected)


def test_what_cannot_be_balanced_is_refused(spark, frame):
    two = KerasEstimator(
        model=two_outputs(), featuresCol="x", labelCol={"pair": ["i", "label"], "single": "i"}, classWeight="balanced"
    )
    with pytest.raises(JobError, match="`classWeight` needs exactly one label.*Received: 2 labels"):
        two.plan_fit(frame)
    with pytest.raises(JobError, match=r"`classWeight` must be a dict.*or 'balanced'. Received: 'balance'"):
        classifier(classWeight="balance")
    halves = frame.selectExpr("x", "label + 0.5 as label")
    regression = keras.Sequential([keras.Input((3,)), layers.Dense(1)])
    regression.compile("sgd", "mse")
    with pytest.raises(DataError, match=r"whole numbers, or one-hot rows. Received: \d.5 in column 'label'"):
        KerasEstimator(model=regression, featuresCol="x", classWeight="balanced").plan_fit(halves)
    assert balanced_weights(frame.limit(0), classifier().plan_fit(frame).job.columns.labels[0]) == {}


@pytest.mark.slow
def test_a_balanced_fit_is_that_of_the_dict(frame, tmp_path):
    estimator = classifier(classWeight="balanced")
    estimator.save(str(tmp_path / "estimator"))
    balanced = KerasClassifier.load(str(tmp_path / "estimator"))
    assert balanced.getClassWeight() == "balanced"
    given = classifier(classWeight=balanced.plan_fit(frame).job.schedule.class_weight)
    assert dict(balanced.fit(frame).history) == dict(given.fit(frame).history)
