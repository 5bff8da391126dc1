"""What data layers take, told by what the network does with them."""

from __future__ import annotations

import pytest

from keraunos.compat.paddle.config_parser import (
    ContextProjection,
    Evaluator,
    Inputs,
    Layer,
    Outputs,
    Settings,
    TableProjection,
    parse_config,
)
from keraunos.compat.paddle.lowering.data_kinds import DataKind, inferred
from keraunos.compat.paddle.lowering.network import lower
from keraunos.errors import JobError, ModelError
from tests.compat.paddle.lowering.sequence_networks import NETWORKS, parsed

KINDS = {
    "text_classifier": {"words": "integer_value_sequence", "label": "integer_value"},
    "tagger": {"words": "integer_value_sequence", "tags": "integer_value_sequence"},
    "listener": {"sound": "dense_vector_sequence", "spoken": "integer_value_sequence"},
    "attention": {"sound": "dense_vector_sequence", "label": "integer_value"},
    "next_word": {"words": "integer_value_sequence", "next": "integer_value_sequence"},
    "ranker": {
        "documents": "dense_vector_sequence",
        "relevance": "dense_vector_sequence",
        "from": "integer_value",
        "count": "integer_value",
    },
}


def model(*layers, given=None, evaluators=()):
    """What the data layers of a network of these layers take."""
    names = [each["name"] for each in layers if each["type"] == "data"]

    def written():
        Settings(batch_size=1)
        Inputs(*names)
        Outputs(layers[-1]["name"])
        for each in layers:
            Layer(**each)
        for each in evaluators:
            Evaluator(**each)

    config = parse_config(written, "").model_config
    return {name: kind.name for name, kind in inferred(config, given).items()}


def data(name, size):
    return {"name": name, "type": "data", "size": size}


def fc(name, *inputs, size=2, **more):
    return {"name": name, "type": "fc", "inputs": list(inputs), "size": size, **more}


def cost(*inputs, type="multi-class-cross-entropy", **more):  # noqa: A002  (as the language calls it)
    return {"name": "cost", "type": type, "inputs": list(inputs), **more}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_tell_what_they_take(name):
    assert {layer: kind.name for layer, kind in inferred(parsed(name)).items()} == KINDS[name]


def test_rows_are_no_sequences_where_nothing_asks_for_steps():
    found = model(data("x", 3), data("label", 2), fc("out", "x"), cost("out", "label"))
    assert found == {"x": "dense_vector", "label": "integer_value"}


def test_ids_of_a_table_without_steps_are_single():
    table = {"name": "rows", "type": "mixed", "size": 2, "inputs": [TableProjection("x")]}
    assert model(data("x", 9), data("label", 2), table, cost("rows", "label"))["x"] == "integer_value"


def test_steps_reach_through_layers_that_keep_them_and_to_labels_and_weights():
    found = model(
        data("x", 3), data("y", 3), data("label", 2), data("weight", 1), data("row", 4),
        fc("both", "x", "y", size=3),
        {"name": "near", "type": "mixed", "size": 9, "inputs": [ContextProjection("both", -1, 3)]},
        fc("out", "near", active_type="softmax"),
        fc("other", "row"),
        cost("out", "label", "weight"),
    )  # fmt: skip
    assert found == {
        "x": "dense_vector_sequence",
        "y": "dense_vector_sequence",
        "label": "integer_value_sequence",
        "weight": "dense_vector_sequence",
        "row": "dense_vector",
    }


def test_pooling_ends_a_sequence():
    found = model(
        data("x", 3), data("label", 2), {"name": "one", "type": "max", "inputs": ["x"]}, fc("out", "one"),
        cost("out", "label"),
    )  # fmt: skip
    assert found == {"x": "dense_vector_sequence", "label": "integer_value"}


def test_what_is_given_is_kept_and_reaches_what_shares_its_steps():
    given = {"x": DataKind("dense_vector_sequence")}
    found = model(data("x", 3), data("label", 2), fc("out", "x"), cost("out", "label"), given=given)
    assert found == {"x": "dense_vector_sequence", "label": "integer_value_sequence"}


def test_costs_take_their_labels_for_what_they_are():
    pair = model(data("a", 1), data("b", 1), data("which", 1), cost("a", "b", "which", type="rank-cost"))
    assert pair == {"a": "dense_vector", "b": "dense_vector", "which": "dense_vector"}
    many = model(data("x", 3), data("label", 5), cost("x", "label", type="hsigmoid", num_classes=5))
    assert many == {"x": "dense_vector", "label": "integer_value"}
    weighed = model(data("x", 3), data("label", 5), data("weight", 1),
                    cost("x", "label", "weight", type="nce", num_classes=5))  # fmt: skip
    assert weighed == {"x": "dense_vector", "label": "integer_value", "weight": "dense_vector"}


def test_evaluators_tell_what_only_they_take():
    found = model(
        data("x", 3), data("label", 2), data("seen", 2), {"name": "h", "type": "recurrent", "inputs": ["x"]},
        fc("out", "h"), cost("out", "label"),
        evaluators=[{"name": "e", "type": "classification_error", "inputs": ["out", "seen"]}],
    )  # fmt: skip
    assert found["seen"] == "integer_value_sequence"


def test_a_kind_for_a_layer_that_is_none_is_refused():
    with pytest.raises(JobError, match="'y'.*|data layer"):
        model(
            data("x", 3), data("label", 2), fc("out", "x"), cost("out", "label"), given={"y": DataKind("dense_vector")}
        )


def test_rows_where_steps_are_needed_are_refused_by_the_layer_that_needs_them():
    with pytest.raises(ModelError, match="Layer 'gru'.*'sound', must be a sequence of vectors.*Received: one row"):
        lower(parsed("listener"), {"sound": DataKind("dense_vector")})
