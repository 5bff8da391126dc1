"""What Hadoop raises, as Python would raise it. Runs on the driver."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

_JVM_GONE = "Spark's JVM does not answer"

# What a Java exception is called, or says, and what the same trouble is on a local disk. The first that fits.
_ERRORS = (
    ("FileNotFound", errno.ENOENT),
    ("AccessControl", errno.EACCES),
    ("AccessDenied", errno.EACCES),
    ("Permission denied", errno.EACCES),
    ("QuotaExceeded", errno.EDQUOT),
    ("No space left", errno.ENOSPC),
    (_JVM_GONE, errno.ENOTCONN),
    ("Connect", errno.ENOTCONN),
    ("UnknownHost", errno.ENOTCONN),
    ("SafeMode", errno.EROFS),
)


@contextmanager
def as_os_errors(path: str, name: str = "") -> Iterator[None]:
    """Raise what Java raised as Python would."""
    try:
        yield
    except (Py4JError, PySparkException) as error:
        text = said(error)
        number = next((number for part, number in _ERRORS if part in text), errno.EIO)
        raise OSError(number, text, f"{path}/{name}" if name else path) from error


def said(error: Exception) -> str:
    """What a Java exception says, in one line, without Java's stack."""
    if isinstance(error, Py4JNetworkError):
        return _JVM_GONE
    try:
        text = str(error.java_exception.toString()) if isinstance(error, Py4JJavaError) else str(error)
    except Py4JNetworkError:  # it ended in between
        return _JVM_GONE
    return text.strip().partition("\n")[0] or type(error).__name__
