import errno
import json
import logging
import math
import shutil

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as of_numpy

from keraunos.checkpoints.checkpoint import Checkpoint
from keraunos.checkpoints.folder import LocalFolder
from keraunos.checkpoints.sealed_json import seal, unseal
from keraunos.checkpoints.store import CheckpointStore
from keraunos.errors import CheckpointError, JobError
from keraunos.testing.checkpoint_folder_suite import numbered

dtypes = st.one_of(
    of_numpy.scalar_dtypes(),
    of_numpy.byte_string_dtypes(),
    of_numpy.unicode_string_dtypes(),
    st.sampled_from([np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.float8_e5m2), np.dtype(ml_dtypes.int4)]),
)
shapes = of_numpy.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)


@st.composite
def arrays(draw):
    """Any bytes of any type and shape; not always in one piece or in C's order."""
    dtype, shape = draw(dtypes), draw(shapes)
    count = math.prod(shape)
    content = draw(st.binary(min_size=count * dtype.itemsize, max_size=count * dtype.itemsize))
    if dtype.kind == "U":
        array = draw(of_numpy.arrays(dtype, shape))
    else:
        array = np.frombuffer(content, np.uint8).view(dtype).reshape(shape) if content else np.empty(shape, dtype)
    how = draw(st.sampled_from(["plain", "transposed", "strided", "reversed"]))
    if how == "transposed":
        return array.T
    if how == "strided" and array.ndim:
        return np.repeat(array, 2, axis=0)[::2]
    return array[::-1] if how == "reversed" and array.ndim else array


facts = st.dictionaries(
    st.text(),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=10,
    ),
    max_size=5,
)
groups = st.dictionaries(
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,20}", fullmatch=True), st.lists(arrays(), max_size=4)
)


def as_text(value):
    """JSON's own text: as text NaN equals NaN, and -0.0 is not 0.0."""
    return json.dumps(value)


@given(facts, groups, st.integers(0, 10**15))
def test_a_checkpoint_comes_back_to_the_bit(tmp_path_factory, facts, groups, number):
    assume(len({name.lower() for name in groups}) == len(groups))
    store = CheckpointStore(LocalFolder(tmp_path_factory.mktemp("store")))
    store.write(Checkpoint(number, facts, groups))
    found = store.latest()
    assert found.number == number
    assert as_text(found.facts) == as_text(facts)
    assert list(found.arrays) == list(groups)
    for name, group in groups.items():
        assert len(found.arrays[name]) == len(group)
        for old, new in zip(group, found.arrays[name], strict=True):
            assert (new.dtype, new.shape) == (old.dtype, old.shape)
            assert new.tobytes() == old.tobytes()
            assert new.flags.owndata
            assert new.flags.writeable
            assert new.flags.c_contiguous


def test_arrays_of_more_than_one_piece(tmp_path):
    store = CheckpointStore(LocalFolder(tmp_path))
    large = np.random.default_rng(0).normal(size=5_000_000)
    store.write(Checkpoint(1, {}, {"large": [np.float32(1), large, np.arange(3)]}))
    one, same, three = store.latest().arrays["large"]
    np.testing.assert_array_equal(same, large)
    assert one == 1
    np.testing.assert_array_equal(three, np.arange(3))


@pytest.fixture(scope="module")
def two_checkpoints(tmp_path_factory):
    """A store of two, and the bytes of every file of the newer one."""
    folder = tmp_path_factory.mktemp("store")
    store = CheckpointStore(LocalFolder(folder))
    random = np.random.default_rng(0)
    for number in (1, 2):
        weights = [random.normal(size=(5, 7)).astype("float32"), random.integers(0, 9, 3)]
        state = {"rank-0": [random.normal(size=9)], "rank-1": [np.zeros(0), np.float32(3)]}
        store.write(Checkpoint(number, {"loss": [0.5, math.nan], "épochs": number}, {"parameters": weights, **state}))
    return store, {path: path.read_bytes() for path in sorted((folder / "checkpoint-000000000002").iterdir())}


def is_noticed(store, path, content, whole):
    """With this content in a file the newer checkpoint is not used; with the whole one again it is."""
    path.write_bytes(content)
    try:
        found = store.latest().number
    finally:
        path.write_bytes(whole)
    return found == 1 and store.latest().number == 2


