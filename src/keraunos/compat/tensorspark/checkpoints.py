"""A TensorFlow session as a checkpoint under any Hadoop path. Runs on the driver."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from keraunos.errors import JobError
from keraunos.launch.given_paths import given_path
from keraunos.session.session import Session

HDFS_DIR = "spark.hdfs.dir"
TMP_DIR = "spark.tmp.dir"

_SAVER = ".saver.proto"


def save(spark: Session, session: Any, user: str | None, filename: str, base_dir: str = "") -> tuple[str, str, str]:
    """Write the session's variables and graph into a folder.

    Gives the checkpoint's path, its MetaGraph's and that of the saver's description.
    """
    folder = base_dir or spark.setting(HDFS_DIR)
    if not folder:
        raise JobError(
            f"A session is saved in `base_dir` or in the folder that {HDFS_DIR} names. Received: neither. Set "
            f"{HDFS_DIR} in spark-defaults.conf, or give `base_dir`."
        )
    if not filename or "/" in filename:
        raise JobError(f"`filename` must be a name without folders. Received: {filename!r}. Folders go in `base_dir`.")
    if user and user != spark.user:
        raise JobError(
            f"`user` must be the one that Spark runs as, {spark.user!r}, or empty: files are written as that "
            f"user. Received: {user!r}. Start Spark as another user, or with HADOOP_USER_NAME set."
        )
    target = given_path(folder, "base_dir", plain_by_hadoop=True).child(filename)
    with tempfile.TemporaryDirectory(prefix="keraunos-", dir=temporary_folder(spark)) as local:
        _save(session, str(Path(local, filename)))
        with target.written() as path:
            shutil.copytree(local, path.parent, dirs_exist_ok=True)
    path = f"{folder.rstrip('/')}/{filename}"
    return path, f"{path}.meta", f"{path}{_SAVER}"


def temporary_folder(spark: Session) -> str | None:
    """Returns the folder that `spark.tmp.dir` names, or `None` for the system's own."""
    folder = spark.setting(TMP_DIR)
    if folder is not None and not Path(folder).is_dir():
        raise JobError(f"{TMP_DIR} must name a folder of this machine that exists. Received: {folder!r}.")
    return folder


# The savers that were made here: a graph grows by one only.
_savers: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def _save(session: Any, path: str) -> None:
    import tensorflow as tf

    graph = session.graph
    with graph.as_default():
        if graph not in _savers:
            # Kept as a proto: the object would keep alive the graph that it is found by.
            _savers[graph] = tf.compat.v1.train.Saver().as_saver_def()
        tf.compat.v1.train.Saver(saver_def=_savers[graph]).save(session, path, write_state=False)
        Path(path + _SAVER).write_bytes(_savers[graph].SerializeToString())
