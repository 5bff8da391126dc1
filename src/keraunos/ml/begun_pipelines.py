"""Pipelines of which a stage could not be saved: what was begun of them is removed. Runs on the driver.

    <root>/metadata                  names the stages; spark.ml writes it first
    <root>/stages/<number>_<uid>     then the stages, one after the other

A root without one of its stages can neither be loaded nor, because it exists, be saved to again.
"""

from __future__ import annotations

import logging
import re
from typing import Any

from pyspark.ml.pipeline import PipelineSharedReadWrite
from pyspark.ml.util import DefaultParamsReader

from keraunos.session.registry import session_of

logger = logging.getLogger(__name__)

_STAGE = re.compile(r"(?P<root>.+)/stages/(?P<number>\d+)_[^/]+/?")


def remove_begun(spark: Any, path: str, uid: str) -> None:
    """Remove the pipeline that had got as far as the stage `uid` at this path, and those around it; if it is one."""
    try:
        while (outer := _begun_around(spark, path, uid)) is not None:
            path, uid = outer
            session_of(spark).folder(path).delete("")
    except Exception as error:  # noqa: BLE001 - why the stage was not saved is what the user must see
        logger.warning("What was begun of a pipeline at %s was not removed: %s", path, str(error).splitlines()[0])


def _begun_around(spark: Any, path: str, uid: str) -> tuple[str, str] | None:
    """The root and the uid of the pipeline that waits for this stage; `None` where none does."""
    found = _STAGE.fullmatch(path)
    if found is None:
        return None
    root, number = found["root"], int(found["number"])
    session = session_of(spark)
    folder, stages = session.folder(root), session.folder(f"{root}/stages")
    if not folder.has("metadata") or set(folder.names()) - {"metadata", "stages"}:
        return None
    metadata = DefaultParamsReader.loadMetadata(root, spark)
    uids = metadata.get("paramMap", {}).get("stageUids", [])
    if number >= len(uids) or uids[number] != uid:
        return None
    expected = [
        PipelineSharedReadWrite.getStagePath(each, index, len(uids), "").rpartition("/")[2]
        for index, each in enumerate(uids)
    ]
    there = set(stages.names()) if stages.exists() else set()
    # Everything before this stage, and nothing else: what was saved whole by somebody is left alone.
    return (root, str(metadata["uid"])) if there == set(expected[:number]) else None
