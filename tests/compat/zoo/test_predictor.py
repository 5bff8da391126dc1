import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from pyspark.ml.linalg import Vectors

from keraunos.compat.zoo.bigdl.optim.optimizer import Adam, MaxEpoch
from keraunos.compat.zoo.tfpark import TFDataset, TFOptimizer, TFPredictor
from keraunos.compat.zoo.util.tf import export_tf
from keraunos.errors import JobError, ModelError

pytestmark = [pytest.mark.spark, pytest.mark.slow]

v1 = tf.compat.v1
X = np.random.default_rng(3).normal(size=(23, 3)).astype(np.float32)
W = np.array([[1.0, 0.0], [2.0, 1.0], [-1.0, 3.0]], np.float32)


@pytest.fixture
def graph(spark):
    with tf.Graph().as_default() as graph:
        yield graph


def dataset(spark, *, partitions=4, labels=True, **options):
    rows = [[row, np.array([7])] for row in X]
    described = {"names": ["x"], "shapes": [[3]], "types": [tf.float32]}
    if labels:
        described = {"names": ["x", "y"], "shapes": [[3], [1]], "types": [tf.float32, tf.int32]}
    return TFDataset.from_rdd(spark.sparkContext.parallelize(rows, partitions), **described | options)


def restored():
    w = v1.get_variable("w", [3, 2], initializer=v1.constant_initializer(W))
    session = v1.Session()
    session.run(v1.global_variables_initializer())
    return w, session


def test_predictions_come_in_the_order_of_the_records(spark, graph):
    x, _ = dataset(spark).tensors
    w, session = restored()
    predictor = TFPredictor(session, [tf.matmul(x, w)])
    predictions = predictor.predict()
    assert predictions.getNumPartitions() == 4
    np.testing.assert_allclose(np.stack(predictions.collect()), X @ W, rtol=1e-5)


def test_the_values_are_those_of_the_call(spark, graph):
    (x,) = dataset(spark, labels=False, batch_per_thread=5).tensors
    w, session = restored()
    predictor = TFPredictor.from_outputs(session, tf.matmul(x, w))
    before = predictor.predict()
    session.run(v1.assign(w, 2 * W))
    after = predictor.predict()
    np.testing.assert_allclose(np.stack(before.collect()), X @ W, rtol=1e-5)
    np.testing.assert_allclose(np.stack(after.collect()), 2 * X @ W, rtol=1e-5)


def test_several_outputs_are_lists(spark, graph):
    x, y = dataset(spark).tensors
    w, session = restored()
    rows = TFPredictor(session, [tf.matmul(x, w), tf.cast(y, tf.float32) + x[:, :1]]).predict().collect()
    assert all(isinstance(row, list) and len(row) == 2 for row in rows)
    np.testing.assert_allclose(np.stack([row[1] for row in rows]), 7 + X[:, :1], rtol=1e-5)


def test_a_hard_coded_batch_serves_every_record(spark, graph):
    (x,) = dataset(spark, labels=False, batch_per_thread=4, hard_code_batch_size=True).tensors
    assert x.shape.as_list() == [4, 3]
    w, session = restored()
    found = TFPredictor(session, [tf.reshape(tf.matmul(x, w), [4, 2])]).predict().collect()
    np.testing.assert_allclose(np.stack(found), X @ W, rtol=1e-5)


def test_columns_and_strings(spark, graph):
    frame = spark.createDataFrame([(Vectors.dense(row.tolist()), int(row[0] > 0)) for row in X], ["x", "label"])
    data = TFDataset.from_dataframe(frame.repartition(3).sortWithinPartitions("label"), ["x"], ["label"])
    w, session = restored()
    expected = [row.x.toArray() @ W for row in data.row_source.dataframe.rdd.collect()]
    found = TFPredictor(session, tf.matmul(data.feature_tensors, w)).predict().collect()
    np.testing.assert_allclose(np.stack(found), np.stack(expected), rtol=1e-4)
    (text,) = TFDataset.from_string_rdd(spark.sparkContext.parallelize(["a", "bcd", ""], 1)).tensors
    lengths = TFPredictor(session, tf.strings.length(text)).predict().collect()
    assert [int(length) for length in lengths] == [1, 3, 0]


def test_another_dataset_can_feed_the_placeholders(spark, graph):
    x = v1.placeholder(tf.float32, [None, 3])
    w, session = restored()
    found = TFPredictor(session, [tf.matmul(x, w)], inputs=[x], dataset=dataset(spark, labels=False)).predict()
    np.testing.assert_allclose(np.stack(found.collect()), X @ W, rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda s, x: TFPredictor(s, ["x"]), ModelError, "must be tensors of a TensorFlow graph"),
        (lambda s, x: TFPredictor(s, [tf.constant(1.0)]), ModelError, "no dataset's"),
        (
            lambda s, x: TFPredictor(s, [x * v1.placeholder(tf.float32, [], "other")]),
            ModelError,
            "'other:0'.*placeholder_with_default",
        ),
        (lambda s, x: TFPredictor(s, [x], inputs=[x]), JobError, "must come with `dataset`"),
    ],
)
def test_a_mistake_is_told(spark, graph, make, error, message):
    x, _ = dataset(spark).tensors
    _, session = restored()
    with pytest.raises(error, match=message):
        make(session, x)


RESTORE = """
import sys
import numpy as np, tensorflow as tf
v1 = tf.compat.v1
with tf.Graph().as_default():
    x = v1.placeholder(tf.float32, [None, 3])
    w = v1.get_variable("w", [3, 1])
    with v1.Session() as session:
        v1.train.Saver().restore(session, sys.argv[1])
        np.save(sys.argv[2], session.run(tf.matmul(x, w), {x: np.load(sys.argv[3])}))
"""


@pytest.mark.extended
def test_a_saved_session_predicts_the_same_in_another_process(spark, graph, tmp_path):
    rows = [(row, row[:1]) for row in X]
    data = TFDataset.from_rdd(
        spark.sparkContext.parallelize(rows, 2),
        features=(tf.float32, [3]),
        labels=(tf.float32, [1]),
        batch_size=8,
    )
    w = v1.get_variable("w", [3, 1])
    output = tf.matmul(data.feature_tensors, w)
    optimizer = TFOptimizer(tf.reduce_mean(tf.square(output - data.label_tensors)), Adam(0.05))
    optimizer.optimize(MaxEpoch(2))
    predictions = np.stack(TFPredictor(optimizer.sess, [output]).predict().collect())
    path = v1.train.Saver().save(optimizer.sess, str(tmp_path / "model"))
    np.save(tmp_path / "x.npy", X)
    program = [sys.executable, "-c", RESTORE, path, str(tmp_path / "found.npy"), str(tmp_path / "x.npy")]
    subprocess.run(program, check=True, capture_output=True)
    np.testing.assert_allclose(np.load(tmp_path / "found.npy"), predictions, rtol=1e-5, atol=1e-6)


def test_a_graph_is_exported_with_its_values(spark, graph, tmp_path):
    x, _ = dataset(spark).tensors
    w, session = restored()
    output = tf.matmul(x, w, name="output")
    export_tf(session, str(tmp_path), [x], [output])
    assert json.loads((tmp_path / "graph_meta.json").read_text())["input_names"] == [x.name]
    with tf.Graph().as_default(), v1.Session() as other:
        tf.graph_util.import_graph_def(
            v1.GraphDef.FromString((tmp_path / "frozen_inference_graph.pb").read_bytes()), name=""
        )
        np.testing.assert_allclose(other.run("output:0", {x.name: X}), X @ W, rtol=1e-5)
