"""A directory of checkpoints. A kill at any moment leaves the newest complete one readable. Runs on the driver.

    <folder>/job.json                               the job whose checkpoints these are
    <folder>/writer.json                            the process that writes them: the last that took the folder over
    <folder>/program.json                           the program that trains, for `keraunos resume`; readable by its
    owner only <folder>/checkpoint-000000000012/parameters.bin a group of arrays, concatenated as raw bytes
    <folder>/checkpoint-000000000012/manifest.json  facts, types, shapes; size and checksum of every file; written last
    <folder>/_writing-checkpoint-…                  a checkpoint that is being written, or was when the process died

A checkpoint is written under a temporary name and committed by a rename. If a file system cannot rename a folder
atomically (object stores copy file by file), a reader may find a part of a checkpoint. Its manifest, or a file that the
manifest names, is then missing, so it counts as incomplete and the previous checkpoint is used. The folder with the
temporary name still exists in that case; this distinguishes an interrupted commit from a checkpoint that lost a file.
A checkpoint that is deleted loses its manifest first.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import secrets
import socket
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from keraunos.checkpoints.checkpoint import Checkpoint, array_bytes, dtype_name, dtype_of, is_group, plain
from keraunos.checkpoints.claim import differences
from keraunos.checkpoints.folder import Folder
from keraunos.checkpoints.sealed_json import DIGEST_BYTES, seal, unseal
from keraunos.errors import CheckpointError, JobError

logger = logging.getLogger(__name__)

JOB_FILE = "job.json"
WRITER_FILE = "writer.json"
MANIFEST_FILE = "manifest.json"

_FORMAT = 2
_COMMITTED = re.compile(r"checkpoint-(\d{12,})")
_LEFTOVER = re.compile(r"_writing-(?:checkpoint-(\d{12,})|job)-[0-9a-f]{8}")
_PIECE = 16 << 20


class TakenOverError(CheckpointError):
    """Another process has taken over the checkpoints of this job."""


class CheckpointStore:
    """The checkpoints in a folder. Only the process that took it over last writes; any process may read meanwhile.

    Args:
        folder: where they are; it is created with the first write.
        keep: how many of the newest remain. While one is written, space for one more is needed.
    """

    def __init__(self, folder: Folder, keep: int = 2) -> None:
        if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
            raise JobError(f"The number of checkpoints to keep must be an integer from 1 up. Received: {keep!r}.")
        self._folder = folder
        self._keep = keep
        self._broken: set[int] = set()
        self._token: str | None = None

    @property
    def path(self) -> str:
        """Where the checkpoints are, for messages."""
        return self._folder.path

    def claim(self, identity: Mapping[str, Any], may_differ: Collection[str] = ()) -> None:
        """Bind the directory to a job: the first call stores the job, later calls must give the same job.

        Entries named in `may_differ` may have any value; the stored value remains. An entry that is a mapping is
        compared entry by entry, each named as `outer.inner`.
        """
        asked = plain(identity, "identity")
        try:
            names = self._folder.names()
            if JOB_FILE in names:
                kept = self._noted_identity()
            elif self._numbers_in(names):
                raise JobError(
                    f"The checkpoints in {self.path!r} have no {JOB_FILE!r}, so their job is unknown. Choose "
                    "another checkpointDir, or remove this one."
                )
            else:
                self._note(asked)
                return
        except OSError as error:
            raise CheckpointError(
                f"The checkpointDir {self.path!r} cannot be used. Expected a folder that can be made, read and "
                f"written. Received: {error}. Choose another checkpointDir."
            ) from error
        differing = differences(kept, asked, may_differ)
        if differing:
            raise JobError(
                f"The checkpoints in {self.path!r} are those of another job. Expected the same one. Received one that "
                f"differs in {'; '.join(differing)}. Choose another checkpointDir, or remove this one to start again."
            )

    def take_over(self) -> None:
        """Become the process that writes here. The previous writer detects this at its next write, and must end.

        A driver that was replaced may still be alive: it was only disconnected or paused.
        """
        self._token = secrets.token_hex(8)
        self.note(WRITER_FILE, {"token": self._token, "host": socket.gethostname(), "process": os.getpid()})

    def note(self, name: str, content: Mapping[str, Any], *, private: bool = False) -> None:
        """Write a small JSON file beside the checkpoints, or replace it.

        Only its owner may read a `private` one.
        """
        data = json.dumps(content, indent=1).encode()
        try:
            self._folder.delete(name)
            if private:
                self._folder.write_private(name, data)
            else:
                self._folder.write(name, [data])
        except OSError as error:
            raise CheckpointError(f"{name!r} could not be written into {self.path!r}. Received: {error}.") from error

    def write(self, checkpoint: Checkpoint, *, warn: Callable[[str], None] | None = None) -> None:
        """Store a checkpoint. It is complete in the directory when this returns, and absent if this raises.

        A checkpoint of the same number is replaced, and newer ones are deleted, because training went back to before
        them. Raises `TakenOverError`, and changes nothing, if another process has taken over the directory. If an older
        checkpoint cannot be removed, `warn` is called with a message; without `warn` the message is logged.
        """
        name = _name(checkpoint.number)
        aside = f"_writing-{name}-{secrets.token_hex(4)}"
        try:
            self._check_writer()
            self._remove_leftovers()
            self._folder.make(aside)
            groups = {group: self._write_group(aside, group, arrays) for group, arrays in checkpoint.arrays.items()}
            manifest = {"format": _FORMAT, "number": checkpoint.number, "facts": checkpoint.facts, "groups": groups}
            self._folder.write(f"{aside}/{MANIFEST_FILE}", [seal(manifest)])
            self._check_writer()
            self._remove([number for number in self.numbers() if number >= checkpoint.number])
            self._folder.rename(aside, name)
        except BaseException as error:
            with suppress(OSError):
                self._folder.delete(aside)  # frees space on a full disk
            if isinstance(error, OSError):
                raise CheckpointError(
                    f"Checkpoint {checkpoint.number} could not be written into {self.path!r}. Received: {error}."
                ) from error
            raise
        self._broken.discard(checkpoint.number)
        self._prune(_log if warn is None else warn)

    def latest(self, before: int | None = None) -> Checkpoint | None:
        """The newest whole checkpoint, with a number below `before` if given; `None` if there is none.

        A checkpoint that is incomplete is skipped with a warning. If there are some and none is complete, raises a
        `CheckpointError` that says what is wrong with each. A checkpoint whose commit was interrupted does not count.
        The arrays are writable copies.
        """
        reasons: dict[int, str] = {}
        # The directory is listed again each time: a writer may have replaced a checkpoint meanwhile.
        while untried := [
            number for number in self.numbers() if number not in reasons and (before is None or number < before)
        ]:
            number = untried[-1]
            try:
                return self._read(number)
            except (OSError, ValueError) as error:
                reasons[number] = str(error)
                self._broken.add(number)
                logger.warning(
                    "Checkpoint %d in %r is incomplete and is skipped: %s.", number, self.path, reasons[number]
                )
        if reasons.keys() - self._interrupted():
            found = "; ".join(f"checkpoint {number}: {reason}" for number, reason in reasons.items())
            raise CheckpointError(
                f"No checkpoint in {self.path!r} is complete. Expected at least one to continue from. Received: "
                f"{found}. Choose another checkpointDir, or remove this one, to train from the beginning."
            )
        return None

    def numbers(self) -> list[int]:
        """Returns the numbers of the committed checkpoints, whole or not, the newest last."""
        try:
            return self._numbers_in(self._folder.names())
        except OSError as error:
            raise CheckpointError(f"The checkpointDir {self.path!r} cannot be listed. Received: {error}.") from error

    def _numbers_in(self, names: Sequence[str]) -> list[int]:
        return sorted(int(match[1]) for name in names if (match := _COMMITTED.fullmatch(name)))

    def _interrupted(self) -> set[int]:
        """Returns the numbers of checkpoints that were not committed because their writer died."""
        matches = (_LEFTOVER.fullmatch(name) for name in self._folder.names())
        return {int(match[1]) for match in matches if match is not None and match[1] is not None}

    def _check_writer(self) -> None:
        if self._token is None:
            return
        try:
            with self._folder.open(WRITER_FILE) as file:
                writer = json.loads(file.read())
            token, process, host = (writer[name] for name in ("token", "process", "host"))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return  # the file is being written, or was removed
        if token != self._token:
            raise TakenOverError(
                f"The checkpoints in {self.path!r} are now written by another fit of the same job, process {process} "
                f"on {host}. Expected one at a time. This fit ends; the other continues from the checkpoints of this "
                "one. For a separate training choose another checkpointDir."
            )

    def _note(self, identity: Mapping[str, Any]) -> None:
        self._folder.make()
        aside = f"_writing-job-{secrets.token_hex(4)}"
        self._folder.write(aside, [seal({"format": _FORMAT, "identity": identity})])
        self._folder.rename(aside, JOB_FILE)

    def _noted_identity(self) -> dict[str, Any]:
        try:
            with self._folder.open(JOB_FILE) as file:
                noted = unseal(file.read())
            identity = noted.get("identity") if isinstance(noted, dict) else None
            if not isinstance(identity, dict):
                raise ValueError(f"it names no job, but {str(noted)[:100]!r}")  # noqa: TRY004 - as for any other content
        except ValueError as error:
            raise CheckpointError(
                f"{JOB_FILE!r} in {self.path!r} is not as it was written: {error}. Choose another checkpointDir, or "
                "remove this one."
            ) from error
        return identity

    def _write_group(self, aside: str, group: str, arrays: Sequence[npt.NDArray[Any]]) -> dict[str, Any]:
        digest = hashlib.blake2b(digest_size=DIGEST_BYTES)

        def pieces() -> Iterator[memoryview]:
            for array in arrays:
                for piece in _pieces(np.ascontiguousarray(array)):
                    digest.update(piece)
                    yield piece

        file = f"{group}.bin"
        self._folder.write(f"{aside}/{file}", pieces())
        return {
            "file": file,
            "size": sum(array.nbytes for array in arrays),
            "blake2b": digest.hexdigest(),
            "arrays": [[dtype_name(array.dtype), list(array.shape)] for array in arrays],
        }

    def _read(self, number: int) -> Checkpoint:
        """Returns a checkpoint; an `OSError` or a `ValueError` says why it is not whole."""
        name = _name(number)
        try:
            with self._folder.open(f"{name}/{MANIFEST_FILE}") as file:
                manifest = unseal(file.read())
        except FileNotFoundError as error:
            raise ValueError(f"it has no {MANIFEST_FILE!r}") from error
        except ValueError as error:
            raise ValueError(f"{MANIFEST_FILE!r} is not as it was written: {error}") from error
        try:
            return self._read_groups(number, name, manifest)
        except (KeyError, TypeError, AttributeError, OverflowError, SyntaxError) as error:
            raise ValueError(f"{MANIFEST_FILE!r} is not a manifest: {type(error).__name__}: {error}") from error

    def _read_groups(self, number: int, name: str, manifest: Mapping[str, Any]) -> Checkpoint:
        if manifest["format"] != _FORMAT:
            raise ValueError(f"it is of format {manifest['format']!r}, and {_FORMAT} is the one that is read here")
        if manifest["number"] != number:
            raise ValueError(f"its manifest is that of checkpoint {manifest['number']}")
        if not isinstance(manifest["facts"], dict):
            raise TypeError(f"its manifest has no facts, but {manifest['facts']!r}")
        groups = {group: self._read_group(name, group, described) for group, described in manifest["groups"].items()}
        return Checkpoint(number, manifest["facts"], groups)

    def _read_group(self, name: str, group: str, described: Mapping[str, Any]) -> list[npt.NDArray[Any]]:
        file_name, size = described["file"], described["size"]
        if file_name != f"{group}.bin" or not is_group(group):
            raise ValueError(f"its manifest names the file {file_name!r}, which is none of a checkpoint's")
        # A manifest may claim any size: no more memory is allocated than the file holds.
        claimed = sum(array_bytes(dtype, shape) for dtype, shape in described["arrays"])
        if claimed != size:
            raise ValueError(f"the arrays of {file_name!r} take {claimed} bytes, and its size is {size!r}")
        digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
        arrays: list[npt.NDArray[Any]] = []
        try:
            with self._folder.open(f"{name}/{file_name}") as file:
                found = file.seek(0, 2)
                file.seek(0)
                if found != size:
                    raise ValueError(f"{file_name!r} has {found} bytes instead of {size}")
                for dtype, shape in described["arrays"]:
                    array = np.empty(shape, dtype_of(dtype))
                    for piece in _pieces(array):
                        _fill(file, piece)
                        digest.update(piece)
                    arrays.append(array)
        except FileNotFoundError as error:
            raise ValueError(f"it has no {file_name!r}") from error
        if digest.hexdigest() != described["blake2b"]:
            raise ValueError(f"{file_name!r} does not agree with its checksum")
        return arrays

    def _remove(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._folder.delete(f"{_name(number)}/{MANIFEST_FILE}")
            self._folder.delete(_name(number))
            self._broken.discard(number)

    def _remove_leftovers(self) -> None:
        """Remove the remains of interrupted writes: first incomplete checkpoints, then the folders that mark them."""
        for number in self._interrupted() & set(self.numbers()):
            try:
                self._read(number)
            except (OSError, ValueError):
                self._remove([number])
        for name in self._folder.names():
            if _LEFTOVER.fullmatch(name):
                logger.info("%r in %r was left by an interrupted write; it is removed.", name, self.path)
                self._folder.delete(name)

    def _prune(self, warn: Callable[[str], None]) -> None:
        """Delete all but the newest checkpoints; broken ones do not count and are deleted."""
        try:
            numbers = self.numbers()
            kept = [number for number in numbers if number not in self._broken][-self._keep :]
            self._remove([number for number in numbers if number not in kept])
        except (OSError, CheckpointError) as error:
            # The new checkpoint is committed; deleting the older one is retried after the next.
            warn(f"An older checkpoint in {self.path!r} could not be removed: {error}.")


def _log(message: str) -> None:
    logger.warning("%s", message)


def _name(number: int) -> str:
    return f"checkpoint-{number:012d}"


def _pieces(array: npt.NDArray[Any]) -> Iterator[memoryview]:
    """The memory of a contiguous array, in pieces that stay in the cache between hashing and writing."""
    if array.nbytes:
        view = array.reshape(-1).view(np.uint8).data
        for start in range(0, len(view), _PIECE):
            yield view[start : start + _PIECE]


def _fill(file: BinaryIO, view: memoryview) -> None:
    while view:
        count = file.readinto(view)  # type: ignore[attr-defined]  # every binary file has it, BinaryIO does not say so
        if not count:
            raise ValueError("a file ended while it was read")
        view = view[count:]
