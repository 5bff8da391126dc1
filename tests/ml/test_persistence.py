from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import keras
import numpy as np
import pytest
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.feature import VectorAssembler

import keraunos
from keraunos import (
    ExchangePlan,
    KerasClassificationModel,
    KerasClassifier,
    KerasEstimator,
    KerasModel,
    KerasRegressionModel,
    KerasRegressor,
    Listener,
)
from keraunos.errors import JobError, ModelError
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
    listened = KerasClassifier(model=mlp(), listeners=[Listener()])
    with pytest.raises(JobError, match=r"`listeners` cannot be saved.*\['Listener'\].*clear\(estimator.listeners\)"):
        listened.write().overwrite().save(str(path))

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


class BreaksOff(KerasClassificationModel):
    """Its second file cannot be written."""

    def _to_parts(self):
        parts = super()._to_parts()
        return replace(parts, files={**parts.files, "unwritable": None})


def breaks_off(frame):
    return BreaksOff(fitted_of(KerasClassifier(model=mlp()), frame.schema)._trained)


def test_a_save_that_fails_leaves_nothing_and_an_overwrite_leaves_the_old(frame, tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    with pytest.raises(TypeError):
        breaks_off(frame).save(str(folder / "model"))
    assert list(folder.iterdir()) == []
    fitted_of(KerasClassifier(model=mlp()), frame.schema).save(f"file:{folder}/model")
    with pytest.raises(TypeError):
        breaks_off(frame).write().overwrite().save(f"file:{folder}/model")
    assert [each.name for each in folder.iterdir()] == ["model"]
    assert KerasClassificationModel.load(str(folder / "model")).history["loss"] == [0.5, 0.25]
    fitted_of(KerasClassifier(model=mlp(units=5)), frame.schema).write().overwrite().save(str(folder / "model"))
    assert [each.name for each in folder.iterdir()] == ["model"]
    assert KerasClassificationModel.load(str(folder / "model")).model.layers[-1].units == 5


def test_a_pipeline_with_a_stage_that_cannot_be_saved_is_not_left_half_written(frame, tmp_path):
    assembler = VectorAssembler(inputCols=["a", "b", "c"], outputCol="features")
    refused = KerasClassifier(model=mlp(), callbacks=[keras.callbacks.TerminateOnNaN()])
    with pytest.raises(JobError, match="`callbacks` cannot be saved"):
        Pipeline(stages=[assembler, refused]).save(str(tmp_path / "pipeline"))
    with pytest.raises(TypeError):
        PipelineModel([assembler, PipelineModel([assembler, breaks_off(frame)])]).save(f"file:{tmp_path}/nested")
    assert list(tmp_path.iterdir()) == []
    refused.clear(refused.callbacks)
    Pipeline(stages=[assembler, refused]).save(str(tmp_path / "pipeline"))
    assert isinstance(Pipeline.load(str(tmp_path / "pipeline")).getStages()[1], KerasClassifier)


def test_a_pipeline_of_somebody_else_is_left_alone(frame, tmp_path):
    stage = fitted_of(KerasClassifier(model=mlp()), frame.schema)
    PipelineModel([stage]).save(str(tmp_path / "pipeline"))
    place = tmp_path / "pipeline" / "stages" / f"0_{stage.uid}"
    with pytest.raises(JobError, match="already exists"):
        stage.save(str(place))
    broken = breaks_off(frame)._resetUid(stage.uid)
    for save in (broken.write().overwrite().save, broken.write().save):
        with pytest.raises((TypeError, JobError)):
            save(str(place))
    with pytest.raises(TypeError):
        broken.save(str(tmp_path / "pipeline" / "stages" / "1_other"))
    assert isinstance(PipelineModel.load(str(tmp_path / "pipeline")).stages[0], KerasClassificationModel)


def test_the_wrong_class(frame, tmp_path):
    fitted_of(KerasClassifier(model=mlp()), frame.schema).save(str(tmp_path / "model"))
    with pytest.raises(JobError, match="does not hold a KerasRegressionModel"):
        KerasRegressionModel.load(str(tmp_path / "model"))


def test_code_that_is_missing_is_named_before_rows_are_read(frame):
    class Missing(keras.layers.Layer):
        def call(self, inputs):
            return inputs

    Missing.__module__ = "__main__"
    model = keras.Sequential([keras.Input((3,)), Missing(name="gone"), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    fitted = fitted_of(KerasRegressor(model=model), frame.schema)
    assert fitted.getCustomObjects() == {"Missing": Missing}
    fitted.clear(fitted.customObjects)
    with pytest.raises(ModelError, match=r"The class 'Missing' in the layer 'gone' must be one that the workers can"):
        fitted.transform(frame)


def test_an_estimator_with_an_importable_function_is_saved(spark, tmp_path):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", nothing)
    KerasRegressor(model=model).save(str(tmp_path / "estimator"))
    with pytest.raises(ModelError, match=rf"'nothing' of the module '{nothing.__module__}', which is not trusted"):
        KerasRegressor.load(str(tmp_path / "estimator"))
    with keraunos.trusting(nothing.__module__):
        assert KerasRegressor.load(str(tmp_path / "estimator")).getModel().loss is nothing


def nothing(labels, outputs):
    return keras.ops.mean(0.0 * (labels - outputs), axis=-1)


def test_custom_code_of_a_trusted_module_is_found_again(frame, tmp_path, monkeypatch):
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
    with pytest.raises(ModelError, match=r"'my_layers'.*not trusted.*spark\.keraunos\.trustedModules=my_layers"):
        KerasRegressionModel.load(str(tmp_path / "model"))
    with keraunos.trusting("my_layers"):
        loaded = KerasRegressionModel.load(str(tmp_path / "model"))
    assert loaded.getCustomObjects() == custom
    assert isinstance(loaded.model.layers[0], my_layers.Twice)
    assert Path(my_layers.__file__).parent == tmp_path
