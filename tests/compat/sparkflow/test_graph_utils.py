import json

import pytest
import tensorflow as tf

from keraunos.compat.sparkflow import metagraph
from keraunos.compat.sparkflow.graph_utils import build_graph, generate_config
from keraunos.errors import ModelError
from tests.compat.sparkflow import models

v1 = tf.compat.v1


def scalar_graph(build):
    """A graph with one variable, and losses as `build` adds them."""

    def function():
        return build(v1.get_variable("w", [], initializer=v1.constant_initializer(3.0)))

    return metagraph.imported(build_graph(function))


def loss_in(graph):
    loss = metagraph.loss_of(graph)
    with metagraph.initialized(graph) as session:
        return float(session.run(loss))


def test_a_graph_is_the_json_of_its_metagraph_and_nothing_is_left_behind():
    before = len(v1.get_default_graph().get_operations())
    text = build_graph(models.gaussians_model)
    assert {"metaInfoDef", "graphDef", "collectionDef"} <= json.loads(text).keys()
    assert len(v1.get_default_graph().get_operations()) == before
    graph = metagraph.imported(text)
    assert graph.get_tensor_by_name("outer/Sigmoid:0").shape.as_list() == [None, 1]
    assert graph.get_collection("trainable_variables")[0].op.name == "dense/kernel"


@pytest.mark.parametrize("given", [None, lambda: None])
def test_what_builds_no_graph_is_refused(given):
    with pytest.raises(ModelError, match=r"`func` must"):
        build_graph(given)


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda w: v1.losses.add_loss(2 * w), 6.0),
        (lambda w: [v1.losses.add_loss(2 * w), v1.losses.add_loss(1 * w)][0], 9.0),
        (lambda w: [v1.losses.add_loss(1 * w), v1.add_to_collection("regularization_losses", 0.5 * w)][0], 4.5),
        (lambda w: 7 * w, 21.0),
        (lambda w: [v1.add_to_collection("regularization_losses", 0.5 * w), 7 * w][1], 22.5),
        (lambda w: [v1.losses.add_loss(2 * w), 7 * w][1], 6.0),
    ],
    ids=["collected", "several", "regularised", "returned", "returned and regularised", "collected before returned"],
)
def test_the_loss_is_what_was_collected_or_else_returned(build, expected):
    assert loss_in(scalar_graph(build)) == expected


def test_a_graph_without_a_loss_says_how_to_have_one():
    with pytest.raises(ModelError, match=r"must have a loss.*Return the loss, or register it with tf.losses.add_loss"):
        metagraph.loss_of(scalar_graph(lambda w: None))


def test_a_loss_that_is_not_one_number_is_refused():
    graph = scalar_graph(lambda w: tf.stack([w, w]))
    with pytest.raises(ModelError, match=r"A loss must be one number.*shape \(2,\)"):
        metagraph.loss_of(graph)


@pytest.mark.parametrize("text", ["", "{", '{"graph": 1}'])
def test_what_is_no_graph_is_refused(text):
    with pytest.raises(ModelError, match=r"`tensorflowGraph` must be"):
        metagraph.imported(text)


def test_a_name_that_is_not_in_the_graph():
    graph = metagraph.imported(build_graph(models.gaussians_model))
    with pytest.raises(ModelError, match=r"`tfOutput` .*'outer/Sigmoi:0'.* Did you mean 'outer/Sigmoid:0'\?.*'x:0'"):
        metagraph.tensor(graph, "outer/Sigmoi:0", "tfOutput")


def test_options_as_json():
    assert json.loads(generate_config(learning_rate=0.1, use_locking=True)) == {
        "learning_rate": 0.1,
        "use_locking": True,
    }
