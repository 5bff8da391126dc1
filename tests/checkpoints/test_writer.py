import logging
import threading

import pytest

from keraunos.checkpoints.folder import LocalFolder
from keraunos.checkpoints.store import CheckpointStore
from keraunos.checkpoints.writer import CheckpointWriter
from keraunos.errors import CheckpointError
from keraunos.testing.checkpoint_folder_suite import numbered

pytestmark = pytest.mark.leaks

PATIENCE_S = 60.0


class Gated(LocalFolder):
    """A disk that writes when it is let."""

    def __init__(self, path):
        super().__init__(path)
        self.asked = threading.Event()
        self.opened = threading.Event()

    def write(self, name, buffers):
        self.asked.set()
        assert self.opened.wait(PATIENCE_S)
        super().write(name, buffers)


def messages(caplog, level):
    return [record.getMessage() for record in caplog.records if record.levelno == level]


def test_training_does_not_wait_and_the_newest_is_written(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    folder = Gated(tmp_path)
    store = CheckpointStore(folder, keep=10)
    with CheckpointWriter(store) as writer:
        writer.submit(numbered(1))
        assert folder.asked.wait(PATIENCE_S)
        for number in (2, 3, 4):
            writer.submit(numbered(number))
        assert not writer.flush(0)
        folder.opened.set()
        assert writer.flush(PATIENCE_S)
        assert store.numbers() == [1, 4]
    assert (writer.written, writer.failures, writer.last_error) == (2, 0, None)
    assert messages(caplog, logging.INFO) == [
        "Checkpoint 2 is skipped: checkpoint 3 was submitted while another was being written.",
        "Checkpoint 3 is skipped: checkpoint 4 was submitted while another was being written.",
    ]


def test_leaving_waits_for_what_was_submitted(tmp_path):
    folder = Gated(tmp_path)
    store = CheckpointStore(folder)
    writer = CheckpointWriter(store)

    def failing_fit():
        with writer:
            writer.submit(numbered(1))
            assert folder.asked.wait(PATIENCE_S)
            writer.submit(numbered(2))
            folder.opened.set()
            raise KeyError("the fit")

    with pytest.raises(KeyError, match="the fit"):
        failing_fit()
    assert store.numbers() == [1, 2]
    assert writer.written == 2


def test_leaving_does_not_wait_for_ever(tmp_path, caplog):
    folder = Gated(tmp_path)
    with CheckpointWriter(CheckpointStore(folder), leave_seconds=0.01) as writer:
        writer.submit(numbered(1))
        assert folder.asked.wait(PATIENCE_S)
    assert "not written" in messages(caplog, logging.WARNING)[0]
    folder.opened.set()
    assert writer.flush(PATIENCE_S)


def test_trouble_is_told_once_and_training_goes_on(tmp_path, caplog):
    home = tmp_path / "home"
    home.write_bytes(b"a file where the folder would be")
    store = CheckpointStore(LocalFolder(home))
    with CheckpointWriter(store) as writer:
        for number in (1, 2):
            writer.submit(numbered(number))
            assert writer.flush(PATIENCE_S)
        assert (writer.written, writer.failures) == (0, 2)
        (told,) = messages(caplog, logging.WARNING)
        assert told.startswith(f"Checkpoint 1 could not be written into {str(home)!r}. Received: [Errno 20]")
        assert told.endswith("Training continues without it. Check that the file system is mounted and can be reached.")
        assert isinstance(writer.last_error, CheckpointError)
        home.unlink()
        writer.submit(numbered(3))
        assert writer.flush(PATIENCE_S)
        assert (writer.written, writer.failures) == (1, 2)
    assert store.latest().number == 3
    assert messages(caplog, logging.WARNING)[1:] == [
        f"2 of 3 checkpoints could not be written into {str(home)!r}; the last reason: {writer.last_error}"
    ]


def test_who_wants_to_be_told_is_told_instead_of_the_log(tmp_path, caplog):
    home, told = tmp_path / "home", []
    home.write_bytes(b"a file where the folder would be")
    with CheckpointWriter(CheckpointStore(LocalFolder(home)), warn=told.append) as writer:
        writer.submit(numbered(1))
        assert writer.flush(PATIENCE_S)
    assert [each.split(".")[0] for each in told[:1]] == [f"Checkpoint 1 could not be written into {str(home)!r}"]
    assert told[1:] == [
        f"1 of 1 checkpoints could not be written into {str(home)!r}; the last reason: {writer.last_error}"
    ]
    assert messages(caplog, logging.WARNING) == []


def test_an_older_checkpoint_that_stays_is_told(tmp_path, caplog):
    class Kept(LocalFolder):
        def delete(self, name):
            if name.startswith("checkpoint-"):
                raise PermissionError(name)
            super().delete(name)

        def rename(self, name, new):
            if name.startswith("checkpoint-"):
                raise PermissionError(name)
            super().rename(name, new)

    told = []
    with CheckpointWriter(CheckpointStore(Kept(tmp_path), keep=1), warn=told.append) as writer:
        for number in (1, 2):
            writer.submit(numbered(number))
            assert writer.flush(PATIENCE_S)
    assert (writer.written, writer.failures) == (2, 0)
    (message,) = told
    assert message.startswith(f"An older checkpoint in {str(tmp_path)!r} could not be removed: ")
    assert messages(caplog, logging.WARNING) == []


def test_what_nobody_foresaw_ends_no_training(tmp_path, caplog):
    class Odd(LocalFolder):
        def make(self, name=""):
            raise ZeroDivisionError("odd")

    with CheckpointWriter(CheckpointStore(Odd(tmp_path))) as writer:
        writer.submit(numbered(1))
        assert writer.flush(PATIENCE_S)
    assert writer.failures == 1
    assert isinstance(writer.last_error, ZeroDivisionError)
    assert (
        "Checkpoint 1 could not be written. Received: ZeroDivisionError('odd'). Training continues"
        in messages(caplog, logging.WARNING)[0]
    )


def test_who_was_replaced_is_told_with_the_next(tmp_path):
    store = CheckpointStore(LocalFolder(tmp_path))
    store.take_over()
    with CheckpointWriter(store) as writer:
        CheckpointStore(LocalFolder(tmp_path)).take_over()
        writer.submit(numbered(1))
        assert writer.flush(PATIENCE_S)
        with pytest.raises(CheckpointError, match="written by another fit of the same job"):
            writer.submit(numbered(2))
    assert (writer.written, writer.failures) == (0, 0)
    assert store.numbers() == []


def test_nothing_is_taken_outside_of_the_context(tmp_path):
    writer = CheckpointWriter(CheckpointStore(LocalFolder(tmp_path)))
    with pytest.raises(CheckpointError, match="Checkpoint 1 was submitted while the writer is not running"):
        writer.submit(numbered(1))
    with writer:
        pass
    with pytest.raises(CheckpointError, match="Checkpoint 2 was submitted while the writer is not running"):
        writer.submit(numbered(2))
