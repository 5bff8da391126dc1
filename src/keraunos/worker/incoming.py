"""Rows as Spark hands them to a worker, and what it means when they stop coming. Runs on workers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import pyarrow as pa

from keraunos.errors import ExchangeError

# How pyarrow says that a stream ended where more should have come.
_CUT_OFF = re.compile(
    r"Tried reading schema|Corrupted metadata length|Expected to (be able to )?read|Invalid IPC stream"
)


class RowsLost(ExchangeError):  # noqa: N818 - says what happened
    """The stream of rows broke off: whoever was to send them is lost, and Spark starts the task again."""


def received(record_batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches; a stream that breaks off is no fault of the rows, and is not told as one."""
    batches = iter(record_batches)
    while True:
        try:
            batch = next(batches)
        except StopIteration:
            return
        except (EOFError, ConnectionError) as error:
            raise RowsLost(f"The rows stopped coming: {error}.") from error
        except pa.ArrowInvalid as error:
            if not _CUT_OFF.search(str(error)):
                raise
            raise RowsLost(f"The rows stopped coming: {error}.") from error
        yield batch
