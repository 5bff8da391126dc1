"""Collects the files that could not be decoded. Runs on the driver; tasks report the files to it."""

from __future__ import annotations

import logging
from typing import Any

from keraunos.session.registry import session_of

logger = logging.getLogger(__name__)

_NAMED = 20


class CorruptImages:
    """The files that `read_images` could not decode, among the rows that have been read so far.

    Each action decodes the rows that it needs again. A file still counts only once.
    """

    def __init__(self, spark: Any) -> None:
        self.accumulator = session_of(spark).accumulator({}, _Reasons(told=True))

    @property
    def count(self) -> int:
        """How many files there are."""
        return len(self.accumulator.value)

    @property
    def files(self) -> dict[str, str]:
        """Each file, and its error."""
        return dict(self.accumulator.value)


class _Reasons:
    """Merges dicts of reasons by file for Spark's accumulator; on the driver it logs new ones."""

    def __init__(self, *, told: bool = False) -> None:
        self._told = told

    def __reduce__(self) -> Any:
        # The copy in a task logs nothing, because users do not read the log of a task.
        return (_Reasons, ())

    def zero(self, value: dict[str, str]) -> dict[str, str]:
        """Returns an empty dict."""
        return {}

    def addInPlace(self, files: dict[str, str], more: dict[str, str]) -> dict[str, str]:
        """Returns both together."""
        new = {path: reason for path, reason in more.items() if path not in files}
        if self._told:
            for path, reason in list(new.items())[: max(0, _NAMED - len(files))]:
                logger.warning("The image %s cannot be decoded: %s", path, reason)
            if len(files) <= _NAMED < len(files) + len(new):
                logger.warning("More images cannot be decoded; `CorruptImages.files` has all of them")
        files.update(new)
        return files
