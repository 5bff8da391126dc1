"""Trained TensorFlow models, of both kinds, as stages of a pipeline."""

import numpy as np
import pytest
import tensorflow as tf
from pyspark.ml import PipelineModel
from pyspark.ml.feature import StopWordsRemover, VectorAssembler

from keraunos.compat.sparkflow.ml_util import (
    calculate_weights,
    convert_json_to_weights,
    convert_weights_to_json,
    tensorflow_get_weights,
    tensorflow_set_weights,
)
from keraunos.compat.sparkflow.pipeline_util import PysparkPipelineWrapper
from keraunos.compat.sparkflow.tensorflow_model_loader import (
    attach_tensorflow_model_to_pipeline,
    load_tensorflow_model,
)
from keraunos.errors import JobError, ModelError

pytestmark = pytest.mark.spark

v1 = tf.compat.v1


@pytest.fixture(scope="module")
def frame(spark):
    return spark.createDataFrame([(1.0, 2.0), (3.0, 4.0)], ["a", "b"]).coalesce(1)


@pytest.fixture(scope="module")
def assembler():
    return VectorAssembler(inputCols=["a", "b"], outputCol="features")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two checkpoints of one model, which an optimizer has been at: out = (x - mean) kernel."""
    folder = tmp_path_factory.mktemp("checkpoints")
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        kernel = v1.get_variable("kernel", initializer=np.array([[1.0], [10.0]], np.float32))
        mean = v1.get_variable("mean", initializer=np.array([0.5, 0.5], np.float32), trainable=False)
        out = tf.matmul(x - mean, kernel, name="out")
        v1.train.AdamOptimizer().minimize(tf.reduce_mean(out))
        session.run(v1.global_variables_initializer())
        saver = v1.train.Saver()
        saver.save(session, str(folder / "model"), global_step=1)
        session.run(kernel.assign(2 * kernel))
        saver.save(session, str(folder / "model"), global_step=2)
        v1.saved_model.simple_save(session, str(folder / "saved"), {"features": x}, {"scores": out})
    return folder


@pytest.fixture(scope="module")
def mounted_folder(spark, folder):
    """The same folder on a file system that only Hadoop reads."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set("fs.viewfs.mounttable.sparkflow.link./data", folder.parent.as_uri())
    return f"viewfs://sparkflow/data/{folder.name}"


def test_models_lie_under_any_hadoop_path(frame, assembler, folder, mounted_folder):
    features = assembler.transform(frame)
    for root in (mounted_folder, folder.as_uri(), f"file:{folder}"):
        first = load_tensorflow_model(f"{root}/model-1", "features", "x:0", "out:0")
        assert predicted(first, features) == pytest.approx([15.5, 37.5])
        saved = load_tensorflow_model(f"{root}/saved", "features", "features", "scores")
        assert predicted(saved, features) == pytest.approx([31, 75])
        with pytest.raises(JobError, match=r"there is no .*model-3\.meta'\. Checkpoints there: 'model-1', 'model-2'\."):
            load_tensorflow_model(f"{root}/model-3", "features", "x:0", "out:0")
    with pytest.raises(JobError, match="`path` must be a path .*'nowhere://host/model'"):
        load_tensorflow_model("nowhere://host/model", "features", "x:0", "out:0")


def predicted(model, frame):
    return [row.predicted for row in model.transform(frame).collect()]


@pytest.mark.parametrize(("step", "expected"), [(1, [15.5, 37.5]), (2, [31.0, 75.0])])
def test_the_checkpoint_that_was_named_with_all_its_variables(frame, assembler, folder, step, expected):
    model = load_tensorflow_model(str(folder / f"model-{step}"), "features", "x:0", "out:0")
    assert predicted(model, assembler.transform(frame)) == expected
    # The optimizer's own variables stay behind.
    assert len(convert_json_to_weights(model.getModelWeights())) == 2


