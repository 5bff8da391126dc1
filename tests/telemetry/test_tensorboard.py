"""Event files: what is written can be read here, and by TensorFlow; what TensorFlow wrote can be read here."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.errors import DataError
from keraunos.telemetry.tensorboard import EventWriter, read_events, read_scalars

numbers = st.floats(width=32, allow_nan=False)


@given(st.lists(st.tuples(st.sampled_from(["Loss", "a/b", "größe"]), numbers, st.integers(-5, 2**40)), max_size=20))
def test_what_was_noted_is_read_back_in_order(tmp_path_factory, noted):
    folder = tmp_path_factory.mktemp("events")
    ticks = itertools.count(1_700_000_000)
    with EventWriter(folder, clock=lambda: float(next(ticks))) as writer:
        for tag, value, step in noted:
            writer.add_scalar(tag, value, step)
    for tag in ("Loss", "a/b", "größe"):
        expected = [(step, value, 1_700_000_000 + i) for i, (name, value, step) in enumerate(noted) if name == tag]
        np.testing.assert_array_equal(read_scalars(folder, tag), np.array(expected, dtype=np.float64).reshape(-1, 3))
    assert {name for event in read_events(folder) for name, _ in event.scalars} == {tag for tag, _, _ in noted}


def test_tensorflow_reads_every_record_and_its_checksums(tmp_path):
    tf = pytest.importorskip("tensorflow")
    with EventWriter(tmp_path, clock=lambda: 1234.5) as writer:
        writer.add_scalar("Loss", 0.25, 7)
        writer.add_histogram("w", np.array([-2.0, 0.0, 0.5, 0.5, np.nan, 3.0]), 8)
    (file,) = tmp_path.iterdir()
    events = [tf.compat.v1.Event.FromString(record.numpy()) for record in tf.data.TFRecordDataset(str(file))]
    version, scalar, histogram = events
    assert version.file_version == "brain.Event:2"
    assert (scalar.wall_time, scalar.step) == (1234.5, 7)
    assert (scalar.summary.value[0].tag, scalar.summary.value[0].simple_value) == ("Loss", 0.25)
    histo = histogram.summary.value[0].histo
    assert (histo.min, histo.max, histo.num, histo.sum, histo.sum_squares) == (-2.0, 3.0, 5.0, 2.0, 13.5)
    held = dict(zip(histo.bucket_limit, histo.bucket, strict=True))
    assert sum(held.values()) == 5
    limits = np.array(histo.bucket_limit)
    assert (np.diff(limits) > 0).all()
    for value, count in ((-2.0, 1), (0.5, 2), (3.0, 1)):
        assert held[limits[np.searchsorted(limits, value, side="right")]] == count


def test_what_tensorflow_wrote_is_read_here(tmp_path):
    tf = pytest.importorskip("tensorflow")
    with tf.Graph().as_default():
        writer = tf.compat.v1.summary.FileWriter(str(tmp_path))
        value = tf.compat.v1.Summary.Value(tag="Loss", simple_value=0.5)
        writer.add_summary(tf.compat.v1.Summary(value=[value]), 3)
        writer.close()
    assert read_scalars(tmp_path, "Loss")[:, :2].tolist() == [[3.0, 0.5]]


def test_the_files_of_several_writers_follow_each_other(tmp_path):
    for number in range(3):
        with EventWriter(tmp_path, clock=lambda number=number: 1000.0 + number) as writer:
            writer.add_scalar("Loss", number, number)
    assert len(list(tmp_path.iterdir())) == 3
    assert read_scalars(tmp_path, "Loss")[:, 0].tolist() == [0, 1, 2]


def test_a_file_whose_end_is_still_being_written_is_read_up_to_there(tmp_path):
    with EventWriter(tmp_path) as writer:
        writer.add_scalar("Loss", 1.0, 1)
        writer.add_scalar("Loss", 2.0, 2)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    for cut in range(1, 30):
        file.write_bytes(whole[:-cut])
        assert read_scalars(tmp_path, "Loss")[:, 0].tolist() == [1.0]


def test_a_damaged_file_is_an_error_that_names_it(tmp_path):
    with EventWriter(tmp_path) as writer:
        writer.add_scalar("Loss", 1.0, 1)
    (file,) = tmp_path.iterdir()
    whole = bytearray(file.read_bytes())
    whole[-10] ^= 1
    file.write_bytes(whole)
    with pytest.raises(DataError, match="checksums.*damaged at byte"):
        read_scalars(tmp_path, "Loss")


def test_nothing_is_made_before_the_first_event(tmp_path):
    with EventWriter(tmp_path / "deep" / "folder") as writer:
        assert not (tmp_path / "deep").exists()
        writer.add_histogram("none", np.array([]), 0)
    assert [event.step for event in read_events(tmp_path / "deep" / "folder")] == [0, 0]
    assert read_scalars(tmp_path / "nowhere", "Loss").shape == (0, 3)


def test_what_was_noted_is_written_when_nobody_holds_the_writer_any_more(tmp_path):
    writer = EventWriter(tmp_path)
    writer.add_scalar("Loss", 1.0, 1)
    assert read_scalars(tmp_path, "Loss").shape == (0, 3)
    writer.flush()
    assert read_scalars(tmp_path, "Loss").shape == (1, 3)
    writer.add_scalar("Loss", 2.0, 2)
    del writer
    assert read_scalars(tmp_path, "Loss")[:, 1].tolist() == [1.0, 2.0]


def test_many_events_go_to_the_file_without_being_asked_to(tmp_path):
    writer = EventWriter(tmp_path)
    for step in range(5000):
        writer.add_scalar("Loss", 0.5, step)
    assert len(read_scalars(tmp_path, "Loss")) > 1000
    writer.close()
    assert len(read_scalars(tmp_path, "Loss")) == 5000
