"""A stream of rows that breaks off is told from rows that are wrong."""

import pyarrow as pa
import pytest

from keraunos.worker.incoming import RowsLost, received

BATCH = pa.RecordBatch.from_pydict({"x": [1.0, 2.0, 3.0]})


def stream(length=None):
    """Batches read from a stream of which only the first bytes have come."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, BATCH.schema) as writer:
        for _ in range(3):
            writer.write_batch(BATCH)
    whole = sink.getvalue().to_pybytes()
    yield from pa.ipc.open_stream(whole if length is None else whole[: int(len(whole) * length)])


def test_whole_streams_go_through():
    assert [each.num_rows for each in received(stream())] == [3, 3, 3]


@pytest.mark.parametrize("length", [0.0, 0.01, 0.1, 0.5, 0.8])
def test_a_stream_that_breaks_off_is_lost(length):
    with pytest.raises(RowsLost, match="stopped coming"):
        list(received(stream(length)))


def test_what_else_goes_wrong_stays_what_it_is():
    def wrong():
        yield BATCH
        raise pa.ArrowInvalid("Could not convert 'a' with type str: tried to convert to double")

    with pytest.raises(pa.ArrowInvalid, match="Could not convert"):
        list(received(wrong()))
