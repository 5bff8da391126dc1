from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.feature import VectorAssembler

from keraunos import (
    ExchangePlan,
    KerasClassificationModel,
    KerasClassifier,
    KerasEstimator,
    KerasModel,
    KerasRegressionModel,
    KerasRegressor,
)
from keraunos.errors import JobError
from tests.ml.models import mlp, two_outputs
from tests.ml.untrained import fitted_of

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def frame(spark):
    rows = [(float(i), float(i % 5), float(i % 3), i % 4) for i in range(12)]
    data = spark.createDataFrame(rows, "a double, b double, c double, label int")
    return VectorAssembler(inputCols=["a", "b", "c"], outputCol="features").transform(data).coalesce(1)


@pytest.fixture
def viewfs(spark, tmp_path):
    """A path whose scheme only Hadoop can read."""
    spark.sparkContext._jsc.hadoopConfiguration().set(
        f"fs.viewfs.mounttable.{tmp_path.name}.link./data", tmp_path.as_uri()
    )
    return f"viewfs://{tmp_path.name}/data/model"


def predicted(model, frame):
    return [row.prediction for row in model.transform(frame).select("prediction").collect()]


@pytest.mark.parametrize(
    ("estimator", "model_class"),
    [
        (KerasClassifier(model=mlp(), inferenceBatchSize=16), KerasClassificationModel),
        (KerasRegressor(model=mlp(units=1, activation=None, loss="mse")), KerasRegressionModel),
        (KerasEstimator(model=mlp(units=1, activation=None, loss="mse")), KerasModel),
    ],
)
def test_a_fitted_model_comes_back_as_it_was(frame, tmp_path, estimator, model_class):
    fitted = fitted_of(estimator, frame.schema)
    fitted.save(str(tmp_path / "model"))
    loaded = model_class.load(str(tmp_path / "model"))
    assert type(loaded) is model_class
    assert loaded.uid == estimator.uid
    assert loaded.history == fitted.history
    assert loaded.history["loss"] == [0.5, 0.25]
    assert loaded.extractParamMap() == fitted.extractParamMap()
    for old, new in zip(fitted.model.get_weights(), loaded.model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
    assert predicted(loaded, frame) == predicted(fitted, frame)


def test_what_is_on_disk_is_plain(frame, tmp_path):
    fitted_of(KerasClassifier(model=mlp()), frame.schema).save(str(tmp_path / "model"))
    assert keras.saving.load_model(tmp_path / "model" / "model.keras").count_params() == mlp().count_params()
    assert json.loads((tmp_path / "model" / "history.json").read_text())["epochs"] == [{"loss": 0.5}, {"loss": 0.25}]
    (metadata,) = (tmp_path / "model" / "metadata").glob("part-*")
    assert json.loads(metadata.read_text())["class"] == "keraunos.ml.classifier.KerasClassificationModel"


def test_a_scheme_that_only_hadoop_reads(frame, viewfs, tmp_path):
    fitted = fitted_of(KerasClassifier(model=mlp()), frame.schema)
    fitted.write().save(viewfs)
    assert (tmp_path / "model" / "model.keras").exists()
    assert predicted(KerasClassificationModel.load(viewfs), frame) == predicted(fitted, frame)
    with pytest.raises(JobError, match="already exists"):
        fitted.save(viewfs)
    fitted.write().overwrite().save(viewfs)
    assert PipelineModel([fitted]).write().overwrite().save(f"{viewfs}-pipeline") is None
    loaded = PipelineModel.load(f"{viewfs}-pipeline")
    assert predicted(loaded, frame) == predicted(fitted, frame)


def test_a_pipeline_in_a_new_process(frame, tmp_path):
    fitted = fitted_of(KerasClassifier(model=mlp()), frame.schema)
    assembler = VectorAssembler(inputCols=["a", "b", "c"], outputCol="features")
    PipelineModel([assembler, fitted]).save(str(tmp_path / "pipeline"))
    plain = frame.drop("features")
    plain.write.parquet(str(tmp_path / "rows"))
    program = """
import sys
from pyspark.sql import SparkSession
from pyspark.ml import PipelineModel
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
served = PipelineModel.load(sys.argv[1]).transform(spark.read.parquet(sys.argv[2]))
print("FOUND", [row.prediction for row in served.orderBy("a").collect()])
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "pipeline"), str(tmp_path / "rows")],
        env=os.environ | {"KERAS_BACKEND": "jax"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = next(line for line in done.stdout.splitlines() if line.startswith("FOUND"))
    assert json.loads(found.removeprefix("FOUND ")) == predicted(fitted, frame.orderBy("a"))


def test_an_estimator_comes_back_as_it_was(spark, tmp_path):
    plan = ExchangePlan.named("downpour", every=9)
    estimator = KerasEstimator(
        model=two_outputs(),
        featuresCol=["a", "b", "c"],
        labelCol={"pair": ["a", "b"], "single": "c"},
        predictionCol={"pair": "p"},
        exchange=plan,
        classWeight={0: 1.0, 3: 2.0},
        learningRate=0.5,
        verbose=0,
    )
    Pipeline(stages=[estimator]).save(str(tmp_path / "pipeline"))
    (loaded,) = Pipeline.load(str(tmp_path / "pipeline")).getStages()
    assert loaded.getExchange() == plan
    assert loaded.getClassWeight() == {0: 1.0, 3: 2.0}
    assert loaded.getLabelCol() == {"pair": ["a", "b"], "single": "c"}
    assert loaded.uid == estimator.uid
    assert loaded.getModel().compiled
    for old, new in zip(estimator.getModel().get_weights(), loaded.getModel().get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
    KerasClassifier(epochs=4).save(str(tmp_path / "bare"))
    assert KerasClassifier.load(str(tmp_path / "bare")).getModel() is None


def test_an_existing_path_is_kept_unless_it_may_be_replaced(frame, tmp_path):
    path = tmp_path / "model"
    path.mkdir()
    (path / "mine.txt").write_text("mine")
    fitted = fitted_of(KerasClassifier(model=mlp()), frame.schema)
    with pytest.raises(JobError, match=r"already exists.*Received: .*overwrite\(\)"):
        fitted.save(str(path))
    assert [each.name for each in path.iterdir()] == ["mine.txt"]
    fitted.write().overwrite().save(str(path))
    assert not (path / "mine.txt").exists()


def test_what_cannot_be_saved_is_refused_before_the_old_is_gone(spark, tmp_path):
    path = tmp_path / "model"
    path.mkdir()
    estimator = KerasClassifier(model=mlp(), callbacks=[keras.callbacks.TerminateOnNaN()])
    with pytest.raises(JobError, match=r"`callbacks` cannot be saved.*\['TerminateOnNaN'\].*clear"):
        estimator.write().overwrite().save(str(path))

    class Local(keras.layers.Layer):
        pass

    with pytest.raises(JobError, match=r"'Local', which a saved model could not find again.*importable or registered"):
        KerasClassifier(model=mlp(), customObjects={"Local": Local}).write().overwrite().save(str(path))
    assert path.exists()


def test_a_save_that_breaks_off_cannot_be_loaded(frame, tmp_path):
    fitted = fitted_of(KerasClassifier(model=mlp()), frame.schema)
    fitted.save(str(tmp_path / "whole"))
    broken = tmp_path / "broken"
    broken.mkdir()
    # What is there before the metadata, which is written last.
    for name in ("model.keras", "history.json"):
        (broken / name).write_bytes((tmp_path / "whole" / name).read_bytes())
    with pytest.raises(Exception, match="metadata"):
        KerasClassificationModel.load(str(broken))


def test_the_wrong_class(frame, tmp_path):
    fitted_of(KerasClassifier(model=mlp()), frame.schema).save(str(tmp_path / "model"))
    with pytest.raises(JobError, match="does not hold a KerasRegressionModel"):
        KerasRegressionModel.load(str(tmp_path / "model"))


def test_importable_custom_code_is_found_again(frame, tmp_path, monkeypatch):
    (tmp_path / "my_layers.py").write_text(
        "import keras\n\n\nclass Twice(keras.layers.Layer):\n    def call(self, inputs):\n"
        "        return 2 * inputs\n\n\n"
        "def my_loss(labels, outputs):\n    return keras.ops.mean(keras.ops.square(labels - outputs), axis=-1)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import my_layers

    model = keras.Sequential([keras.Input((3,)), my_layers.Twice(), keras.layers.Dense(1)])
    model.compile("sgd", my_layers.my_loss)
    custom = {"Twice": my_layers.Twice, "my_loss": my_layers.my_loss}
    fitted = fitted_of(KerasRegressor(model=model, customObjects=custom), frame.schema)
    fitted.save(str(tmp_path / "model"))
    loaded = KerasRegressionModel.load(str(tmp_path / "model"))
    assert loaded.getCustomObjects() == custom
    assert isinstance(loaded.model.layers[0], my_layers.Twice)
    assert Path(my_layers.__file__).parent == tmp_path
