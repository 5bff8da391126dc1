"""Runs the programs in `examples/` as a user would."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

# A JVM that lives for a minute had better not compile for a long life.
ENVIRONMENT = {"KERAS_BACKEND": "jax", "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run_example(name, folder):
    environment = os.environ | ENVIRONMENT
    command = [sys.executable, str(EXAMPLES / name)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.spark
@pytest.mark.slow
def test_digits(tmp_path):
    printed = run_example("digits.py", tmp_path)
    assert "History of 8 epochs" in printed
    assert float(re.search(r"accuracy (0\.\d+|1\.0+)$", printed, re.MULTILINE).group(1)) > 0.9
    assert (tmp_path / "models/digits/metadata").exists()


@pytest.mark.spark
@pytest.mark.slow
def test_diabetes_regression(tmp_path):
    printed = run_example("diabetes_regression.py", tmp_path)
    epochs, error = re.search(r"(\d+) epochs, mean absolute error ([\d.]+)", printed).groups()
    assert 1 < int(epochs) <= 60
    assert float(error) < 60  # always guessing the mean is off by about 66


@pytest.mark.spark
@pytest.mark.slow
def test_exchange_plans(tmp_path):
    printed = run_example("exchange_plans.py", tmp_path)
    rows = re.findall(r"^(\w[\w ]*?) {2,}([\d.]+) +[\d.]+$", printed, re.MULTILINE)
    assert [name for name, _ in rows] == ["allreduce", "elastic", "Adam on the servers"]
    assert all(float(accuracy) > 0.9 for _, accuracy in rows)


def test_every_example_has_a_test():
    source = Path(__file__).read_text()
    assert all(f'"{path.name}"' in source for path in EXAMPLES.glob("*.py"))
