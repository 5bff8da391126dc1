"""Columns of bytes: kept as they are, in memory and in files, from DataFrames and from RDDs."""

import itertools
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.batch import ArraySpec, BatchSpec
from keraunos.data.arrow_batches import ArrowReader
from keraunos.data.records import arrow_columns
from keraunos.errors import ColumnError, DataError, JobError
from keraunos.job.columns import Columns, Slot
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.schedule import Schedule
from keraunos.job.training_job import ModelSource, TrainingJob
from tests.data.test_shard import PLENTY, shard_of

TEXT = Slot("text", ("text",), kind="bytes")
COLUMNS = Columns((TEXT, Slot("x", ("x",))), (Slot("label", ("label",), kind="bytes"),))
BINARY = st.binary(max_size=6)


def table(values):
    return {
        "text": pa.array(values, pa.binary()),
        "x": pa.array(np.arange(len(values), dtype=np.float32)),
        "label": pa.array([f"l{len(value)}" for value in values]),
    }


def content(shard):
    return [
        (batch.inputs["text"].tolist(), batch.inputs["x"].tolist(), batch.targets["label"].tolist())
        for batch in itertools.chain(shard.batches(0, 4), shard.validation_batches(3))
    ]


@given(values=st.lists(BINARY, min_size=1, max_size=30), budget=st.sampled_from([1, 100, PLENTY]), data=st.data())
def test_every_value_comes_out_whole_wherever_and_however_it_was_kept(tmp_path_factory, values, budget, data):
    cut = data.draw(st.integers(0, len(values)))
    whole = table(values)
    parts = [{name: array.slice(*span) for name, array in whole.items()} for span in ((cut,), (0, cut))]
    kept = shard_of(COLUMNS, *parts, budget=budget, spool_dir=str(tmp_path_factory.mktemp("spool")))
    plain = shard_of(COLUMNS, whole)
    assert content(kept) == content(plain)
    assert kept.digest == plain.digest
    rows = [row for texts, numbers, labels in content(kept) for row in zip(numbers, texts, labels, strict=True)]
    assert sorted(rows) == [(n, each, b"l%d" % len(each)) for n, each in enumerate(values)]


@given(one=st.lists(BINARY, min_size=1, max_size=5), other=st.lists(BINARY, min_size=1, max_size=5))
def test_other_values_have_another_digest(one, other):
    digests = [shard_of(Columns((TEXT,)), {"text": pa.array(values, pa.binary())}).digest for values in (one, other)]
    assert (digests[0] == digests[1]) == (sorted(one) == sorted(other))


@pytest.mark.parametrize(
    "arrow_type", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(3), pa.string_view()]
)
def test_every_arrow_type_of_text_and_binary_is_read(arrow_type):
    values = ["äb", "xyz"]
    given_values = values if "string" in str(arrow_type) else [value.encode() for value in values]
    (block,) = ArrowReader([TEXT]).read({"text": pa.array(given_values, arrow_type)})
    assert block.tolist() == ["äb".encode(), b"xyz"]


def test_records_hold_bytes_text_or_both():
    records = [(b"\xff\x00", 1.0), ("ä", 2.0), (bytearray(b"c"), 3.0)]
    (batch,) = arrow_columns(records, ["text", "x"])
    text, x = ArrowReader([TEXT, Slot("x", ("x",))]).read(batch)
    assert text.tolist() == [b"\xff\x00", "ä".encode(), b"c"]
    np.testing.assert_array_equal(x, [1, 2, 3])
    assert [each["text"].to_pylist() for each in arrow_columns([b"one", "two"], ["text"])] == [[b"one", b"two"]]


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (None, r"'text' of the RDD holds None. Expected bytes or text.*Received: None in record 70"),
        (3.5, r"'text' of the RDD holds a float. Expected bytes or text.*3.5 in record 70"),
    ],
)
def test_a_record_without_bytes_among_those_with_them_is_told(last, message):
    with pytest.raises(DataError, match=message):
        list(arrow_columns([b"x"] * 70 + [last], ["text"]))


def test_a_null_in_a_column_of_bytes_is_told():
    with pytest.raises(DataError, match=r"Column 'text' holds a null.*in row 1"):
        ArrowReader([TEXT]).read({"text": pa.array(["a", None])})


def test_numbers_are_no_bytes_and_bytes_are_no_numbers():
    with pytest.raises(ColumnError, match=r"'text' feeds a model input of bytes.*Received: int64"):
        ArrowReader([TEXT]).read({"text": pa.array([1])})
    with pytest.raises(ColumnError, match=r"'text' has a type that no model input takes.*Received: string"):
        ArrowReader([Slot(None, ("text",))]).read({"text": pa.array(["a"])})


def test_a_batch_tells_that_it_holds_bytes_and_has_an_example():
    shard = shard_of(COLUMNS, table([b"a", b"bc"]))
    assert shard.spec.inputs["text"] == ArraySpec((), "object")
    example = BatchSpec.from_json(shard.spec.to_json()).example(3)
    assert example.inputs["text"].tolist() == [b""] * 3


@pytest.mark.parametrize("use", [{"stacked": True}, {"classes": 3}])
def test_bytes_are_neither_stacked_nor_classes(use):
    with pytest.raises(ColumnError, match=r"must be a model input or output of its own"):
        Slot("text", ("text",), kind="bytes", **use)


def test_class_weights_need_a_number():
    with pytest.raises(JobError, match=r"`classWeight` needs a label that is a class number"):
        shard_of(Columns((Slot("x", ("x",)),), (TEXT,)), class_weight={1: 2.0})


def test_a_keras_model_takes_no_bytes_as_labels():
    columns = Columns((Slot("x", ("x",)),), (TEXT,))
    with pytest.raises(ColumnError, match=r"'text' holds bytes, which only a TensorFlow graph takes") as caught:
        TrainingJob(ModelSource(b"", "jax"), columns, Schedule(), ExchangePlan.named("allreduce"), 1)
    assert re.search("Encode the column", str(caught.value))


def test_arrays_of_bytes_are_read_and_kept_only_as_what_a_front_makes_of_them():
    rows = {"text": pa.array([["a", "é"], ["", "b"]])}
    (block,) = ArrowReader([TEXT]).read(rows)
    assert block.tolist() == [[b"a", "é".encode()], [b"", b"b"]]
    with pytest.raises(DataError, match=r"'text' holds arrays of strings.*Received: rows of shape \(2,\)"):
        shard_of(Columns((TEXT,)), rows)
    kept = shard_of(Columns((Slot(None, ("text",), kind="bytes"),)), rows, front=Lengths())
    assert sorted(kept.example(2).inputs["lengths"].tolist()) == [[0, 1], [1, 2]]


class Lengths:
    """A front that counts the bytes of each value."""

    inputs = reads = ("text",)
    keeps = ()
    makes = ("lengths",)

    def encode(self, inputs):
        return {"lengths": np.vectorize(len)(inputs["text"])}


def test_slots_say_their_kind_in_json():
    assert Columns.from_json(COLUMNS.to_json()) == COLUMNS
    with pytest.raises(ColumnError, match=r"`kind` must be one of 'number', 'bytes', 'image'. Received: 'byte'"):
        Slot("text", ("text",), kind="byte")
