"""JSON that carries its own checksum, so that a file cut short or changed is told from a whole one. Runs on the driver.

    {"blake2b":"<64 hexadecimal digits>","content":<any JSON>}

The digits are of the content's own bytes and everything around it is fixed, so no byte can change unnoticed. Floats may
be NaN or infinite, as Python's own JSON has them.
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
    """The bytes of a file with this content."""
    body = json.dumps(content, separators=(",", ":")).encode()
    return _BEFORE + _digits(body) + _BETWEEN + body + _AFTER


def unseal(data: bytes) -> Any:
    """The content of a file; a `ValueError` says why it is not what was written."""
    body = data[_START : -len(_AFTER)]
    if data != _BEFORE + _digits(body) + _BETWEEN + body + _AFTER:
        raise ValueError("its content does not agree with its checksum")
    try:
        return check_depth(json.loads(body))
    except RecursionError as error:
        raise ValueError("its content is nested too deeply") from error


def _digits(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=DIGEST_BYTES).hexdigest().encode()
