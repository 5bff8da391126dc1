"""A thread that writes checkpoints, so that training does not wait for the disk. Runs on the driver."""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from keraunos.checkpoints.checkpoint import Checkpoint
from keraunos.checkpoints.store import CheckpointStore, TakenOverError
from keraunos.errors import CheckpointError

logger = logging.getLogger(__name__)

_FULL = "Free some space there, or choose another checkpointDir: it needs space for checkpointKeep + 1 checkpoints."
_FORBIDDEN = "Give the driver's user write permission there, or choose another checkpointDir."
_GONE = "Check that the file system is mounted and can be reached."
_UNKNOWN = "Check the file system, or choose another checkpointDir."
_ADVICE = {
    errno.ENOSPC: _FULL, errno.EDQUOT: _FULL, errno.EFBIG: _FULL,
    errno.EACCES: _FORBIDDEN, errno.EPERM: _FORBIDDEN, errno.EROFS: _FORBIDDEN,
    errno.ENOENT: _GONE, errno.ENOTDIR: _GONE, errno.EIO: _GONE, errno.ESTALE: _GONE, errno.ENODEV: _GONE,
    errno.ENXIO: _GONE, errno.ENOTCONN: _GONE, errno.ECONNREFUSED: _GONE, errno.ECONNRESET: _GONE,
    errno.ETIMEDOUT: _GONE, errno.EHOSTUNREACH: _GONE,
}  # fmt: skip


class CheckpointWriter:
    """Writes submitted checkpoints one after the other in its own thread; the context manager owns the thread.

    A checkpoint that cannot be written does not end the training: it is counted, and a warning says what to do, once
    per kind of failure. If another process has taken over the directory, the next `submit` raises.

    Attributes:
        written: how many checkpoints are in the store.
        failures: how many could not be written.
        last_error: why the last of those could not.

    Args:
        store: the store to write to.
        leave_seconds: how long leaving the context waits for submitted checkpoints.
        on_written: called by the writing thread with the number of each checkpoint that is in the store.
        warn: called with each message for the user, by the writing thread or by the thread that leaves the context.
            Without it the messages are logged.
    """

    def __init__(
        self,
        store: CheckpointStore,
        *,
        leave_seconds: float = 120.0,
        on_written: Callable[[int], None] | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self.written = 0
        self.failures = 0
        self.last_error: Exception | None = None
        self._store = store
        self._leave_seconds = leave_seconds
        self._on_written = on_written
        self._warn = _log if warn is None else warn
        self._changed = threading.Condition()
        self._waiting: Checkpoint | None = None
        self._writing = False
        self._closing = False
        self._told: set[str] = set()
        self._taken_over: TakenOverError | None = None
        self._thread = threading.Thread(target=self._run, name="keraunos-checkpoints", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(self._leave_seconds)
        if self._thread.is_alive():
            self._warn(
                f"The last checkpoint was not written into {self._store.path!r} within {self._leave_seconds:.0f} s and "
                f"is abandoned; the previous ones are complete. {_GONE}"
            )
        if self._taken_over is not None and error is None:
            self._warn(str(self._taken_over))
        if self.failures:
            self._warn(
                f"{self.failures} of {self.failures + self.written} checkpoints could not be written into "
                f"{self._store.path!r}; the last reason: {self.last_error}"
            )

    def submit(self, checkpoint: Checkpoint) -> None:
        """Submit a checkpoint without waiting. It replaces one that is still queued.

        Its arrays must not change any more.
        """
        if self._taken_over is not None:
            raise self._taken_over
        with self._changed:
            if self._closing or not self._thread.is_alive():
                raise CheckpointError(
                    f"Checkpoint {checkpoint.number} was submitted while the writer is not running. Submit it within "
                    "the writer's `with` block."
                )
            replaced, self._waiting = self._waiting, checkpoint
            self._changed.notify_all()
        if replaced is not None:
            logger.info(
                "Checkpoint %d is skipped: checkpoint %d was submitted while another was being written.",
                replaced.number, checkpoint.number,
            )  # fmt: skip

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all checkpoints are written. Returns whether that was within `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._waiting is None and not self._writing, timeout)

    def _run(self) -> None:
        while (checkpoint := self._next()) is not None:
            try:
                self._store.write(checkpoint, warn=self._warn)
            except TakenOverError as error:
                self._taken_over = error
            except Exception as error:  # noqa: BLE001 - any error is logged, and training continues
                self._failed(checkpoint, error)
            else:
                logger.debug("checkpoint %d is in %r", checkpoint.number, self._store.path)
                self.written += 1
                if self._on_written is not None:
                    self._on_written(checkpoint.number)
            del checkpoint  # release its arrays now, not with the next checkpoint
            with self._changed:
                self._writing = False
                self._changed.notify_all()

    def _next(self) -> Checkpoint | None:
        """Returns the next one to write; `None` when there will be none."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting is not None or self._closing)
            checkpoint, self._waiting = self._waiting, None
            self._writing = checkpoint is not None
            return checkpoint

    def _failed(self, checkpoint: Checkpoint, error: Exception) -> None:
        self.failures += 1
        self.last_error = error
        ours = isinstance(error, CheckpointError)
        cause = error.__cause__ if ours else error
        advice = _ADVICE.get(cause.errno or 0, _UNKNOWN) if isinstance(cause, OSError) else _UNKNOWN
        text = f"{error}" if ours else f"Checkpoint {checkpoint.number} could not be written. Received: {error!r}."
        message = f"{text} Training continues without it. {advice}"
        if advice in self._told:
            logger.debug("%s", message)
        else:
            self._told.add(advice)
            self._warn(message)


def _log(message: str) -> None:
    logger.warning("%s", message)
