"""JSON with a checksum, so that a truncated or changed file is detected. Runs on the driver.

    {"blake2b":"<64 hexadecimal digits>","content":<any JSON>}

The checksum covers the bytes of the content, and everything around it is fixed, so every changed byte is detected.
Floats may be NaN or infinite, as in Python's own JSON.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from keraunos.json_depth import check_depth

DIGEST_BYTES = 32

_BEFORE, _BETWEEN, _AFTER = b'{"blake2b":"', b'","content":', b"}\n"
_START = len(_BEFORE) + 2 * DIGEST_BYTES + len(_BETWEEN)


def seal(content: Any) -> bytes:
    """Returns the bytes of a file with this content."""
    body = json.dumps(content, separators=(",", ":")).encode()
    return _BEFORE + _digits(body) + _BETWEEN + body + _AFTER


def unseal(data: bytes) -> Any:
    """Returns the content of a file; raises a `ValueError` with the reason if it was changed."""
    body = data[_START : -len(_AFTER)]
    if data != _BEFORE + _digits(body) + _BETWEEN + body + _AFTER:
        raise ValueError("its content does not agree with its checksum")
    try:
        return check_depth(json.loads(body))
    except RecursionError as error:
        raise ValueError("its content is nested too deeply") from error


def _digits(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=DIGEST_BYTES).hexdigest().encode()
