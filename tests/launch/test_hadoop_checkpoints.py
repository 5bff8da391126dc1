"""Checkpoints through Hadoop's file systems, with a local session."""

import errno

import numpy as np
import pytest

from keraunos.checkpoints.checkpoint import Checkpoint
from keraunos.checkpoints.folder import LocalFolder
from keraunos.checkpoints.store import CheckpointStore
from keraunos.checkpoints.writer import CheckpointWriter
from keraunos.errors import JobError
from keraunos.launch.hadoop_checkpoints import HadoopCheckpoints, folder_of
from keraunos.session.registry import session_of
from keraunos.testing.checkpoint_folder_suite import CheckpointFolderSuite, numbered

pytestmark = pytest.mark.spark


class TestFilesThroughHadoop(CheckpointFolderSuite):
    @pytest.fixture
    def files(self, tmp_path):
        return tmp_path / "a" / "folder with spaces"

    @pytest.fixture
    def folder(self, spark, files):
        return HadoopCheckpoints(session_of(spark), f"file:{files}")

    def test_its_path_is_told_with_its_scheme(self, folder, files):
        assert folder.path == f"file:{files}"


class TestAMountedFileSystem(CheckpointFolderSuite):
    """One whose scheme only Hadoop knows, from a context instead of a session."""

    @pytest.fixture
    def files(self, tmp_path):
        return tmp_path / "checkpoints"

    @pytest.fixture
    def folder(self, spark, files):
        name = f"checkpoints-{files.parent.name}"
        hadoop = spark.sparkContext._jsc.hadoopConfiguration()
        hadoop.set(f"fs.viewfs.mounttable.{name}.link./data", files.parent.as_uri())
        folder = folder_of(session_of(spark.sparkContext), f"viewfs://{name}/data/checkpoints")
        assert isinstance(folder, HadoopCheckpoints)
        return folder


def test_the_bits_are_the_same_through_hadoop(spark, tmp_path):
    large = np.random.default_rng(0).normal(size=(3, 1_000_000)).astype("float32")
    checkpoint = Checkpoint(
        1, {"loss": [float("nan")]}, {"parameters": list(large), "rank-0": [np.array(3), large[:0]]}
    )
    CheckpointStore(HadoopCheckpoints(session_of(spark), str(tmp_path / "hadoop"))).write(checkpoint)
    CheckpointStore(LocalFolder(tmp_path / "local")).write(checkpoint)
    for name in ("parameters.bin", "rank-0.bin", "manifest.json"):
        through_hadoop, plain = (
            (tmp_path / way / "checkpoint-000000000001" / name).read_bytes() for way in ("hadoop", "local")
        )
        assert through_hadoop == plain
    # Either reads what the other wrote.
    for folder in (LocalFolder(tmp_path / "hadoop"), HadoopCheckpoints(session_of(spark), str(tmp_path / "local"))):
        found = CheckpointStore(folder).latest()
        np.testing.assert_array_equal(np.stack(found.arrays["parameters"]), large)
        assert all(array.flags.owndata and array.flags.writeable for array in found.arrays["parameters"])


def test_a_local_path_needs_no_hadoop(spark, tmp_path):
    for path in (str(tmp_path / "a b"), f"file:{tmp_path}/a b", f"file://{tmp_path}/a b"):
        folder = folder_of(session_of(spark), path)
        assert isinstance(folder, LocalFolder)
        assert folder.path == str(tmp_path / "a b")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "a path of a folder"),
        (None, "a path of a folder"),
        ("nowhere://host/folder", "a path that Hadoop.*nowhere"),
    ],
)
def test_a_path_that_hadoop_does_not_know(spark, path, reason):
    with pytest.raises(JobError, match=f"`checkpointDir` must be {reason}") as raised:
        folder_of(session_of(spark), path)
    assert repr(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_javas_errors_become_those_of_the_system(spark, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    folder = HadoopCheckpoints(session_of(spark), f"file:{tmp_path}/file")
    with pytest.raises(OSError, match="ParentNotDirectory|not a directory|exists") as raised:
        folder.make("sub")
    assert raised.value.errno == errno.EIO
    assert "\n" not in str(raised.value)
    with (
        pytest.raises(FileNotFoundError) as missing,
        HadoopCheckpoints(session_of(spark), str(tmp_path)).open("nothing"),
    ):
        pass
    assert missing.value.errno == errno.ENOENT


def test_a_writers_connection_to_the_jvm_ends_with_its_thread(spark, tmp_path):
    connections = spark.sparkContext._gateway._gateway_client.deque
    before = len(connections)
    with CheckpointWriter(CheckpointStore(HadoopCheckpoints(session_of(spark), str(tmp_path)))) as writer:
        for number in range(3):
            writer.submit(numbered(number))
            assert writer.flush(60)
        assert len(connections) == before + 1
    assert writer.written == 3
    assert len(connections) == before
