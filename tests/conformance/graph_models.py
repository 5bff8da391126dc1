"""Small TensorFlow graphs, each with a session that steps it plainly, for the suites that test graphs.

A `GraphModel` answers what the suites ask of the model that judges: it is stepped, asked and measured by its own
session, with TensorFlow's own optimizers.
"""

from __future__ import annotations

import functools

import numpy as np
import tensorflow as tf

from keraunos.batch import Batch
from keraunos.learners.graph_source import graph_source
from keraunos.testing.learner_batches import FEATURES, rows

v1 = tf.compat.v1


class GraphModel:
    """A graph, a session, and the names of what is in it; `resource` says of which kind its variables are."""

    def __init__(self, build, optimizer="sgd", *, resource=True, dtype=tf.float32, seed=3):
        self.graph = tf.Graph()
        self.feeds = {}
        self.metrics = {}
        with self.graph.as_default(), v1.variable_scope("", use_resource=resource, dtype=dtype):
            v1.set_random_seed(seed)
            self.inputs, self.targets, self.outputs, self.loss = build(self)
            made = {
                "sgd": lambda: v1.train.GradientDescentOptimizer(0.1),
                "adam": lambda: v1.train.AdamOptimizer(0.01),
                "momentum": lambda: v1.train.MomentumOptimizer(0.1, 0.9),
            }[optimizer]()
            self.step_counter = v1.train.get_or_create_global_step()
            found = made.compute_gradients(self.loss)
            pairs = [(tf.convert_to_tensor(gradient), each) for gradient, each in found if gradient is not None]
            self.gradients, self.variables = ([each[i] for each in pairs] for i in (0, 1))
            with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
                self.train_op = made.apply_gradients(pairs, global_step=self.step_counter)
            initialize = v1.global_variables_initializer()
        self.session = v1.Session(graph=self.graph)
        self.session.run(initialize)

    def source(self, **changes):
        """The model as a worker gets it, with everything that it can do."""
        given = {
            "inputs": self.inputs,
            "targets": self.targets,
            "outputs": self.outputs,
            "loss": self.loss,
            "train_op": self.train_op,
            "variables": self.variables,
            "gradients": self.gradients,
            "feeds": self.feeds,
            "metrics": self.metrics,
            **changes,
        }
        return graph_source(self.session, **given)

    def state(self):
        """The variables that training moves without a gradient."""
        with self.graph.as_default():
            return [each for each in v1.global_variables() if "moving" in each.name]

    def read(self):
        """The exchanged variables in one vector."""
        values = self.session.run([*self.variables, *self.state()])
        return np.concatenate([np.reshape(value, -1) for value in values])

    def train_on_batch(self, inputs, targets):
        self.session.run(self.train_op, self.fed(inputs, targets, place=0))

    def evaluate(self, inputs, targets):
        measured = {"loss": self.loss, **self.metrics}
        return {name: float(value) for name, value in self._run(measured, inputs, targets).items()}

    def predict(self, inputs):
        found = self._run(self.outputs, inputs, None)
        return next(iter(found.values())) if len(found) == 1 else found

    def _run(self, tensors, inputs, targets):
        return self.session.run(tensors, self.fed(inputs, targets, place=1))

    def fed(self, inputs, targets, *, place):
        feeds = {tensor: values[place] for tensor, values in self.feeds.items()}
        for slots, arrays in ((self.inputs, inputs), (self.targets, targets)):
            given = arrays if isinstance(arrays, dict) else dict.fromkeys(slots, arrays)
            feeds.update({slots[name]: array for name, array in given.items() if array is not None})
        return feeds


def dense(optimizer, *, resource=True, dtype=tf.float32, build=None):
    """Two layers and a softmax; the accuracy is measured."""
    return GraphModel(functools.partial(build or _dense, dtype=dtype), optimizer, resource=resource, dtype=dtype)


def batch_norm(*, resource=True):
    """Batch statistics that move by update ops, behind a placeholder that says whether the model trains."""
    return GraphModel(_batch_norm, resource=resource)


def binary():
    """Two classes, of three that there might be."""
    return dense("sgd")


