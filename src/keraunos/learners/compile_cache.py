"""Where compiled programs are kept between jobs, one folder a host and user. Runs on workers.

What lies in the folder is run, so it must belong to this user and be closed to everyone else.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path


def compile_cache() -> Path | None:
    """A private folder for compiled programs; `None` where there is no safe place for one."""
    for path in _candidates():
        with contextlib.suppress(OSError):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if _is_private(path):
                return path
    return None


def _candidates() -> list[Path]:
    base = os.environ.get("XDG_CACHE_HOME")
    shared = Path(tempfile.gettempdir()) / f"keraunos-compile-cache-{os.getuid()}"
    with contextlib.suppress(RuntimeError):
        return [(Path(base) if base else Path.home() / ".cache") / "keraunos" / "compiled", shared]
    return [shared]


def _is_private(path: Path) -> bool:
    facts = path.lstat()
    mine = facts.st_uid == os.getuid() and stat.S_ISDIR(facts.st_mode)
    return mine and not facts.st_mode & 0o022 and os.access(path, os.W_OK)
