"""The first minutes of a new user: the wheel and what it declares, nothing else, an empty home and an empty folder.

Run by `make test-wheel`, which builds the wheel and installs it in an environment of its own. The interpreter there
has no pytest: the tests run here, and their programs there.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.docs.one_process import run_programs
from tests.docs.snippets import ROOT, program_of
from tests.java import SHORT_LIVED

PYTHON = ROOT / ".venv-wheel" / "bin" / "python"
OURS = ("KERAS", "PYTHON", "PYSPARK", "SPARK_HOME", "VIRTUAL_ENV", "TF_", "JAX_")

# Prints what is there and should not be.
FOREIGN = """
import importlib.util, sys
others = ("tensorflow", "torch", "pytest", "hatchling", "sklearn", "tests")
print(*(name for name in others if importlib.util.find_spec(name)))
print(importlib.util.find_spec("keraunos").origin)
print(*sys.path, sep="\\n")
"""


@pytest.fixture
def environment(tmp_path):
    """What a new user's shell has."""
    (tmp_path / "home").mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    own = {"HOME": str(tmp_path / "home"), "SPARK_LOCAL_IP": "127.0.0.1", "JDK_JAVA_OPTIONS": SHORT_LIVED}
    return {**kept, **own}


@pytest.fixture
def folder(tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    return empty


def test_nothing_else_is_installed(environment, folder):
    told = subprocess.run(
        [PYTHON, "-c", FOREIGN], cwd=folder, env=environment, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert told[0] == ""
    assert Path(told[1]).is_relative_to(PYTHON.parents[1])
    assert not [path for path in told[2:] if path and Path(path).is_relative_to(ROOT / "src")]


@pytest.mark.parametrize("document", ["README.md", "docs/guide.md"])
def test_the_document_runs_from_top_to_bottom(document, environment, folder, tmp_path):
    program = tmp_path / f"{Path(document).stem}.py"
    program.write_text(program_of(document, extras=()))
    printed = run_programs([program], folder, str(PYTHON), environment)[program.name]
    assert "+----" in printed  # what `show` draws
    if document == "README.md":
        assert float(re.search(r"^mean error ([\d.]+)$", printed, re.MULTILINE).group(1)) < 1.6


def test_the_demo(environment, folder):
    command = [PYTHON.with_name("keraunos"), "demo"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "predictions identical" in done.stdout
    assert "on jax" in done.stdout
    assert list(folder.iterdir()) == []
