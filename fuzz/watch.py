"""Notices what a process opens, imports and starts while it reads a file that nobody trusts.

Python tells hooks of it (`sys.addaudithook`). A hook cannot be taken away again, so there is one, which is idle most of
the time.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_REFUSED = frozenset(
    {
        "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "subprocess.Popen", "socket.connect",
        "socket.bind", "urllib.Request", "pickle.find_class", "webbrowser.open",
    }
)  # fmt: skip
# A program may read its own files, and what the system tells of the process.
_OWN = (
    *(str(Path(each).resolve()) for each in {sys.prefix, sys.base_prefix, *sysconfig.get_paths().values()}),
    *(str(Path(each).resolve()) for each in sys.path if each),
    *("/proc/", "/sys/", "/dev/", "/etc/localtime", "/usr/share/zoneinfo", str(Path("~/.keras").expanduser())),
)

_state: dict[str, Any] = {"on": None, "found": []}


class NotAllowedError(AssertionError):
    """Something was done that a file must not bring about."""


@contextmanager
def watched(folders: Sequence[str], untrusted: Sequence[str] = ()) -> Iterator[None]:
    """Raise in the end where anything outside of `folders` was opened, or an untrusted module imported."""
    _install()
    own = (*_OWN, *(str(Path(each).resolve()) for each in [*folders, *_compiled_programs()]))
    known = set(sys.modules)
    _state.update(on=(threading.get_ident(), own, frozenset(untrusted)), found=[])
    try:
        yield
    finally:
        _state["on"] = None
    # `importlib.import_module` does not tell the hooks.
    _state["found"] += [f"imported {each!r}" for each in untrusted if each in sys.modules and each not in known]
    if _state["found"]:
        raise NotAllowedError("; ".join(_state["found"]))


def _compiled_programs() -> list[str]:
    """Where JAX keeps what it has compiled, if a test before has told it to."""
    folder = sys.modules["jax"].config.jax_compilation_cache_dir if "jax" in sys.modules else None
    return [folder] if folder else []


def scratch_folder() -> str:
    """Where temporary files of this process may lie."""
    return tempfile.gettempdir()


def _install() -> None:
    if "hook" not in _state:
        _state["hook"] = True
        sys.addaudithook(_hook)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    on = _state["on"]
    if on is None or threading.get_ident() != on[0]:
        return
    _, own, untrusted = on
    if event == "open":
        path = arguments[0]
        if isinstance(path, (str, bytes)):
            text = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 - `Path.resolve` would open and audit
            if not text.startswith(own):
                _state["found"].append(f"opened {text!r}")
    elif event == "import":
        if str(arguments[0]).partition(".")[0] in untrusted:
            _state["found"].append(f"imported {arguments[0]!r}")
    elif event in _REFUSED:
        _state["found"].append(f"{event} {arguments!r}"[:200])
