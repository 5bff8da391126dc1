"""What a command needs before it can start: a Java for Spark, a backend for Keras. Runs on the driver."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from keraunos.errors import ClusterError, ModelError
from keraunos.job.training_job import BACKENDS

OLDEST_JAVA = 17

_HOW_TO_INSTALL = """Install one, and set JAVA_HOME if it is not on the PATH:
  Debian, Ubuntu   sudo apt-get install openjdk-17-jre-headless
  Fedora           sudo dnf install java-21-openjdk-headless
  macOS            brew install openjdk@17 && export JAVA_HOME="$(brew --prefix openjdk@17)\""""


def java_version() -> int:
    """The major version of the Java that Spark will start, or an error that says what to install."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    found = _version_of(java) if java else None
    if found is None or found < OLDEST_JAVA:
        received = f"Java {found}" if found else "none"
        place = f" (JAVA_HOME={home})" if home else ""
        raise ClusterError(f"Spark needs Java {OLDEST_JAVA} or newer. Received: {received}{place}.\n{_HOW_TO_INSTALL}")
    return found


def choose_backend(wanted: str | None) -> str:
    """The backend that was asked for, or else the first that is installed."""
    installed = [name for name in BACKENDS if find_spec(name) is not None]
    if wanted is None and installed:
        return installed[0]
    if wanted in installed and wanted is not None:
        return wanted
    raise ModelError(
        f"Keras needs a backend that is installed. Expected {wanted or 'one of ' + ', '.join(BACKENDS)}. "
        f"Received: {', '.join(installed) or 'none'}. Install it with `pip install 'keraunos[{wanted or 'jax'}]'`."
    )


def _version_of(java: str) -> int | None:
    try:
        printed = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    except OSError:
        return None
    match = re.search(r'version "(\d+)', printed)
    return int(match.group(1)) if match else None
