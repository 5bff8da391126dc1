"""What a failing worker tells the driver. Runs on workers; `raise_failure` on the driver."""

from __future__ import annotations

import logging
import re
import socket
import traceback
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import NoReturn, Self

from keraunos import errors
from keraunos.exchange.messages import Failed

KEPT_LINES = 20

# Errors that say all there is to say: the driver raises them as they are, without the worker's stack.
_PLAIN = {kind.__name__: kind for kind in (errors.DataError, errors.ColumnError, errors.ModelError, errors.JobError)}
# So do these, but for whose host it is that they speak of.
_OF_A_HOST = {errors.ClusterError.__name__: errors.ClusterError}


class LastLines(logging.Handler):
    """Keeps the last lines that were logged while it is open."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the record's lines."""
        self.lines.extend(self.format(record).splitlines())

    def __enter__(self) -> Self:
        logging.getLogger().addHandler(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        logging.getLogger().removeHandler(self)


def describe_failure(error: BaseException, lines: Sequence[str]) -> Failed:
    """An error as it is told."""
    name = type(error).__name__
    return Failed(
        error=name,
        text=_plain(str(error)) or name,
        stack=_plain("".join(traceback.format_exception(error)))[-20_000:],
        lines=list(lines)[-KEPT_LINES:],
        host=socket.gethostname(),
    )


def _plain(text: str) -> str:
    """Text without the colours that some frameworks put into their messages."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def raise_failure(rank: int, failure: Failed) -> NoReturn:
    """Raise on the driver what a worker described."""
    name, message = failure.error, failure.text
    if name in _PLAIN:
        raise _PLAIN[name](message)
    if name in _OF_A_HOST:
        raise _OF_A_HOST[name](f"Worker {rank} on {failure.host}: {message}")
    stack = failure.stack.splitlines()
    raise errors.WorkerError(
        f"{name}: {message}", rank=rank, host=failure.host, log_lines=[*failure.lines, *stack][-KEPT_LINES:]
    )