def test_a_checkpoint_in_the_working_directory(frame, assembler, folder, monkeypatch):
    monkeypatch.chdir(folder)
    model = load_tensorflow_model("model-1", "features", "x:0", "out:0")
    assert predicted(model, assembler.transform(frame)) == [15.5, 37.5]


def test_a_saved_model_by_the_names_of_its_signature(frame, assembler, folder):
    model = load_tensorflow_model(str(folder / "saved"), "features", "features", "scores")
    assert predicted(model, assembler.transform(frame)) == [31.0, 75.0]


def test_a_saved_model_of_today(frame, assembler, tmp_path):
    class Doubles(tf.Module):
        def __init__(self):
            self.factor = tf.Variable(2.0)

        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="given")])
        def __call__(self, given):
            return {"doubled": self.factor * given}

    tf.saved_model.save(Doubles(), str(tmp_path / "today"))
    model = load_tensorflow_model(str(tmp_path / "today"), "features", "given", "doubled")
    assert [list(vector) for vector in predicted(model, assembler.transform(frame))] == [[2.0, 4.0], [6.0, 8.0]]


def test_a_model_at_the_end_of_a_pipeline(frame, assembler, folder, tmp_path):
    pipeline = attach_tensorflow_model_to_pipeline(
        str(folder / "model-1"), PipelineModel([assembler]), "features", "x:0", "out:0", predictionCol="score"
    )
    pipeline.write().overwrite().save(str(tmp_path / "pipeline"))
    loaded = PysparkPipelineWrapper.unwrap(PipelineModel.load(str(tmp_path / "pipeline")))
    assert [row.score for row in loaded.transform(frame).collect()] == [15.5, 37.5]


@pytest.mark.parametrize(
    ("name", "output", "error", "message"),
    [
        ("model-3", "out:0", JobError, r"no '.*model-3.meta'. Checkpoints there: 'model-1', 'model-2'"),
        ("model-1", "output:0", ModelError, r"`tfOutput` must name a tensor.* Did you mean 'out:0'"),
        (".", "out:0", JobError, r"a SavedModel directory for serving"),
    ],
)
def test_what_is_not_there(folder, name, output, error, message):
    with pytest.raises(error, match=message):
        load_tensorflow_model(str(folder / name), "features", "x:0", output)


def test_a_stage_that_sparkflow_itself_saved_is_refused(spark):
    words = ["80,", "4c1740b00d3c4ff6806a1402321572cb"]
    disguised = StopWordsRemover(inputCol="a", outputCol="b", stopWords=words)
    with pytest.raises(ModelError, match=r"saved by SparkFlow itself, which pickles.*Fit the pipeline again"):
        PysparkPipelineWrapper.unwrap(PipelineModel([PipelineModel([disguised])]))
    plain = PipelineModel([StopWordsRemover(inputCol="a", outputCol="b")])
    assert PysparkPipelineWrapper.unwrap(plain) is plain
    with pytest.raises(ModelError, match="`pipeline` must be a Pipeline"):
        PysparkPipelineWrapper.unwrap(disguised)


def test_weights_of_a_session():
    with tf.Graph().as_default() as graph, v1.Session() as session:
        v1.get_variable("a", [2], initializer=v1.zeros_initializer())
        v1.get_variable("b", [], initializer=v1.zeros_initializer())
        session.run(v1.global_variables_initializer())
        operations = len(graph.get_operations())
        tensorflow_set_weights([np.array([1.0, 2.0]), 3.0])
        found = tensorflow_get_weights()
        assert len(graph.get_operations()) == operations
    np.testing.assert_array_equal(found[0], [1, 2])
    again = convert_json_to_weights(convert_weights_to_json(found))
    mean = calculate_weights([found, [each + 2 for each in again]])
    np.testing.assert_allclose(mean[0], [2, 3])
    assert float(mean[1]) == 4.0
    with pytest.raises(ModelError, match="There must be a default session"):
        tensorflow_get_weights()
    with pytest.raises(ModelError, match="Weights must be a JSON list"):
        convert_json_to_weights("{")
