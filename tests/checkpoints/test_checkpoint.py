import types

import ml_dtypes
import numpy as np
import pytest

from keraunos.checkpoints.checkpoint import Checkpoint
from keraunos.errors import CheckpointError


@pytest.mark.parametrize("number", [-1, 1.0, True, "1"])
def test_a_number_counts_up_from_zero(number):
    with pytest.raises(CheckpointError, match="number must be an integer from 0 up. Received"):
        Checkpoint(number, {}, {})


@pytest.mark.parametrize("name", ["", "a/b", "../a", ".hidden", "_own", "a b", "größe"])
def test_a_group_is_named_like_a_file(name):
    with pytest.raises(CheckpointError, match="begin with a letter or a digit. Received"):
        Checkpoint(1, {}, {name: []})


@pytest.mark.parametrize(
    "array", [np.array([object()]), np.zeros(2, [("a", "f4")]), np.zeros(2, "V3")], ids=["objects", "fields", "void"]
)
def test_arrays_are_the_same_bytes_in_any_process(array):
    with pytest.raises(CheckpointError, match="must hold numbers, booleans, dates, bytes or text"):
        Checkpoint(1, {}, {"group": [array]})


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"a": {"b": [0, {1}]}}, r"`facts.a.b\[1\]` must be plain data.*Received: set"),
        ({"a": np.zeros(2)}, "`facts.a` must be plain data.*Received: ndarray. Arrays go into `arrays`"),
        ({"a": {1: 2}}, "The keys of `facts.a` must be text, as in JSON. Received: 1"),
    ],
)
def test_facts_are_plain(facts, message):
    with pytest.raises(CheckpointError, match=message):
        Checkpoint(1, facts, {})


def test_facts_are_a_copy_in_plain_types():
    history = [1.0]
    facts = types.MappingProxyType({"history": history, "shape": (2, 3), "loss": np.float32(0.5), "n": np.int64(3)})
    checkpoint = Checkpoint(1, facts, {"bytes": [np.zeros(2, ml_dtypes.bfloat16)]})
    history.append(2.0)
    assert checkpoint.facts == {"history": [1.0], "shape": [2, 3], "loss": 0.5, "n": 3}
    assert [type(value) for value in checkpoint.facts.values()] == [list, list, float, int]
