"""One network a task: on executors of one core, of two, and with tasks that have two."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def fit(*arguments):
    ended = subprocess.run(
        [sys.executable, "-m", "tests.launch.graph_fit", *arguments],
        cwd=ROOT,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("master", "cores", "task_cpus", "workers"),
    [
        ("local-cluster[2,1,1024]", "1", "1", "2"),
        ("local-cluster[1,2,1024]", "2", "1", "2"),
        ("local[2]", "2", "2", "1"),
    ],
    ids=["executors of one core", "an executor of two cores", "a task of two cores"],
)
def test_a_graph_trains_like_one_session(master, cores, task_cpus, workers):
    assert fit(master, cores, task_cpus, workers)["difference"] < 1e-4