def dropout():
    """Dropout whose probability to keep a value is fed."""
    return GraphModel(_dropout)


def two_inputs():
    """Inputs by name, one of them whole numbers, in doubles where the graph has singles."""
    generator = np.random.default_rng(4)
    batches = [
        Batch(
            {"left": generator.normal(size=(5, 3)), "right": generator.integers(0, 4, (5, 2))},
            generator.normal(size=(5, 1)),
            None,
            5,
        )
        for _ in range(3)
    ]
    return GraphModel(_two_inputs), batches


def two_outputs():
    """A model with outputs `left` and `right`."""
    model = dense("sgd")
    with model.graph.as_default():
        model.outputs = {
            "left": model.outputs["probabilities"],
            "right": v1.get_default_graph().get_tensor_by_name("hidden:0"),
        }
    return model, [rows(4)]


def _layer(inputs, units, name):
    kernel = v1.get_variable(f"{name}/kernel", [inputs.shape[1], units])
    bias = v1.get_variable(f"{name}/bias", [units], initializer=v1.zeros_initializer())
    return tf.matmul(inputs, kernel) + bias


def _classified(model, hidden, x, y):
    logits = _layer(hidden, 3, "out")
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    right = tf.cast(tf.equal(tf.argmax(logits, 1), tf.cast(y, tf.int64)), tf.float32)
    model.metrics = {"accuracy": tf.reduce_mean(right)}
    return {"x": x}, {"y": y}, {"probabilities": tf.nn.softmax(logits, name="probabilities")}, loss


def _dense(model, dtype=tf.float32):
    x = v1.placeholder(dtype, [None, FEATURES], name="x")
    y = v1.placeholder(tf.int64, [None], name="y")
    # Nothing depends on it, so training must leave it alone.
    v1.get_variable("unused", [2])
    return _classified(model, tf.nn.relu(_layer(x, 8, "first"), name="hidden"), x, y)


def _batch_norm(model):
    x = v1.placeholder(tf.float32, [None, FEATURES], name="x")
    y = v1.placeholder(tf.int64, [None], name="y")
    training = v1.placeholder(tf.bool, [], name="training")
    model.feeds = {training: (True, False)}
    hidden = _layer(x, 8, "first")
    gamma = v1.get_variable("gamma", [8], initializer=v1.ones_initializer())
    moving = {
        name: v1.get_variable(f"moving_{name}", [8], initializer=start(), trainable=False)
        for name, start in (("mean", v1.zeros_initializer), ("variance", v1.ones_initializer))
    }
    mean, variance = tf.nn.moments(hidden, [0])
    for name, value in (("mean", mean), ("variance", variance)):
        update = v1.assign_sub(moving[name], 0.1 * (moving[name] - value))
        v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, update)
    mean = tf.cond(training, lambda: mean, lambda: tf.convert_to_tensor(moving["mean"]))
    variance = tf.cond(training, lambda: variance, lambda: tf.convert_to_tensor(moving["variance"]))
    return _classified(model, gamma * (hidden - mean) * tf.math.rsqrt(variance + 1e-3), x, y)


def _dropout(model):
    x = v1.placeholder(tf.float32, [None, FEATURES], name="x")
    y = v1.placeholder(tf.int64, [None], name="y")
    keep = v1.placeholder(tf.float32, [], name="keep")
    model.feeds = {keep: (0.5, 1.0)}
    return _classified(model, tf.nn.dropout(_layer(x, 8, "first"), rate=1 - keep), x, y)


def _two_inputs(model):
    left = v1.placeholder(tf.float32, [None, 3], name="left")
    right = v1.placeholder(tf.int32, [None, 2], name="right")
    y = v1.placeholder(tf.float32, [None, 1], name="y")
    table = v1.get_variable("table", [4, 2])
    found = tf.reshape(tf.nn.embedding_lookup(table, right), [-1, 4])
    out = _layer(tf.concat([left, found], axis=1), 1, "out")
    return {"left": left, "right": right}, {"y": y}, {"out": out}, tf.reduce_mean(tf.square(out - y))
