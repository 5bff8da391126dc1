import math

import pytest

from keraunos.checkpoints.claim import differences
from keraunos.checkpoints.folder import LocalFolder
from keraunos.checkpoints.store import CheckpointStore, TakenOverError
from keraunos.errors import CheckpointError, JobError
from keraunos.testing.checkpoint_folder_suite import numbered


@pytest.mark.parametrize(
    ("kept", "asked", "may_differ", "expected"),
    [
        ({"a": 1, "b": [1, {"c": 2}]}, {"b": [1, {"c": 2}], "a": 1}, (), []),
        ({"a": math.nan}, {"a": math.nan}, (), []),
        ({"a": 1}, {"a": True}, (), ["a: 1 there, true now"]),
        ({"a": 1, "b": 2}, {"a": 3, "b": 4}, (), ["a: 1 there, 3 now", "b: 2 there, 4 now"]),
        ({"a": 1, "b": 2}, {"a": 3, "b": 4}, ("a",), ["b: 2 there, 4 now"]),
        ({"a": 1}, {"b": None}, (), ["a: 1 there, nothing now", "b: nothing there, null now"]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, (), ["a.c: 2 there, 3 now"]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, ("a",), []),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 2, "c": 3}}, ("a.b",), ["a.c: 2 there, 3 now"]),
        ({"a": {"b": 1}, "ab": 1}, {"a": {}, "ab": 2}, ("a",), ["ab: 1 there, 2 now"]),
    ],
)
def test_every_entry_that_differs_is_told(kept, asked, may_differ, expected):
    assert differences(kept, asked, may_differ) == expected


def test_of_long_values_the_part_that_differs_is_shown():
    (line,) = differences({"model": "x" * 500 + "old" + "y" * 500}, {"model": "x" * 500 + "new" + "y" * 500}, ())
    assert "xxold" in line
    assert "xxnew" in line
    assert line.count("(1005 characters)") == 2
    assert len(line) < 250


def test_a_directory_belongs_to_one_job(tmp_path):
    first = CheckpointStore(LocalFolder(tmp_path))
    first.claim({"seed": 1, "layers": (3, 4), "epochs": 5})
    first.claim({"seed": 1, "layers": [3, 4], "epochs": 5})
    CheckpointStore(LocalFolder(tmp_path)).claim({"seed": 1, "layers": [3, 4], "epochs": 9}, may_differ={"epochs"})
    with pytest.raises(JobError) as raised:
        CheckpointStore(LocalFolder(tmp_path)).claim({"seed": 2, "layers": [3, 4], "epochs": 9})
    assert str(raised.value) == (
        f"The checkpoints in {str(tmp_path)!r} are those of another job. Expected the same one. Received one that "
        "differs in epochs: 5 there, 9 now; seed: 1 there, 2 now. Choose another checkpointDir, or remove this one to "
        "start again."
    )


def test_checkpoints_of_nobody(tmp_path):
    store = CheckpointStore(LocalFolder(tmp_path))
    store.write(numbered(1))
    with pytest.raises(JobError, match="have no 'job.json', so their job is unknown"):
        store.claim({})


@pytest.mark.parametrize("content", [b"", b"{}", b'{"identity":{}}'])
def test_a_note_that_was_changed(tmp_path, content):
    store = CheckpointStore(LocalFolder(tmp_path))
    store.claim({"seed": 1})
    (tmp_path / "job.json").write_bytes(content)
    with pytest.raises(CheckpointError, match="'job.json' in .* is not as it was written"):
        store.claim({"seed": 1})


def test_a_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(CheckpointError, match="cannot be used. Expected a folder that can be made.*Received"):
        CheckpointStore(LocalFolder(tmp_path / "file" / "sub")).claim({})


def test_who_was_replaced_writes_nothing_any_more(tmp_path):
    older, newer = (CheckpointStore(LocalFolder(tmp_path)) for _ in range(2))
    older.take_over()
    older.write(numbered(1))
    newer.take_over()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(TakenOverError, match=r"by another fit of the same job, process \d+ on .*choose another"):
        older.write(numbered(7))
    assert sorted(tmp_path.rglob("*")) == before
    assert newer.latest().number == 1
    newer.write(numbered(2))
    assert newer.numbers() == [1, 2]
    older.take_over()
    older.write(numbered(3))
    assert older.latest().number == 3


@pytest.mark.parametrize("content", [None, b"", b"[]", b"{}"])
def test_a_note_of_the_writer_that_cannot_be_read_stops_nobody(tmp_path, content):
    store = CheckpointStore(LocalFolder(tmp_path))
    store.take_over()
    (tmp_path / "writer.json").unlink()
    if content is not None:
        (tmp_path / "writer.json").write_bytes(content)
    store.write(numbered(1))
    assert store.latest().number == 1
