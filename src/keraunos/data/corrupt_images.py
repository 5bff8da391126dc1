"""Which files could not be decoded. Runs on the driver, which tasks tell of them."""

from __future__ import annotations

import logging
from typing import Any

from keraunos.session.registry import session_of

logger = logging.getLogger(__name__)

_NAMED = 20


class CorruptImages:
    """The files that `read_images` could not decode, as far as its rows have been read.

    Rows are decoded anew by each action that needs them. A file counts once all the same, however often it is met.
    """

    def __init__(self, spark: Any) -> None:
        self.accumulator = session_of(spark).accumulator({}, _Reasons(told=True))

    @property
    def count(self) -> int:
        """How many files there are."""
        return len(self.accumulator.value)

    @property
    def files(self) -> dict[str, str]:
        """Each file, and what is wrong with it."""
        return dict(self.accumulator.value)


class _Reasons:
    """How Spark's accumulator puts dicts of reasons by file together; the driver's tells of new ones in its log."""

    def __init__(self, *, told: bool = False) -> None:
        self._told = told

    def __reduce__(self) -> Any:
        # What travels to a task is silent there: its log is not where a user looks.
        return (_Reasons, ())

    def zero(self, value: dict[str, str]) -> dict[str, str]:
        """Nothing yet."""
        return {}

    def addInPlace(self, files: dict[str, str], more: dict[str, str]) -> dict[str, str]:
        """Both together."""
        new = {path: reason for path, reason in more.items() if path not in files}
        if self._told:
            for path, reason in list(new.items())[: max(0, _NAMED - len(files))]:
                logger.warning("The image %s cannot be decoded: %s", path, reason)
            if len(files) <= _NAMED < len(files) + len(new):
                logger.warning("More images cannot be decoded; `CorruptImages.files` has all of them")
        files.update(new)
        return files
