from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from keraunos.errors import ModelError
from keraunos.learners.graph_archive import GraphArchive
from keraunos.parameters import Layout

LAYOUT = Layout(("w", "b", "moving"), ((2, 2), (), (3,)), trainable=2)
NAMES = st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=3)
VALUES = st.sampled_from(["float32", "float64", "int64", "bool", "uint8"]).flatmap(
    lambda kind: hnp.arrays(kind, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
)
ARCHIVES = st.builds(
    GraphArchive,
    graph=st.binary(max_size=64),
    layout=st.just(LAYOUT),
    parameters=hnp.arrays("float32", LAYOUT.size).map(lambda vector: vector.tobytes()),
    local=st.dictionaries(st.text(max_size=8), VALUES, max_size=3),
    inputs=NAMES,
    targets=NAMES,
    loss=st.none() | st.text(max_size=8),
    train_op=st.none() | st.text(max_size=8),
    derivatives=st.none() | st.tuples(st.text(max_size=8)),
    gradients=st.none() | st.tuples(),
    updates=st.lists(st.text(max_size=8), max_size=3).map(tuple),
    outputs=NAMES,
    metrics=NAMES,
    feeds=st.dictionaries(st.text(max_size=8), st.tuples(VALUES, VALUES), max_size=2),
)


@given(ARCHIVES)
def test_an_archive_comes_back_from_its_bytes(archive):
    back = GraphArchive.from_bytes(archive.to_bytes())
    assert back.to_bytes() == archive.to_bytes()
    for each in fields(GraphArchive):
        if each.name not in ("local", "feeds"):
            assert getattr(back, each.name) == getattr(archive, each.name), each.name
    assert list(back.local) == list(archive.local)
    for name, value in archive.local.items():
        assert back.local[name].dtype == value.dtype
        np.testing.assert_array_equal(back.local[name], value)
    for name, pair in archive.feeds.items():
        np.testing.assert_array_equal(back.feeds[name][0], pair[0])
        np.testing.assert_array_equal(back.feeds[name][1], pair[1])


def test_the_vector_is_replaced_and_read_by_name():
    archive = GraphArchive(b"graph", LAYOUT, np.arange(8, dtype=np.float32).tobytes(), local={"step": np.int64(3)})
    changed = archive.with_vector(np.arange(8, dtype=np.float32) * 10)
    np.testing.assert_array_equal(archive.vector(), np.arange(8))
    found = GraphArchive.from_bytes(changed.to_bytes()).values()
    assert set(found) == {"step", "w", "b", "moving"}
    assert found["step"] == 3
    np.testing.assert_array_equal(found["w"], [[0, 10], [20, 30]])
    np.testing.assert_array_equal(found["moving"], [50, 60, 70])
    with pytest.raises(ModelError, match=r"must have 8 elements. Received: shape \(7,\)"):
        archive.with_vector(np.zeros(7, np.float32))


def test_types_that_numpy_does_not_know_are_kept():
    archive = GraphArchive(b"", LAYOUT, bytes(32), local={"half": np.array([1.5, -2], dtype=ml_dtypes.bfloat16)})
    back = GraphArchive.from_bytes(archive.to_bytes()).local["half"]
    assert back.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(back.astype("float32"), [1.5, -2])


@pytest.mark.parametrize("blob", [b"", b"PK\x03\x04 a Keras archive"])
def test_other_bytes_are_refused(blob):
    with pytest.raises(ModelError, match="no archive of a TensorFlow graph"):
        GraphArchive.from_bytes(blob)


def test_an_archive_needs_no_tensorflow():
    archive = GraphArchive(b"graph", LAYOUT, bytes(32), local={"step": np.int64(1)})
    program = (
        "import sys\n"
        "from keraunos.learners.graph_archive import GraphArchive\n"
        "archive = GraphArchive.from_bytes(sys.stdin.buffer.read())\n"
        "archive = archive.with_vector(archive.vector() + 1)\n"
        "assert 'tensorflow' not in sys.modules and 'keras' not in sys.modules\n"
        "sys.stdout.buffer.write(archive.to_bytes())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], input=archive.to_bytes(), capture_output=True, check=True)
    expected = replace(archive, parameters=np.ones(8, np.float32).tobytes())
    assert done.stdout == expected.to_bytes()