@given(st.data())
def test_every_changed_byte_is_noticed(two_checkpoints, data):
    store, files = two_checkpoints
    path = data.draw(st.sampled_from(list(files)))
    whole = files[path]
    place, other = data.draw(st.integers(0, len(whole) - 1)), data.draw(st.integers(0, 255))
    assume(whole[place] != other)
    assert is_noticed(store, path, whole[:place] + bytes([other]) + whole[place + 1 :], whole)


@given(st.data())
def test_every_cut_and_every_addition_is_noticed(two_checkpoints, data):
    store, files = two_checkpoints
    path = data.draw(st.sampled_from(list(files)))
    whole = files[path]
    changed = data.draw(
        st.integers(0, len(whole) - 1).map(lambda end: whole[:end]) | st.binary(min_size=1).map(whole.__add__)
    )
    assert is_noticed(store, path, changed, whole)


def test_every_byte_of_a_manifest_counts():
    content = {"facts": {"loss": 1e300, "text": "é"}, "list": [1, None, True]}
    sealed = seal(content)
    assert unseal(sealed) == content
    for place in range(len(sealed)):
        for bit in range(8):
            changed = bytearray(sealed)
            changed[place] ^= 1 << bit
            with pytest.raises(ValueError, match="does not agree with its checksum"):
                unseal(bytes(changed))


@pytest.mark.parametrize("name", ["parameters.bin", "manifest.json"])
def test_a_missing_file_is_told_and_the_one_before_is_used(tmp_path, caplog, name):
    store = CheckpointStore(LocalFolder(tmp_path))
    store.write(numbered(1))
    store.write(numbered(2))
    (tmp_path / "checkpoint-000000000002" / name).unlink()
    with caplog.at_level(logging.WARNING):
        assert store.latest().number == 1
    assert [record.getMessage() for record in caplog.records] == [
        f"Checkpoint 2 in {str(tmp_path)!r} is incomplete and is skipped: it has no {name!r}."
    ]


def test_a_manifest_of_another_checkpoint_is_noticed(tmp_path):
    store = CheckpointStore(LocalFolder(tmp_path))
    store.write(numbered(1))
    (tmp_path / "checkpoint-000000000001").rename(tmp_path / "checkpoint-000000000002")
    with pytest.raises(CheckpointError, match="checkpoint 2: its manifest is that of checkpoint 1"):
        store.latest()


def test_a_later_format_is_not_guessed_at(tmp_path):
    store = CheckpointStore(LocalFolder(tmp_path))
    store.write(numbered(1))
    manifest = tmp_path / "checkpoint-000000000001" / "manifest.json"
    manifest.write_bytes(seal(unseal(manifest.read_bytes()) | {"format": 3}))
    with pytest.raises(CheckpointError, match="it is of format 3, and 2 is the one that is read here"):
        store.latest()


def test_an_empty_directory_has_none(tmp_path):
    store = CheckpointStore(LocalFolder(tmp_path / "missing"))
    assert store.latest() is None
    assert store.numbers() == []
    store.claim({})
    assert store.latest() is None


def test_where_none_is_whole_each_is_told(tmp_path):
    store = CheckpointStore(LocalFolder(tmp_path))
    store.write(numbered(1))
    store.write(numbered(2))
    (tmp_path / "checkpoint-000000000001" / "manifest.json").write_bytes(b"{")
    (tmp_path / "checkpoint-000000000002" / "parameters.bin").write_bytes(b"cut")
    with pytest.raises(CheckpointError) as raised:
        store.latest()
    assert str(raised.value) == (
        f"No checkpoint in {str(tmp_path)!r} is complete. Expected at least one to continue from. Received: checkpoint "
        "2: 'parameters.bin' has 3 bytes instead of 4016; checkpoint 1: 'manifest.json' is not as it was written: its "
        "content does not agree with its checksum. Choose another checkpointDir, or remove this one, to train from the "
        "beginning."
    )


