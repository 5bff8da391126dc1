"""`keraunos notebook`: JupyterLab with a Spark session in every Python notebook. Runs on the driver.

The files that Jupyter and IPython would write to the user's home are in a temporary folder, which is removed when the
server ends. A kernel specification in that folder replaces the usual one of Python. It loads `keraunos.notebook` into
each kernel.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from keraunos import scratch
from keraunos.compat.run_unchanged.spark_settings import SYSTEM_VARIABLE
from keraunos.compat.run_unchanged.systems import system_named
from keraunos.errors import JobError
from keraunos.launch.preflight import check_java

EXTENSION = "keraunos.notebook"
NEEDED = ("jupyterlab", "ipykernel")


def notebook(
    system_name: str, target: str | None, *, port: int | None = None, browser: bool = True, allow_root: bool = False
) -> int:
    """Serve notebooks until the server ends. Returns the exit code.

    Args:
        system_name: the older system whose modules cells can import, `""` for none.
        target: the notebook or folder to open; `None` is the current folder.
        port: the port on 127.0.0.1; `None` is the first free port from 8888 on.
        browser: whether to open a browser.
        allow_root: whether root may serve notebooks, which Jupyter refuses otherwise.
    """
    system = system_named(system_name)
    check_installed()
    arguments = lab_arguments(target, port=port, browser=browser, allow_root=allow_root)
    check_java()
    with scratch.folder("notebook") as folder:
        os.environ.update(lab_environment(os.environ, system.name, Path(folder)))
        write_settings(Path(folder))
        _end_with_terminal()
        return _serve(arguments)


def check_installed() -> None:
    """Raises an error that says what to install if JupyterLab is missing."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise JobError(
            f"`keraunos notebook` needs JupyterLab. Received: an environment without {' and '.join(missing)}. Install "
            "it with `pip install 'keraunos[notebook]'`."
        )


def lab_arguments(target: str | None, *, port: int | None, browser: bool, allow_root: bool) -> list[str]:
    """Returns the command line arguments of JupyterLab. Its token stays enabled."""
    path = Path(target or ".")
    if not path.is_dir() and not (path.is_file() and path.suffix == ".ipynb"):
        raise JobError(
            f"`keraunos notebook` opens a folder or a notebook, a file that ends in .ipynb. Received: {target!r}, "
            f"{'which is neither' if path.exists() else 'which does not exist'}."
        )
    folder = path if path.is_dir() else path.parent
    arguments = [
        # The server logs only its address and errors.
        "--log-level=WARN",
        "--LabApp.log_level=WARN",
        # The search for language servers would call npm, which writes to the home folder.
        "--LanguageServerManager.autodetect=False",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.root_dir={folder.resolve()}",
    ]
    if folder != path:
        arguments.append(f"--LabApp.default_url=/lab/tree/{quote(path.name)}")
    if port is not None:
        # No other port than the given one: a user who gives a port needs that port.
        arguments += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    if not browser:
        arguments.append("--no-browser")
    if allow_root:
        arguments.append("--allow-root")
    return arguments


def lab_environment(given: Mapping[str, str], system_name: str, folder: Path) -> dict[str, str]:
    """Returns the variables that tell Jupyter and IPython where to store files, and kernels which system to use."""
    found = given.get("JUPYTER_PATH")
    return {
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        # Searched first: a virtual environment's own kernel specification precedes those in the data folder.
        "JUPYTER_PATH": os.pathsep.join([str(folder / "kernel"), *([found] if found else [])]),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        SYSTEM_VARIABLE: system_name,
    }


def write_settings(folder: Path) -> None:
    """Write the kernel specification, and the setting that disables JupyterLab's question about news."""
    kernel = {
        "argv": [
            sys.executable,
            "-m",
            "ipykernel_launcher",
            f"--InteractiveShellApp.extra_extensions={EXTENSION}",
            # Native code of Spark and the frameworks logs to the terminal; cells show only what Python writes.
            "--IPKernelApp.capture_fd_output=False",
            "-f",
            "{connection_file}",
        ],
        "display_name": "Python 3 with Spark",
        "language": "python",
        "metadata": {"debugger": True},
    }
    _write_json(folder / "kernel" / "kernels" / "python3" / "kernel.json", kernel)
    news = folder / "settings" / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
    _write_json(news, {"checkForUpdates": False, "fetchNews": "false"})


def _write_json(path: Path, data: Mapping[str, object]) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(data, indent=1), encoding="utf-8")


def _end_with_terminal() -> None:
    """If the terminal is closed, the server ends as with Ctrl-C, with its kernels and its folder."""
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))


def _serve(arguments: Sequence[str]) -> int:
    from jupyterlab.labapp import LabApp

    try:
        LabApp.launch_instance(list(arguments))
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0
