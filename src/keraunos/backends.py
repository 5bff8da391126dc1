"""Which backend Keras runs on, and whether its package is installed. Runs on the driver and on workers.

Keras chooses its backend when it is imported: by KERAS_BACKEND, else by its file keras.json, else TensorFlow. A plain
install of Keraunos has JAX and no TensorFlow, so that `import keras` alone fails there. `import keraunos` therefore
sets KERAS_BACKEND if Keras would select a backend that is not installed, and changes no other selection.
Nothing here imports a framework or writes a file.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from importlib.util import find_spec
from pathlib import Path

BACKENDS = ("jax", "tensorflow", "torch")

_VARIABLE = "KERAS_BACKEND"
_DEFAULT = "tensorflow"
# Keras runs on these, too, but does not train on them.
_OTHERS = ("numpy", "openvino")


def settle_backend() -> None:
    """Select an installed backend for Keras, unless the user has selected one.

    A selection is KERAS_BACKEND, the backend of an imported Keras, or the name in keras.json if it is installed.
    Keras writes its default into keras.json at its first import, even if the import fails: a name there that is not
    installed is therefore not a selection. If TensorFlow is installed, Keras's own default applies.
    """
    forget_failed_import()
    if "keras" in sys.modules or os.environ.get(_VARIABLE):
        return
    available = installed_backends()
    if available and not is_installed(_named_by_file() or _DEFAULT):
        os.environ[_VARIABLE] = available[0]


def forget_failed_import() -> None:
    """Remove the modules that a failed `import keras` left behind: they refer to the missing backend."""
    if "keras" in sys.modules:
        return
    for name in [name for name in sys.modules if name.startswith("keras.")]:
        del sys.modules[name]


def installed_backends() -> list[str]:
    """Returns those of Keras's backends that can train and are installed."""
    return [name for name in BACKENDS if is_installed(name)]


def is_installed(backend: str) -> bool:
    """Returns whether the package of a backend is installed; it is not imported."""
    if backend not in (*BACKENDS, *_OTHERS):
        return False
    try:
        found = find_spec(backend)
    except ValueError:  # the module in sys.modules has no specification
        return backend in sys.modules
    # A folder of that name beside the program is also found, but it has no file to load.
    return found is not None and found.origin is not None


def missing_backend(backend: str) -> str:
    """Returns the message for a backend that is not installed; further advice may be appended."""
    available = installed_backends()
    extra = f"Install it with `pip install 'keraunos[{backend}]'`" if backend in BACKENDS else "Install it"
    return (
        f"the package {backend!r} is not installed for {sys.executable} on {socket.gethostname()}. Installed: "
        f"{', '.join(available) or 'none'}. {extra}"
    )


def why_keras_failed() -> str | None:
    """Why Keras cannot be imported, if it is for its backend; else `None`."""
    chosen = os.environ.get(_VARIABLE)
    source = f"{_VARIABLE}={chosen}" if chosen else f"{_config_file()}" if _named_by_file() else "its default"
    backend = chosen or _named_by_file() or _DEFAULT
    if is_installed(backend):
        return None
    known = (*BACKENDS, *_OTHERS)
    if backend not in known:
        return (
            f"Keras cannot be imported: {source} names a backend that it does not have. Expected one of "
            f"{', '.join(BACKENDS)}. Received: {backend!r}."
        )
    others = installed_backends()
    change = f", or set {_VARIABLE}={others[0]} before Keras is imported" if others else ""
    return f"Keras cannot be imported: {source} sets it to run on {backend!r}, and {missing_backend(backend)}{change}."


def _config_file() -> Path:
    """Returns where Keras keeps its settings."""
    folder = os.environ.get("KERAS_HOME")
    if folder is None:
        home = os.path.expanduser("~")  # noqa: PTH111 - as Keras does, which never fails for want of a home
        folder = os.path.join(home if os.access(home, os.W_OK) else "/tmp", ".keras")  # noqa: PTH118, S108 - the same
    return Path(os.path.expanduser(folder), "keras.json")  # noqa: PTH111 - the same


def _named_by_file() -> str | None:
    try:
        settings = json.loads(_config_file().read_text())
    except (OSError, ValueError):
        return None
    named = settings.get("backend") if isinstance(settings, dict) else None
    return named if isinstance(named, str) else None
