"""Runs the programs in `examples/` as a user would."""

import re
from pathlib import Path

import pytest

from tests.docs.one_process import run_programs

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = ["digits.py", "exchange_plans.py", "ink_regression.py"]

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("examples")


@pytest.fixture(scope="module")
def printed(folder):
    """What each example printed; all of them share a process and its Spark."""
    return run_programs([EXAMPLES / name for name in NAMES], folder)


def test_digits(printed, folder):
    assert "History of 8 epochs" in printed["digits.py"]
    assert float(re.search(r"accuracy (0\.\d+|1\.0+)$", printed["digits.py"], re.MULTILINE).group(1)) > 0.9
    assert (folder / "models/digits/metadata").exists()


def test_ink_regression(printed):
    found = re.search(r"(\d+) epochs, mean absolute error ([\d.]+)", printed["ink_regression.py"])
    assert 1 < int(found.group(1)) <= 60
    assert float(found.group(2)) < 22  # always guessing the mean is off by about 27


def test_exchange_plans(printed):
    rows = re.findall(r"^(\w[\w ]*?) {2,}([\d.]+) +[\d.]+$", printed["exchange_plans.py"], re.MULTILINE)
    assert [name for name, _ in rows] == ["allreduce", "elastic", "Adam on the servers"]
    assert all(float(accuracy) > 0.9 for _, accuracy in rows)


def test_every_example_has_a_test():
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == NAMES
