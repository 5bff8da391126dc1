"""Text that was bytes: what Python 2 had one type for, where it meets text. Runs on the driver and on executors.

What a program reads from a file opened as 'rb', from an archive or from another process is bytes today, and so is what
`encode` returns. In Python 3 they equal no text and print as `b'…'`; in a program for Python 2 they are text.
"""

from __future__ import annotations

import builtins
import codecs
from typing import Any

import numpy as np

from keraunos.errors import JobError

_HOLDERS = (dict, list, tuple)
# Encodings whose text a file that was opened as text, or a literal, has been decoded from already.
_DECODED = frozenset({"ascii", "iso8859-1", "utf-8", "utf-8-sig"})


def as_text(value: Any) -> Any:
    """Bytes as text, also within lists, tuples and dicts; anything else unchanged."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.decode("latin-1")
    if not _has_bytes(value):
        return value
    if type(value) is dict:
        return {as_text(key): as_text(each) for key, each in value.items()}
    return type(value)(as_text(each) for each in value)


def equals(left: Any, right: Any) -> Any:
    """`left == right`."""
    found = _same(left, right)
    return left == right if found is None else found


def differs(left: Any, right: Any) -> Any:
    """`left != right`."""
    found = _same(left, right)
    if found is None:
        return left != right
    return not found if isinstance(found, bool) else ~found


def contains(item: Any, owner: Any) -> Any:
    """`item in owner`."""
    if isinstance(item, str) and isinstance(owner, bytes):
        return item in as_text(owner)
    if isinstance(item, bytes) and isinstance(owner, str):
        return as_text(item) in owner
    return item in owner or (
        isinstance(item, (str, bytes))
        and isinstance(owner, (dict, frozenset, list, set, tuple))
        and _other(item) in owner
    )


def misses(item: Any, owner: Any) -> bool:
    """`item not in owner`."""
    return not contains(item, owner)


def get(owner: Any, key: Any, *default: Any) -> Any:
    """`owner.get(key)`, as dicts have it."""
    if isinstance(owner, dict) and type(owner).get is dict.get and isinstance(key, (str, bytes)) and key not in owner:
        key = _other(key)
    return owner.get(key, *default)


def character(owner: Any, key: Any) -> Any:
    """`owner[key]` where that is compared with text."""
    found = owner[key]
    return chr(found) if isinstance(owner, bytes) and isinstance(found, int) else found


def text(kind: Any, value: Any) -> Any:
    """`str(value)` or `repr(value)`."""
    return kind(as_text(value) if kind in (str, repr) else value)


def each(owner: Any) -> Any:
    """Returns the items of a loop: of bytes the characters."""
    return map(chr, owner) if isinstance(owner, bytes) else owner


def is_instance(value: Any, types: Any) -> bool:
    """`isinstance(value, types)`, if `str` is among the types."""
    return isinstance(value, types) or (isinstance(value, bytes) and issubclass(str, types))


def percent(left: Any, right: Any) -> Any:
    """`left % right`, of text."""
    return left % (as_text(right) if isinstance(left, str) else right)


def format(owner: Any, *values: Any, **named: Any) -> Any:  # noqa: A001 - the method's name
    """`owner.format(…)`."""
    if not isinstance(owner, str):
        return owner.format(*values, **named)
    return owner.format(*map(as_text, values), **{name: as_text(each) for name, each in named.items()})


def decode(owner: Any, *arguments: Any, **named: Any) -> Any:
    """`owner.decode(encoding, errors)`, which text had."""
    if not isinstance(owner, str):
        return owner.decode(*arguments, **named)
    encoding = arguments[0] if arguments else named.get("encoding", "ascii")
    if codecs.lookup(encoding).name in _DECODED:
        return owner
    raise JobError(
        f"Text of Python 2 can be decoded from 'ascii', 'latin-1' and 'utf-8' only here, where it is text already. "
        f"Received: {encoding!r}. Open the file with codecs.open(path, encoding={encoding!r}), or give bytes."
    )


def say(*values: Any, **named: Any) -> None:
    """`print`."""
    builtins.print(*map(as_text, values), **named)  # noqa: T201 - the program prints


def _same(left: Any, right: Any) -> Any:
    """Returns whether text equals bytes, or what holds the one what holds the other; `None` if Python 3 says it."""
    for text, other in ((left, right), (right, left)):
        if isinstance(text, str) and (isinstance(other, bytes) or _holds_bytes(other)):
            return text == as_text(other) if isinstance(other, bytes) else other == text.encode()
    if type(left) in _HOLDERS and type(left) is type(right) and (_has_bytes(left) or _has_bytes(right)):
        return as_text(left) == as_text(right)
    return None


def _holds_bytes(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "S"


def _other(value: str | bytes) -> str | bytes:
    """Returns text as bytes and bytes as text."""
    return value.encode() if isinstance(value, str) else as_text(value)


def _has_bytes(value: Any) -> bool:
    if type(value) is dict:
        return any(map(_has_bytes, value)) or any(map(_has_bytes, value.values()))
    return isinstance(value, bytes) or (type(value) in (list, tuple) and any(map(_has_bytes, value)))
