"""Tests for a folder that stores checkpoints, local or remote.

A test class inherits `CheckpointFolderSuite` and defines the fixture `folder`, a folder that does not exist yet. If its
files are on this machine, the class also defines `files`, their path.
"""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pytest

from keraunos.checkpoints.checkpoint import Checkpoint
from keraunos.checkpoints.folder import Folder
from keraunos.checkpoints.store import CheckpointStore
from keraunos.checkpoints.writer import CheckpointWriter
from keraunos.errors import CheckpointError, JobError


def read(folder: Folder, name: str) -> bytes:
    """Returns the content of a file."""
    with folder.open(name) as file:
        return file.read()


def numbered(number: int, size: int = 1000) -> Checkpoint:
    """Returns a small checkpoint whose values are its number."""
    return Checkpoint(number, {"step": number}, {"parameters": [np.full(size, number, np.float32), np.arange(number)]})


class CheckpointFolderSuite:
    """Inherit it and define the fixture `folder`."""

    @pytest.fixture
    def folder(self) -> Folder:
        """Returns a folder that does not exist yet, a new one for each test."""
        raise NotImplementedError

    @pytest.fixture
    def files(self) -> Path | None:
        """Returns the path of the folder's files on this machine, or `None` if they are elsewhere."""
        return None

    def test_a_folder_that_does_not_exist_is_empty(self, folder: Folder) -> None:
        assert folder.names() == []

    def test_what_was_written_is_read(self, folder: Folder, files: Path | None) -> None:
        folder.make("sub")
        folder.write("sub/file", [b"one", memoryview(b"two"), b""])
        folder.write("empty", [])
        assert read(folder, "sub/file") == b"onetwo"
        assert read(folder, "empty") == b""
        assert sorted(folder.names()) == ["empty", "sub"]
        if files is not None:
            assert (files / "sub" / "file").read_bytes() == b"onetwo"

    def test_a_folder_may_be_made_twice(self, folder: Folder) -> None:
        folder.make()
        folder.make()
        folder.make("sub")
        folder.make("sub")
        assert folder.names() == ["sub"]

    def test_a_file_is_written_once(self, folder: Folder) -> None:
        folder.make()
        folder.write("file", [b"first"])
        with pytest.raises(OSError, match="file"):
            folder.write("file", [b"second"])
        assert read(folder, "file") == b"first"

    def test_a_private_file_is_its_owners_alone(self, folder: Folder, files: Path | None) -> None:
        folder.make()
        if files is not None:
            files.chmod(0o750)
        folder.write_private("file", b"content")
        owned = folder.read_owned("file")
        assert owned.content == b"content"
        assert (owned.file.owner, owned.folder.owner) == (owned.reader, owned.reader)
        if files is not None:
            assert (owned.file.mode, owned.folder.mode) == (0o600, 0o750)
            assert stat.S_IMODE((files / "file").stat().st_mode) == 0o600
        with pytest.raises(OSError, match="file"):
            folder.write_private("file", b"another")
        with pytest.raises(FileNotFoundError):
            folder.read_owned("nothing")

    def test_a_missing_file(self, folder: Folder) -> None:
        folder.make()
        with pytest.raises(FileNotFoundError, match="nothing"):
            read(folder, "nothing")
        folder.delete("nothing")
        folder.delete("nothing/below")

    def test_a_folder_gets_its_new_name_with_all_that_is_in_it(self, folder: Folder) -> None:
        folder.make("aside")
        folder.write("aside/file", [b"content"])
        folder.rename("aside", "there")
        assert folder.names() == ["there"]
        assert read(folder, "there/file") == b"content"

    def test_a_name_that_is_taken(self, folder: Folder) -> None:
        for name in ("aside", "there"):
            folder.make(name)
            folder.write(f"{name}/file", [name.encode()])
        with pytest.raises(OSError, match="there"):
            folder.rename("aside", "there")
        assert read(folder, "there/file") == b"there"
        assert sorted(folder.names()) == ["aside", "there"]

    def test_what_is_deleted_is_gone(self, folder: Folder) -> None:
        folder.make("sub/deep")
        folder.write("sub/deep/file", [b"content"])
        folder.write("file", [b"content"])
        folder.delete("sub")
        folder.delete("file")
        assert folder.names() == []

    def test_a_store_on_it(self, folder: Folder) -> None:
        store = CheckpointStore(folder)
        store.claim({"seed": 1})
        with CheckpointWriter(store) as writer:
            for number in (1, 2, 3):
                writer.submit(numbered(number))
                assert writer.flush(60)
        assert (writer.written, writer.failures) == (3, 0)
        again = CheckpointStore(folder)
        with pytest.raises(JobError, match="seed: 1 there, 2 now"):
            again.claim({"seed": 2})
        latest = again.latest()
        assert latest is not None
        assert (latest.number, latest.facts) == (3, {"step": 3})
        np.testing.assert_array_equal(latest.arrays["parameters"][0], np.full(1000, 3, np.float32))
        assert again.numbers() == [2, 3]
        folder.delete("checkpoint-000000000003/parameters.bin")
        folder.write("checkpoint-000000000003/parameters.bin", [b"changed"])
        earlier = again.latest()
        assert earlier is not None
        assert earlier.number == 2
        folder.delete("checkpoint-000000000002/manifest.json")
        with pytest.raises(CheckpointError, match=r"is complete.*checkpoint 3.*checkpoint 2.*no 'manifest.json'"):
            again.latest()
