"""The learner suite on TensorFlow graphs, and what only graphs have."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keraunos.batch import Batch, BatchSpec
from keraunos.errors import DataError, ModelError
from keraunos.formats.registry import load_learner
from keraunos.job.model_formats import GRAPH
from keraunos.job.training_job import ModelSource
from keraunos.learners.graph_home import GraphHome
from keraunos.learners.graph_network import session_config
from keraunos.learners.graph_source import graph_source
from keraunos.testing.learner_batches import assert_close, assert_states_equal, kept, reduced, rows
from keraunos.testing.learner_suite import LearnerSuite
from tests.conformance import graph_models

v1 = tf.compat.v1


class TestTensorFlowGraph(LearnerSuite):
    models = graph_models

    def load(self, model):
        return load_learner(model.source())

    def vector(self, model):
        return model.read()

    def weights(self, model):
        return model.session.run([*model.variables, *model.state()])

    def trained(self, model):
        return len(model.variables)

    def predicted(self, model, inputs):
        found = model.predict(inputs)
        return list(found.values()) if isinstance(found, dict) else found

    def evaluated(self, model, batch):
        return model.evaluate(batch.inputs, batch.targets)

    def reader(self, model, batch):
        return GraphHome(model.source().archive).metric_states(BatchSpec.of(batch))

    def rows_in(self, state):
        return state[0][1]


def learner_of(source, example, *, rank=0, seed=7):
    learner = load_learner(source)
    learner.prepare(example, seed=seed, rank=rank)
    return learner


@pytest.mark.parametrize("resource", [True, False], ids=["resource", "ref"])
@pytest.mark.parametrize("optimizer", ["adam", "momentum"])
def test_variables_of_both_kinds_step_and_apply_like_a_plain_session(optimizer, resource):
    model = graph_models.dense(optimizer, resource=resource)
    stepping, applying = learner_of(model.source(), rows(8)), learner_of(model.source(), rows(8))
    for i in range(4):
        batch = rows(8, seed=i)
        stepping.step(batch)
        applying.apply(reduced([applying.gradient(batch)], applying.layout))
        model.train_on_batch(batch.inputs, batch.targets)
    assert_close(stepping.read(), model.read())
    assert_close(applying.read(), model.read())
    assert_states_equal(applying.optimizer_state(), stepping.optimizer_state())


def test_doubles_stay_doubles():
    model = graph_models.dense("sgd", dtype=tf.float64)
    batch = rows(8)
    wide = Batch(batch.inputs.astype("float64"), batch.targets, None, 8)
    learner = learner_of(model.source(), wide)
    assert learner.read().dtype == np.float64
    learner.apply(reduced([learner.gradient(wide)], learner.layout))
    model.train_on_batch(wide.inputs, wide.targets)
    np.testing.assert_allclose(learner.read(), model.read(), rtol=1e-12)


def test_variables_of_several_types_travel_in_the_widest():
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [None], name="x")
        single = v1.get_variable("single", [2], initializer=v1.constant_initializer([1.0, 2.0]))
        half = v1.get_variable("half", [1], dtype=tf.bfloat16, initializer=v1.constant_initializer(4.0))
        double = v1.get_variable("double", [1], dtype=tf.float64, initializer=v1.constant_initializer(1 / 3))
        whole = v1.get_variable("whole", [], dtype=tf.int32, initializer=v1.constant_initializer(3), trainable=False)
        terms = [tf.reduce_sum(tf.cast(each, tf.float64)) for each in (single, half, double, whole)]
        loss = tf.reduce_mean(tf.cast(x, tf.float64)) * tf.add_n(terms)
    batch = Batch(np.array([1, 3], "float32"), None, None, 2)
    learner = learner_of(graph_source(graph, inputs={"x": x}, loss=loss), batch)
    assert learner.layout.names == ("single", "half", "double")
    np.testing.assert_array_equal(learner.read(), [1, 2, 4, 1 / 3])
    contribution = learner.gradient(batch)
    np.testing.assert_allclose(contribution.values / 2, 2)
    learner.write(np.array([5, 6, 7, 8], "float64"))
    np.testing.assert_array_equal(learner.read(), [5, 6, 7, 8])
    learner.gradient(batch)
    assert learner.take_losses()[-1, 0] == 2 * (5 + 6 + 7 + 8 + 3)


def test_what_does_not_contribute_stays_untouched():
    model = graph_models.dense("sgd")
    source = graph_source(model.session, inputs=model.inputs, targets=model.targets, loss=model.loss)
    learner = learner_of(source, rows(4))
    assert "unused" not in learner.layout.names
    assert learner.layout.size == model.read().size


def test_a_step_runs_the_network_once_and_the_graph_does_not_grow():
    model = graph_models.batch_norm()
    with model.graph.as_default():
        # Counts how often the first layer is computed, for however many variables there are gradients of it.
        passes = v1.get_variable("passes", [], dtype=tf.int64, initializer=v1.zeros_initializer(), trainable=False)
        model.session.run(passes.initializer)
        hidden = model.graph.get_tensor_by_name("add:0")
        with tf.control_dependencies([hidden]):
            counted = v1.assign_add(passes, 1).op
    updates = [*model.graph.get_collection(v1.GraphKeys.UPDATE_OPS), counted]
    learner = learner_of(model.source(updates=updates), rows(8))
    graph = learner._network.graph
    operations = len(graph.get_operations())
    for i in range(3):
        learner.gradient(rows(8, seed=i))
        learner.write(learner.read())
    learner.step(rows(8))
    assert 4 in [int(value) for value in learner.optimizer_state() if value.dtype == np.int64]
    assert len(graph.get_operations()) == operations
    assert graph.finalized


def test_each_steps_loss_is_told():
    model = graph_models.dense("sgd")
    learner = learner_of(model.source(), rows(4))
    expected = []
    for count in (4, 2):
        batch = rows(count, seed=count)
        expected.append([model.evaluate(batch.inputs, batch.targets)["loss"], count])
        learner.step(batch)
        model.train_on_batch(batch.inputs, batch.targets)
    learner.evaluate(rows(3))
    np.testing.assert_allclose(learner.take_losses(), expected, rtol=1e-5)
    assert learner.take_losses().shape == (0, 2)


def test_dropout_is_drawn_anew_each_step_and_off_in_evaluation():
    model, batch = graph_models.dropout(), rows(16)
    learner = learner_of(model.source(), batch)
    first, second = (kept(learner.gradient(batch)).values for _ in range(2))
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(learner.predict(batch.inputs), learner.predict(batch.inputs))
    np.testing.assert_allclose(learner.predict(batch.inputs), model.predict(batch.inputs), rtol=1e-5, atol=1e-6)


def test_batch_statistics_move_in_training_and_are_used_in_predictions():
    model = graph_models.batch_norm()
    learner = learner_of(model.source(), rows(8))
    for i in range(3):
        learner.step(rows(8, seed=i))
        model.train_on_batch(rows(8, seed=i).inputs, rows(8, seed=i).targets)
    assert_close(learner.read(), model.read())
    inputs = rows(5).inputs
    np.testing.assert_allclose(learner.predict(inputs), model.predict(inputs), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(learner.predict(inputs[:1]), model.predict(inputs)[:1], rtol=1e-4, atol=1e-6)


def test_a_single_row_keeps_its_dimension_where_the_graph_squeezes():
    model = graph_models.dense("sgd")
    with model.graph.as_default():
        squeezed = tf.squeeze(model.outputs["probabilities"][:, :1])
    learner = load_learner(model.source(outputs={"first": squeezed}))
    for count in (1, 2, 5):
        inputs = rows(count).inputs
        np.testing.assert_allclose(learner.predict(inputs), model.predict(inputs)[:, 0], rtol=1e-5)


def test_a_graph_with_a_fixed_number_of_rows_predicts_any_number():
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [4, 2], name="x")
        weights = v1.get_variable("w", [2, 1], initializer=v1.ones_initializer())
        out = tf.matmul(x, weights)
    learner = load_learner(graph_source(graph, inputs={"x": x}, outputs={"out": out}))
    for count in (1, 4, 6):
        inputs = np.arange(2 * count, dtype="float32").reshape(count, 2)
        np.testing.assert_allclose(learner.predict(inputs)[:, 0], inputs.sum(axis=1))


def test_rows_take_the_placeholders_shape_and_type():
    graph = tf.Graph()
    with graph.as_default():
        image = v1.placeholder(tf.float32, [None, 2, 3, 1], name="image")
        label = v1.placeholder(tf.int32, [None, 1], name="label")
        text = v1.placeholder(tf.string, [None], name="text")
        length = tf.cast(tf.strings.length(text), tf.float32)
        weights = v1.get_variable("w", [6], initializer=v1.ones_initializer())
        rows_ = tf.reduce_sum(tf.reshape(image, [-1, 6]) * weights, axis=1) + length
        loss = tf.reduce_mean(rows_ - tf.cast(label[:, 0], tf.float32))
    source = graph_source(
        graph, inputs={"image": image, "text": text}, targets={"label": label}, loss=loss, outputs={"out": rows_}
    )
    batch = Batch(
        {"image": np.ones((2, 6), "uint8"), "text": np.array([b"ab", b"c"], dtype=object)},
        np.array([1.0, 2.0]),
        None,
        2,
    )
    learner = learner_of(source, batch)
    learner.gradient(batch)
    assert learner.take_losses()[0, 0] == 6.0
    np.testing.assert_array_equal(learner.predict(batch.inputs), [8, 7])
    wrong = Batch({**batch.inputs, "image": np.ones((2, 5))}, batch.targets, None, 2)
    with pytest.raises(DataError, match=r"placeholder 'image:0'.*Received: 2 rows of shape \(5,\)"):
        learner.gradient(wrong)
    with pytest.raises(DataError, match="Missing: 'text'. Received: 'image'"):
        learner.predict({"image": np.ones((2, 6))})


def test_what_the_graph_was_not_given_for_is_refused():
    model, batch = graph_models.dense("sgd"), rows(4)
    alone = learner_of(model.source(train_op=None, gradients=None, variables=None), batch)
    with pytest.raises(ModelError, match="no `train_op`.*send='gradients'"):
        alone.step(batch)
    with pytest.raises(ModelError, match="without `gradients`.*rule='adam'"):
        alone.apply(alone.read())
    stepping = learner_of(model.source(gradients=None), batch)
    with pytest.raises(ModelError, match="without a gradient to share.*send='updates'"):
        stepping.gradient(batch)
    with pytest.raises(ModelError, match="cannot be set. Received: 0.1"):
        stepping.learning_rate = 0.1
    assert np.isnan(stepping.learning_rate)
    with pytest.raises(ModelError, match="weighs its rows itself"):
        stepping.step(Batch(batch.inputs, batch.targets, np.ones(4, "float32"), 4))


def test_a_train_op_that_needs_the_batch_to_apply_is_refused():
    model = graph_models.dense("sgd")
    with model.graph.as_default():
        rate = tf.reduce_mean(model.inputs["x"])
        optimizer = v1.train.GradientDescentOptimizer(rate)
        step = optimizer.apply_gradients(list(zip(model.gradients, model.variables, strict=True)))
    with pytest.raises(ModelError, match="without a batch.*does not for 'first/kernel'"):
        learner_of(model.source(train_op=step), rows(4))


def test_a_graph_of_a_tensorflow_1_program_trains_where_nothing_is_switched_off(tmp_path):
    program = Path(__file__).with_name("tensorflow1_program.py")
    subprocess.run([sys.executable, program, tmp_path / "told.npz"], check=True, capture_output=True, timeout=280)
    told = np.load(tmp_path / "told.npz")
    batch = Batch(told["x"], told["y"], None, 6)
    assert tf.executing_eagerly()
    sharing = learner_of(ModelSource(told["loss_only"].tobytes(), "tensorflow", format=GRAPH), batch)
    assert_close(sharing.gradient(batch).values[: told["gradient"].size] / 6, told["gradient"])
    stepping = learner_of(ModelSource(told["stepping"].tobytes(), "tensorflow", format=GRAPH), batch)
    for _ in told["losses"]:
        stepping.step(batch)
    np.testing.assert_allclose(stepping.take_losses()[:, 0], told["losses"], rtol=1e-4)
    assert_close(stepping.read(), told["parameters"], limit=1e-4)
    np.testing.assert_allclose(stepping.predict(batch.inputs), told["out"], rtol=1e-3, atol=1e-5)


def test_a_variable_in_parts_is_exchanged_in_parts():
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        parts = v1.get_variable("w", [4, 1], partitioner=v1.fixed_size_partitioner(2))
        loss = tf.reduce_mean(tf.matmul(x, tf.convert_to_tensor(parts)))
    batch = Batch(np.arange(8, dtype="float32").reshape(2, 4), None, None, 2)
    for variables in (None, [parts]):
        learner = learner_of(graph_source(graph, inputs={"x": x}, loss=loss, variables=variables), batch)
        assert learner.layout.names == ("w/part_0", "w/part_1")
        np.testing.assert_allclose(learner.gradient(batch).values / 2, [2, 3, 4, 5])


def test_lookup_tables_are_filled():
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.string, [None], name="x")
        pairs = tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "b"]), tf.constant([1.0, 2.0]))
        table = tf.lookup.StaticHashTable(pairs, -1.0)
        v1.get_variable("w", [1], initializer=v1.ones_initializer())
        out = table.lookup(x) * graph.get_collection(v1.GraphKeys.TRAINABLE_VARIABLES)[0]
    learner = load_learner(graph_source(graph, inputs={"x": x}, outputs={"out": out}))
    np.testing.assert_array_equal(learner.predict(np.array([b"b", b"a", b"?"], dtype=object)), [2, 1, -1])


@pytest.mark.parametrize(
    ("environment", "intra", "inter", "devices"),
    [
        ({}, 0, -1, ""),
        ({"OMP_NUM_THREADS": "2"}, 2, -1, ""),
        ({"OMP_NUM_THREADS": "2", "TF_NUM_INTRAOP_THREADS": "4", "TF_NUM_INTEROP_THREADS": "3"}, 4, 3, ""),
        ({"CUDA_VISIBLE_DEVICES": "3"}, 0, -1, "0"),
        ({"CUDA_VISIBLE_DEVICES": "2,5"}, 0, -1, "0,1"),
        ({"CUDA_VISIBLE_DEVICES": ""}, 0, -1, ""),
    ],
)
def test_a_session_uses_the_cores_and_the_devices_of_its_task(environment, intra, inter, devices):
    config = session_config(environment)
    assert config.intra_op_parallelism_threads == intra
    assert config.inter_op_parallelism_threads == inter
    assert config.gpu_options.visible_device_list == devices
    assert config.gpu_options.allow_growth
    assert config.allow_soft_placement
