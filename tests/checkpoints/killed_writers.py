"""Processes that write checkpoints until they are killed. A program of its own: it forks, and so must be small.

`every <folder> <kind>` writes some checkpoints in a forked process, which kills itself at its first step; then in one
that does so at its second, and so on, until one comes to its end. After each the parent looks at what is left.
`forever <folder> <size>` writes and tells every step, until whoever reads that kills it.
"""

import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np

from keraunos.checkpoints.checkpoint import Checkpoint
from keraunos.checkpoints.folder import LocalFolder
from keraunos.checkpoints.store import CheckpointStore

LAST = 3


class Stepping(LocalFolder):
    """Calls `step` before and after everything that it does to the disk."""

    def __init__(self, path, step):
        super().__init__(path)
        self._step = step

    def make(self, name=""):
        self._stepping(super().make, name)

    def write(self, name, buffers):
        self._stepping(super().write, name, self._each(buffers))

    def rename(self, name, new):
        self._stepping(super().rename, name, new)

    def delete(self, name):
        self._stepping(super().delete, name)

    def _stepping(self, do, *arguments):
        self._step()
        do(*arguments)
        self._step()

    def _each(self, buffers):
        for buffer in buffers:
            self._step()
            half = len(buffer) // 2
            yield memoryview(buffer)[:half]
            self._step()
            yield memoryview(buffer)[half:]


class Copying(Stepping):
    """A file system that copies a folder file by file, as object stores do; the manifest is no exception."""

    def rename(self, name, new):
        source, target = Path(self.path, name), Path(self.path, new)
        if not source.is_dir():
            super().rename(name, new)
            return
        target.mkdir()
        for file in sorted(source.iterdir()):
            self._stepping(shutil.copy, file, target)
        self.delete(name)


KINDS = {"stepping": Stepping, "copying": Copying}


def checkpoint(number, size):
    vector = np.random.default_rng(number).normal(size=size)
    return Checkpoint(number, {"number": number}, {"parameters": [vector[::2], vector[1::2]], "rank-0": [vector[:3]]})


def check(found, size):
    """Whether what was found is, to the bit, the checkpoint that was written under its number."""
    expected = checkpoint(found.number, size)
    assert found.facts == expected.facts
    assert list(found.arrays) == list(expected.arrays)
    for name, group in expected.arrays.items():
        for old, new in zip(group, found.arrays[name], strict=True):
            np.testing.assert_array_equal(new, old)


def every(folder, kind):
    at = 0
    while written_until_killed(folder / str(at), at, kind):
        committed = int((folder / str(at) / "committed").read_text() or 0)
        look_after(folder / str(at) / "store", committed)
        at += 1
    print(at)


def written_until_killed(folder, at, kind):
    """Write in a forked process that kills itself at a step; whether it came to that."""
    folder.mkdir()
    told = folder / "committed"
    told.write_text("")
    child = os.fork()
    if child == 0:
        steps = iter(range(at))

        def step():
            if next(steps, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)

        store = CheckpointStore(KINDS[kind](folder / "store", step))
        store.claim({"seed": 1})
        for number in range(1, LAST + 1):
            store.write(checkpoint(number, 10))
            told.write_text(str(number))
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def look_after(folder, committed):
    store = CheckpointStore(LocalFolder(folder))
    store.claim({"seed": 1})
    found = store.latest()
    newest = 0 if found is None else found.number
    assert newest in {committed, committed + 1}
    if found is not None:
        check(found, 10)
    store.write(checkpoint(newest + 1, 10))
    check(store.latest(), 10)
    assert store.latest().number == newest + 1
    names = {path.name for path in folder.iterdir()}
    assert names == {"job.json", *(f"checkpoint-{number:012d}" for number in store.numbers())}
    assert len(store.numbers()) <= 2


def forever(folder, size):
    def step():
        print("step", flush=True)

    store = CheckpointStore(Stepping(folder, step))
    newest = store.latest()
    number = 0 if newest is None else newest.number
    while True:
        number += 1
        store.write(checkpoint(number, size))
        print(number, flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "every":
        every(Path(sys.argv[2]), sys.argv[3])
    else:
        forever(Path(sys.argv[2]), int(sys.argv[3]))
