"""From live graphs to model sources: what is taken, what is left out, and what is refused on the driver."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from keraunos.errors import ModelError
from keraunos.learners.graph_archive import GraphArchive
from keraunos.learners.graph_source import graph_source, values_into_session
from tests.conformance import graph_models

v1 = tf.compat.v1


def regression(*, resource=True, extra=None):
    """A graph with a straight line in it, and whatever `extra` adds to the prediction."""
    graph = tf.Graph()
    with graph.as_default(), v1.variable_scope("", use_resource=resource):
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        y = v1.placeholder(tf.float32, [None, 1], name="y")
        w = v1.get_variable("w", [2, 1], initializer=v1.constant_initializer([[1.0], [2.0]]))
        out = tf.matmul(x, w, name="out") if extra is None else tf.add(tf.matmul(x, w), extra(x), name="out")
        tf.reduce_mean(tf.square(out - y), name="loss")
    return graph


def taken(given, **changes):
    parts = {"inputs": {"x": "x:0"}, "targets": {"y": "y:0"}, "loss": "loss:0", **changes}
    return GraphArchive.from_bytes(graph_source(given, **parts).archive)


def test_only_what_is_needed_travels():
    graph = regression()
    with graph.as_default():
        v1.get_variable("unused", [1000, 1000])
        v1.train.AdamOptimizer().minimize(graph.get_tensor_by_name("loss:0"))
        v1.train.Saver()
    archive = taken(graph, outputs={"out": "out"})
    assert archive.layout.names == ("w",)
    assert archive.local == {}
    np.testing.assert_array_equal(archive.vector(), [1, 2])
    assert len(archive.graph) < 20_000
    assert len(archive.graph) + len(archive.parameters) < len(archive.to_bytes()) < 1.2 * len(archive.graph)


def test_a_million_parameters_take_little_more_than_their_bytes():
    start = np.random.default_rng(0).normal(size=(1000, 1000)).astype("float32")
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [None, 1000], name="x")
        # The initial value is a constant in the graph, which must not travel beside the variable.
        weights = v1.get_variable("weights", initializer=start)
        tf.reduce_mean(tf.square(tf.matmul(x, weights) - x), name="loss")
    archive = graph_source(graph, inputs={"x": "x:0"}, loss="loss:0").archive
    assert len(archive) < 1.02 * start.nbytes
    np.testing.assert_array_equal(GraphArchive.from_bytes(archive).vector(), start.ravel())


@pytest.mark.parametrize("resource", [True, False], ids=["resource", "ref"])
def test_values_come_from_the_session_and_go_back_into_it(resource):
    graph = regression(resource=resource)
    with graph.as_default():
        line = v1.get_variable("w2", [3], use_resource=resource)
        variables = v1.global_variables()
        initializer = v1.global_variables_initializer()
    with v1.Session(graph=graph) as session:
        session.run(initializer)
        session.run(variables[0].initializer, {variables[0].initializer.inputs[1]: [[5.0], [6.0]]})
        source = graph_source(session, inputs={"x": "x"}, targets={"y": "y"}, loss="loss")
        archive = GraphArchive.from_bytes(source.archive)
        np.testing.assert_array_equal(archive.vector(), [5, 6])
        before, operations = session.run(line), len(graph.get_operations())
        graph.finalize()
        for value in ([7, 8], [9, 10]):
            values_into_session(session, archive.with_vector(np.array(value, np.float32)).to_bytes())
            np.testing.assert_array_equal(session.run("w:0" if not resource else variables[0]).ravel(), value)
        np.testing.assert_array_equal(session.run(line), before)
        assert len(graph.get_operations()) == operations


def test_variables_that_begin_with_one_value_get_each_its_own():
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        zeros = tf.zeros([2])
        first, second = v1.Variable(zeros, name="first"), v1.Variable(zeros, name="second")
        tf.reduce_mean(x * first + second, name="loss")
    archive = GraphArchive.from_bytes(graph_source(graph, inputs={"x": x}, loss="loss").archive)
    with v1.Session(graph=graph) as session:
        values_into_session(session, archive.with_vector(np.arange(4, dtype=np.float32)).to_bytes())
        np.testing.assert_array_equal(session.run(first), [0, 1])
        np.testing.assert_array_equal(session.run(second), [2, 3])


def test_values_go_only_into_a_session_that_has_the_variables():
    archive = graph_source(regression(), inputs={"x": "x"}, targets={"y": "y"}, loss="loss").archive
    with v1.Session(graph=tf.Graph()) as session, pytest.raises(ModelError, match="has no 'w'"):
        values_into_session(session, archive)


def test_the_gradient_is_added_once():
    graph = regression()
    first = taken(graph)
    count = len(graph.get_operations())
    assert taken(graph).derivatives == first.derivatives
    assert len(graph.get_operations()) == count


def test_given_values_take_the_place_of_the_initial_ones():
    np.testing.assert_array_equal(taken(regression(), values={"w": [[3], [4]]}).vector(), [3, 4])
    with pytest.raises(
        ModelError, match=r"must have the variable's shape. Expected: \(2, 1\) for 'w'. Received: \(3,\)"
    ):
        taken(regression(), values={"w:0": [1, 2, 3]})


def test_a_graph_that_only_predicts_has_all_its_floats_in_the_vector():
    archive = GraphArchive.from_bytes(
        graph_source(graph_models.batch_norm().session, inputs={"x": "x"}, outputs={"out": "probabilities"},
                     feeds={"training": False}).archive
    )  # fmt: skip
    assert archive.layout.names[:5] == ("first/kernel", "first/bias", "gamma", "out/kernel", "out/bias")
    assert archive.layout.trainable == 5
    assert set(archive.layout.names[5:]) == {"moving_mean", "moving_variance"}
    assert archive.derivatives is None
    assert archive.train_op is None


def test_a_step_of_several_operations():
    model = graph_models.dense("adam")
    with model.graph.as_default():
        counter = v1.get_variable("counter", [], dtype=tf.int64, initializer=v1.zeros_initializer())
        count = v1.assign_add(counter, 1)
    archive = GraphArchive.from_bytes(
        graph_source(model.graph, inputs=model.inputs, targets=model.targets, train_op=[model.train_op, count]).archive
    )
    assert "counter" in archive.optimizer
    assert {"global_step", "beta1_power", "first/kernel/Adam"} <= set(archive.optimizer)
    assert archive.loss is None
    assert set(archive.layout.names) == {variable.op.name for variable in model.variables}


def test_float_types():
    wide = graph_models.dense("sgd", dtype=tf.float64)
    source = wide.source()
    assert source.floatx == "float64"
    assert GraphArchive.from_bytes(source.archive).layout.dtype == "float64"
    assert graph_models.dense("sgd").source().floatx == "float32"


WRONG = {
    "a placeholder that nobody feeds": (
        {"targets": {}},
        r"`loss` needs 'y:0', which nothing feeds. Expected: every placeholder in `inputs`, `targets` or `feeds`.",
    ),
    "a name that is not there": (
        {"outputs": {"prediction": "ot:0"}},
        r"`outputs\['prediction'\]` must name a tensor of the graph. Received: 'ot:0'.*Did you mean 'out:0'",
    ),
    "an input that is not there": ({"inputs": {"x": "nothing"}}, r"`inputs\['x'\]` must name a tensor"),
    "a loss for each row": ({"loss": "sub:0"}, r"`loss` must be a scalar.*Received: 'sub:0' of shape \(None, 1\)"),
    "a metric for each row": ({"metrics": {"error": "sub:0"}}, r"`metrics\['error'\]` must be a scalar"),
    "an output that needs labels": (
        {"outputs": {"error": "sub:0"}},
        r"`outputs\['error'\]` must not depend on labels.*needs 'y:0'",
    ),
    "a feed of another shape": ({"feeds": {"x": [1.0, 2.0]}}, r"`feeds` must give 'x:0' values of its shape"),
    "a feed of another type": ({"feeds": {"x": "much"}}, r"`feeds` has a value for 'x:0' that is no float32"),
    "a variable that is none": ({"variables": ["out:0"]}, "`variables` must be variables of the graph"),
    "gradients alone": ({"gradients": ["sub:0"]}, "`gradients` must come with `train_op`.* and with `variables`"),
    "something else": ({"loss": 3.0}, r"`loss` must be a tensor of the graph, or its name. Received: 3.0"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_on_the_driver(case):
    changes, message = WRONG[case]
    with pytest.raises(ModelError, match=message):
        taken(regression(), **changes)


def test_a_tensor_of_another_graph():
    graph, other = regression(), regression()
    with pytest.raises(
        ModelError, match=r"`inputs\['x'\]` must be a tensor.*Received: 'x:0', which belongs to another"
    ):
        taken(graph, inputs={"x": other.get_tensor_by_name("x:0")})


def test_neither_a_graph_nor_a_session():
    with pytest.raises(ModelError, match="must be given as a tf.Session or a tf.Graph. Received: 'graph.pb'"):
        taken("graph.pb")


def test_variables_without_values():
    with v1.Session(graph=regression()) as session, pytest.raises(ModelError, match="tf.global_variables_initializer"):
        taken(session)


def test_a_loss_without_variables():
    graph = tf.Graph()
    with graph.as_default():
        tf.reduce_mean(v1.placeholder(tf.float32, [None], name="x"), name="loss")
    with pytest.raises(ModelError, match="The loss depends on none of the trainable variables"):
        graph_source(graph, inputs={"x": "x"}, loss="loss")


def test_a_finalized_graph_takes_no_gradient_but_a_train_op():
    model = graph_models.dense("sgd")
    model.graph.finalize()
    parts = {"inputs": model.inputs, "targets": model.targets}
    with pytest.raises(ModelError, match="finalized.*before it is finalized, or give `train_op`"):
        graph_source(model.session, loss=model.loss, **parts)
    source = graph_source(model.session, loss=model.loss, train_op=model.train_op, **parts)
    assert GraphArchive.from_bytes(source.archive).derivatives is None


def test_python_inside_a_graph_cannot_travel():
    graph = regression(extra=lambda x: v1.py_func(lambda rows: rows[:, :1], [x], tf.float32))
    with pytest.raises(ModelError, match="Python function.*cannot travel"):
        taken(graph)


def test_rows_that_the_graph_reads_itself_are_refused():
    def read(x):
        dataset = tf.data.Dataset.from_tensors(np.ones((1, 1), "float32")).repeat()
        return v1.data.make_one_shot_iterator(dataset).get_next()

    graph = regression(extra=read)
    with pytest.raises(ModelError, match="reads rows from 'IteratorGetNext'.*through placeholders"):
        taken(graph)


def test_sparse_gradients_cannot_be_put_into_a_train_op():
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.int32, [None], name="x")
        table = v1.get_variable("table", [4, 2])
        loss = tf.reduce_mean(tf.gather(table, x), name="loss")
        optimizer = v1.train.GradientDescentOptimizer(0.1)
        pairs = optimizer.compute_gradients(loss)
        step = optimizer.apply_gradients(pairs)
    with pytest.raises(ModelError, match="must be dense.*tf.convert_to_tensor before apply_gradients"):
        graph_source(graph, inputs={"x": x}, loss=loss, train_op=step, variables=[table], gradients=[pairs[0][0]])


def test_variables_that_were_named_are_exchanged_though_the_step_leaves_them_alone():
    model = graph_models.dense("sgd")
    with model.graph.as_default():
        unused = next(each for each in v1.global_variables() if each.op.name == "unused")
    named = [*model.variables, unused]
    archive = GraphArchive.from_bytes(model.source(loss=None, gradients=None, variables=named).archive)
    assert archive.layout.names == tuple(each.op.name for each in named)
