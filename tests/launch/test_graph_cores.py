"""One network a task: on executors of one core, on one of two, and in a task that has two."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.launch import graph_fit

ROOT = Path(__file__).parents[2]

EXECUTORS = "local-cluster[2,1,1024]"
ONE_TASK = "local[2]"

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_an_executor_of_two_cores_trains_two_networks(spark):
    assert graph_fit.difference(spark, workers=2) < 1e-4


@pytest.fixture(scope="module")
def differences():
    """How far a fit on each Spark is off; both are started in one process, which reads TensorFlow once."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.launch.graph_fit", json.dumps([[EXECUTORS, "1", 2], [ONE_TASK, "2", 1]])],
        cwd=ROOT,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.parametrize("master", [EXECUTORS, ONE_TASK], ids=["executors of one core", "a task of two cores"])
def test_a_spark_of_its_own(master, differences):
    assert differences[master] < 1e-4
