"""A shell of IPython as a notebook's kernel has one, without the kernel."""

import os
import sys

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """The shell; what it and the extension change about the process is put back."""
    environment, finders = dict(os.environ), list(sys.meta_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    for name in ("MASTER", "PYSPARK_SUBMIT_ARGS", "KERAUNOS_RUN_AS", "JPY_SESSION_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    # A kernel's shell has the settings of the kernel's application about it.
    config = Config({"HistoryManager": {"enabled": False}, "IPKernelApp": {"quiet": True}})
    yield InteractiveShell.instance(config=config, user_ns={})
    InteractiveShell.clear_instance()
    sys.meta_path[:] = finders
    os.environ.clear()
    os.environ.update(environment)


@pytest.fixture
def shown(shell):
    """What is displayed meanwhile: a list of the data of each display and each update of one."""
    shell.display_pub = CapturingDisplayPublisher()
    return shell.display_pub.outputs
