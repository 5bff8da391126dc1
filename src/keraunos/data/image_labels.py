"""The classes of images, from their folders or from a list. Runs on the driver."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from keraunos.errors import DataError
from keraunos.session.registry import session_of

FOLDERS = "folders"

logger = logging.getLogger(__name__)

_SHOWN = 3


def labelled(
    spark: Any, path: str, files: Any, labels: str | None, classes: Sequence[str] | None
) -> tuple[Any, list[str] | None]:
    """Returns the files with a column `label`, and the names of the classes where they have names."""
    if labels is None:
        if classes is not None:
            raise DataError(f"`classes` must be left out if there are no labels. Received: {list(classes)!r}.")
        return files, None
    if not isinstance(labels, str):
        raise DataError(f"`labels` must be 'folders', the path of a list, or None. Received: {labels!r}.")
    root = _Folder(spark, path)
    given = None if classes is None else _checked(classes)
    if labels == FOLDERS:
        return _from_folders(files, root, given)
    return _from_list(spark, files, root, labels, given)


class _Folder:
    """The folder of the images as Hadoop names it, which is how the files' paths begin."""

    def __init__(self, spark: Any, path: str) -> None:
        if re.search(r"[*?{\[]", path):
            raise DataError(
                f"Labels need one folder, relative to which files have a place. Received: {path!r}. Give the folder "
                "without a pattern, or labels=None."
            )
        self._folder = session_of(spark).folder(path)
        self.name = self._folder.uri.rstrip("/")

    def folders(self) -> list[str]:
        """Returns the names of the sub-folders, in their order; those that Spark skips are omitted."""
        return [name for name in self._folder.folders() if not name.startswith((".", "_"))]

    @property
    def relative(self) -> str:
        """SQL for the part of `path` below the folder."""
        return f"substring(path, {len(self.name) + 2})"


def _from_folders(files: Any, root: _Folder, given: list[str] | None) -> tuple[Any, list[str]]:
    found = root.folders()
    names = found if given is None else given
    unknown = [name for name in found if name not in names]
    if unknown or not names:
        expected = "sub-folders, one a class" if given is None else f"folders that `classes` names, {given!r}"
        raise DataError(
            f"Labels from folders need {expected}. Received: {unknown or 'no folder'!r} in {root.name!r}. "
            "Other labels come from a list, labels='path/of/list.txt', or not at all, labels=None."
        )
    # A file that is in no sub-folder has no label; the error names it when it is read.
    folder = f"element_at(split({root.relative}, '/'), 1)"
    lost = "raise_error(concat('The image ', path, ' is in none of the folders of the classes.'))"
    number = f"array_position({_sql_array(names)}, {folder}) - 1"
    label = f"CASE WHEN {number} >= 0 THEN CAST({number} AS DOUBLE) ELSE CAST({lost} AS DOUBLE) END AS label"
    return files.selectExpr("path", "content", label), names


def _from_list(
    spark: Any, files: Any, root: _Folder, path: str, given: list[str] | None
) -> tuple[Any, list[str] | None]:
    listed = _parsed(spark.read.text(path).toArrow().column("value").to_pylist(), path)
    numbers = given is None and all(label.isdecimal() for label in listed.values())
    names = None if numbers else given or sorted(set(listed.values()))
    places = {} if names is None else {name: number for number, name in enumerate(names)}
    unknown = [] if names is None else [label for label in listed.values() if label not in places]
    if unknown:
        raise DataError(f"The list {path!r} must use the names in `classes`, {names!r}. Received: {unknown[0]!r}.")
    values = [float(label if names is None else places[label]) for label in listed.values()]
    columns = {"listed": pa.array(list(listed), pa.string()), "label": pa.array(values, pa.float64())}
    chosen = spark.createDataFrame(pa.table(columns))
    placed = files.selectExpr("path", "content", f"{root.relative} AS listed")
    _tell_missing(placed, chosen, path, root)
    return placed.join(chosen.hint("broadcast"), on="listed"), names


def _parsed(lines: Sequence[str], path: str) -> dict[str, str]:
    """Returns the label of each listed file."""
    listed: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        # A path may hold spaces, a label may not.
        file, *label = line.strip().rsplit(maxsplit=1)
        file = file.removeprefix("./")
        if not label or listed.get(file, label[0]) != label[0]:
            raise DataError(
                "Each line of a list of images must hold a path, relative to the folder, and behind it its one label. "
                f"Received: {line!r} in line {number} of {path!r}"
                + (f", where {file!r} had the label {listed[file]!r} before." if label else ".")
            )
        listed[file] = label[0]
    if not listed:
        raise DataError(f"A list of images must name at least one. Received: an empty list, {path!r}.")
    return listed


def _tell_missing(placed: Any, chosen: Any, path: str, root: _Folder) -> None:
    """Log which files of the list are missing; the images are not read for this."""
    missing = chosen.join(placed.select("listed"), on="listed", how="left_anti").select("listed")
    found = [row[0] for row in missing.limit(_SHOWN).collect()]
    if found:
        logger.warning("The list %s names files that %s does not hold, such as %s", path, root.name, ", ".join(found))


def _checked(classes: Sequence[str]) -> list[str]:
    names = list(classes)
    different = bool(names) and len(set(names)) == len(names)
    if isinstance(classes, str) or not different or not all(isinstance(name, str) for name in names):
        raise DataError(f"`classes` must be a list of different names. Received: {classes!r}.")
    return names


def _sql_array(names: Sequence[str]) -> str:
    quoted = ("'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'" for name in names)
    return f"array({', '.join(quoted)})"
