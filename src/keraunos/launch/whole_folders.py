"""A folder that is there as a whole or not at all, on any file system that Hadoop knows. Runs on the driver."""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Iterator

from keraunos.session.hadoop_files import HadoopFolder
from keraunos.session.session import Session

logger = logging.getLogger(__name__)


@contextlib.contextmanager
def written_whole(session: Session, path: str) -> Iterator[str]:
    """An address beside the path to write to; in the end it takes the place of what is at the path.

    What goes wrong in here leaves the path as it was, and nothing beside it.
    """
    target = session.folder(path)
    parent, name = target.parent(), target.name
    parent.make()
    # Hadoop's readers pass over names that begin so.
    mark = f"_{name}.{uuid.uuid4().hex}"
    aside, old = f"{mark}.new", f"{mark}.old"
    try:
        parent.make(aside)
        yield f"{parent.uri.rstrip('/')}/{aside}"
        _commit(parent, aside, name, old)
    except BaseException:
        _discard(parent, aside)
        raise
    _discard(parent, old)


def _commit(parent: HadoopFolder, aside: str, name: str, old: str) -> None:
    replaces = parent.has(name)
    if replaces:
        parent.rename(name, old)
    try:
        parent.rename(aside, name)
    except BaseException:
        if replaces:
            parent.rename(old, name)
        raise


def _discard(parent: HadoopFolder, name: str) -> None:
    try:
        parent.delete(name)
    except Exception as error:  # noqa: BLE001 - whatever Hadoop raises; the save itself succeeded, or has said why not
        logger.warning("%s could not be deleted in %s: %s", name, parent.uri, str(error).splitlines()[0])
