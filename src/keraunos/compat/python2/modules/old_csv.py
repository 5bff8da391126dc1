"""Python 2's `csv`, whose files were opened as 'rb' and 'wb'. Runs on the driver and on executors."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from csv import *  # noqa: F403 - a program's star import finds what was there
from typing import Any

from keraunos.compat.python2.text import as_text


class _Encoding:
    """A file that is given text and takes bytes."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, text: str) -> Any:
        return self._file.write(text.encode())


def _lines(given: Iterable[Any]) -> Iterator[Any]:
    return map(as_text, given)


def _for_text(file: Any) -> Any:
    binary = "b" in str(getattr(file, "mode", "")) or isinstance(file, (io.RawIOBase, io.BufferedIOBase))
    return _Encoding(file) if binary else file


def reader(csvfile: Iterable[Any], *arguments: Any, **named: Any) -> Any:  # type: ignore[no-redef]  # in place of what is imported
    """`csv.reader`, of lines of text or of bytes."""
    return csv.reader(_lines(csvfile), *arguments, **named)


def writer(csvfile: Any, *arguments: Any, **named: Any) -> Any:  # type: ignore[no-redef]  # in place of what is imported
    """`csv.writer`, to a file of text or of bytes."""
    return csv.writer(_for_text(csvfile), *arguments, **named)


class DictReader(csv.DictReader):  # type: ignore[no-redef, type-arg]  # Python 3.11 takes none
    """`csv.DictReader`, of lines of text or of bytes."""

    def __init__(self, f: Iterable[Any], *arguments: Any, **named: Any) -> None:
        super().__init__(_lines(f), *arguments, **named)


class DictWriter(csv.DictWriter):  # type: ignore[no-redef, type-arg]  # as above
    """`csv.DictWriter`, to a file of text or of bytes."""

    def __init__(self, f: Any, *arguments: Any, **named: Any) -> None:
        super().__init__(_for_text(f), *arguments, **named)