def test_a_commit_that_was_interrupted_was_no_checkpoint(tmp_path_factory):
    """As an object store may leave it: a part is there, and all that was written aside."""
    tmp_path, other = tmp_path_factory.mktemp("store"), tmp_path_factory.mktemp("copies") / "store"
    store = CheckpointStore(LocalFolder(tmp_path))
    store.write(numbered(1))
    whole = tmp_path / "checkpoint-000000000001"
    shutil.copytree(whole, tmp_path / "_writing-checkpoint-000000000001-0a1b2c3d")
    (whole / "parameters.bin").unlink()
    assert store.latest() is None

    class Full(LocalFolder):
        def write(self, name, buffers):
            raise OSError(errno.ENOSPC, "full")

    shutil.copytree(tmp_path, other)
    with pytest.raises(CheckpointError, match="full"):
        CheckpointStore(Full(other)).write(numbered(5))
    assert CheckpointStore(LocalFolder(other)).latest() is None
    shutil.rmtree(tmp_path / "_writing-checkpoint-000000000001-0a1b2c3d")
    with pytest.raises(CheckpointError, match="it has no 'parameters.bin'"):
        store.latest()


def test_the_newest_before_another(tmp_path):
    store = CheckpointStore(LocalFolder(tmp_path), keep=3)
    for number in (3, 5, 8):
        store.write(numbered(number))
    assert [store.latest(before=before).number for before in (9, 8, 6, 5)] == [8, 5, 5, 3]
    assert store.latest(before=3) is None


@pytest.mark.parametrize("keep", [1, 2, 4])
def test_the_newest_are_kept(tmp_path, keep):
    store = CheckpointStore(LocalFolder(tmp_path), keep=keep)
    for number in (1, 2, 10, 11, 300):
        store.write(numbered(number))
    assert store.numbers() == [1, 2, 10, 11, 300][-keep:]
    assert store.latest().number == 300
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"checkpoint-{n:012d}" for n in store.numbers()]


@pytest.mark.parametrize("keep", [0, -1, 1.5, True])
def test_at_least_one_is_kept(tmp_path, keep):
    with pytest.raises(JobError, match="number of checkpoints to keep must be an integer from 1 up"):
        CheckpointStore(LocalFolder(tmp_path), keep=keep)


def test_what_is_not_ours_stays(tmp_path):
    foreign = ["notes.txt", "checkpoint-7", "_writing-letters", "checkpoint-000000000001.old"]
    for name in foreign:
        (tmp_path / name).mkdir()
    for name in ("_writing-checkpoint-000000000004-0a1b2c3d", "_writing-checkpoint-000000000001-ffffffff"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "parameters.bin").write_bytes(b"a part")
    (tmp_path / "_writing-job-0a1b2c3d").write_bytes(b"a part")
    store = CheckpointStore(LocalFolder(tmp_path), keep=1)
    assert store.latest() is None
    store.write(numbered(2))
    store.write(numbered(3))
    assert {path.name for path in tmp_path.iterdir()} == {*foreign, "checkpoint-000000000003"}


def test_training_that_went_back_leaves_no_future_behind(tmp_path):
    store = CheckpointStore(LocalFolder(tmp_path), keep=3)
    for number in (1, 2, 3):
        store.write(numbered(number, size=3))
    store.write(numbered(2, size=5))
    assert store.numbers() == [1, 2]
    assert store.latest().arrays["parameters"][0].size == 5


def test_broken_ones_do_not_count_as_kept(tmp_path):
    for number in (1, 2, 3):
        CheckpointStore(LocalFolder(tmp_path), keep=3).write(numbered(number))
    (tmp_path / "checkpoint-000000000003" / "manifest.json").unlink()
    store = CheckpointStore(LocalFolder(tmp_path), keep=2)
    assert store.latest().number == 2
    store.write(numbered(4))
    assert store.numbers() == [2, 4]


def test_a_write_that_fails_leaves_what_was_there(tmp_path):
    class StoppedError(Exception):
        pass

    class Stops(LocalFolder):
        def rename(self, name, new):
            raise StoppedError

    CheckpointStore(LocalFolder(tmp_path)).write(numbered(1))
    with pytest.raises(StoppedError):
        CheckpointStore(Stops(tmp_path)).write(numbered(2))
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-000000000001"]


def test_a_reader_whose_checkpoints_were_pruned_meanwhile_finds_the_newer_ones(tmp_path):
    class Slow(LocalFolder):
        """A reader that opens its file when the writer is two checkpoints ahead."""

        passed = False

        def open(self, name):
            if not self.passed:
                self.passed = True
                for number in (3, 4):
                    writing.write(numbered(number))
            return super().open(name)

    writing = CheckpointStore(LocalFolder(tmp_path))
    for number in (1, 2):
        writing.write(numbered(number))
    assert CheckpointStore(Slow(tmp_path)).latest().number == 4
