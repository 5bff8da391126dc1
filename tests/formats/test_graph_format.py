"""The format suite on TensorFlow graphs."""

import tensorflow as tf

from keraunos.job.exchange_plan import ExchangePlan
from keraunos.learners.graph_archive import GraphArchive
from keraunos.learners.graph_source import graph_source
from tests.conformance import graph_models
from tests.conformance.format_suite import FormatSuite
from tests.conformance.learner_models import FEATURES

v1 = tf.compat.v1


class TestGraphFormat(FormatSuite):
    name = "tensorflow_graph"
    features = FEATURES
    exchange = ExchangePlan("gradients", 1, "synchronous", "own")

    def model(self):
        return GraphArchive.from_bytes(graph_models.dense("adam").source().archive)

    def vector(self, model):
        return model.vector()

    def targets(self, inputs):
        return (inputs[:, 0] > 0).astype("int64") + (inputs[:, 1] > 0)

    def untrusted(self):
        graph = tf.Graph()
        with graph.as_default(), v1.Session(graph=graph) as session:
            x = v1.placeholder(tf.string, [None], name="x")
            out = tf.map_fn(tf.io.read_file, x)
            source = graph_source(session, inputs={"x": x}, outputs={"out": out})
        return source.archive, "tensorflow.raw_ops.ReadFile"

    def test_rows_are_served_as_they_are(self):
        inputs = self.batch(3).inputs
        assert self.kind.as_served(inputs, 64) is inputs
