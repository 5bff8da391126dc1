"""Checkpoints on file systems that TensorFlow 1.x knew and today's does not, such as `hdfs://`. Runs on the driver.

TensorFlow writes and reads files of this machine; Hadoop's FileSystem brings them there and back.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from google.protobuf import text_format

from keraunos.compat.tensorflow1 import _mode
from keraunos.launch.given_paths import GivenPath, given_path

_v1 = _mode.tensorflow_1()


class Saver(_v1.train.Saver):  # type: ignore[misc, name-defined]  # TensorFlow is untyped
    """TensorFlow's own, for paths of any file system."""

    def save(
        self,
        sess: Any,
        save_path: str,
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> Any:
        """Write a checkpoint. Returns its path."""
        options = (meta_graph_suffix, write_meta_graph)
        stripped = (strip_default_attrs, save_debug_info)
        place = _elsewhere(save_path)
        if place is None:
            return super().save(sess, save_path, global_step, latest_filename, *options, write_state, *stripped)
        with place.written() as local:
            # What is written of the newest checkpoint beside it would name the folder of this machine.
            written = super().save(sess, str(local), global_step, latest_filename, *options, False, *stripped)  # noqa: FBT003
        if written is None:
            return None
        path = f"{os.path.dirname(save_path)}/{os.path.basename(written)}"  # noqa: PTH119, PTH120 - an address
        if write_state:
            self._keep(place.parent(), path, latest_filename or "checkpoint")
        return path

    def restore(self, sess: Any, save_path: str) -> None:
        """Read a checkpoint."""
        with readable(save_path) as path:
            super().restore(sess, path)

    def _keep(self, folder: GivenPath, path: str, state_file: str) -> None:
        """Record the newest checkpoint, and delete the oldest ones beyond the maximum."""
        kept = [(each, at) for each, at in self._last_checkpoints if each != path] + [(path, time.time())]
        most = self.saver_def.max_to_keep or len(kept)
        self.set_last_checkpoints_with_time(kept[-most:])
        names = [os.path.basename(each) for each, _ in kept]  # noqa: PTH119 - addresses
        state = _v1.train.generate_checkpoint_state_proto("/", names[-1], names[-most:])
        folder.child(state_file).replace(text_format.MessageToString(state).encode())
        gone = set(names[:-most])
        for name in folder.names():
            if name.rpartition(".")[0] in gone:
                folder.child(name).delete()


def get_checkpoint_state(checkpoint_dir: str, latest_filename: str | None = None) -> Any:
    """Returns the record of the checkpoints in a folder."""
    folder = _elsewhere(checkpoint_dir)
    if folder is None:
        return _v1.train.get_checkpoint_state(checkpoint_dir, latest_filename)
    file = folder.child(latest_filename or "checkpoint")
    if not file.exists():
        return None
    like = _v1.train.generate_checkpoint_state_proto("/", "")
    state = text_format.Parse(file.read().decode(), type(like)())
    root = checkpoint_dir.rstrip("/")
    state.model_checkpoint_path = _in(root, state.model_checkpoint_path)
    state.all_model_checkpoint_paths[:] = [_in(root, each) for each in state.all_model_checkpoint_paths]
    return state


def latest_checkpoint(checkpoint_dir: str, latest_filename: str | None = None) -> str | None:
    """Returns the path of the newest checkpoint in a folder, if there is one."""
    folder = _elsewhere(checkpoint_dir)
    if folder is None:
        found: str | None = _v1.train.latest_checkpoint(checkpoint_dir, latest_filename)
        return found
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None:
        return None
    path = str(state.model_checkpoint_path)
    return path if checkpoint_exists(path) else None


def checkpoint_exists(checkpoint_prefix: str) -> bool:
    """Returns whether there is a checkpoint at a path."""
    place = _elsewhere(checkpoint_prefix)
    if place is None:
        return bool(_v1.train.checkpoint_exists(checkpoint_prefix))
    name = os.path.basename(checkpoint_prefix)  # noqa: PTH119 - an address
    return f"{name}.index" in place.parent().names()


def import_meta_graph(meta_graph_or_file: Any, *arguments: Any, **named: Any) -> Any:
    """Build a graph that was written beside a checkpoint, and what restores its variables."""
    place = _elsewhere(meta_graph_or_file) if isinstance(meta_graph_or_file, str) else None
    if place is None:
        return _v1.train.import_meta_graph(meta_graph_or_file, *arguments, **named)
    with place.local() as local:
        found = _v1.train.import_meta_graph(str(local), *arguments, **named)
    return None if found is None else Saver(saver_def=found.saver_def)


@contextmanager
def readable(checkpoint: str) -> Iterator[str]:
    """The path of a checkpoint, or of a copy of it, that TensorFlow itself reads."""
    place = _elsewhere(checkpoint)
    if place is None:
        yield checkpoint
        return
    if not checkpoint_exists(checkpoint):
        raise ValueError(f"There must be a checkpoint at the path that is read. Received: {checkpoint!r}.")
    with place.local_prefix() as local:
        yield str(local)


def save_in(folder: str, session: Any, step: Any) -> None:
    """Write a checkpoint called `model` into a folder, which need not be there."""
    if _elsewhere(folder) is None:
        _v1.io.gfile.makedirs(folder)
    Saver().save(session, f"{folder}/model", global_step=step)


def _elsewhere(path: Any) -> GivenPath | None:
    """Returns the place of a path whose file system TensorFlow does not know."""
    scheme, there, _ = os.fspath(path).partition("://")
    if not there or scheme in _v1.io.gfile.get_registered_schemes():
        return None
    return given_path(path)


def _in(root: str, path: str) -> str:
    return path if "://" in path else f"{root}/{path}"
