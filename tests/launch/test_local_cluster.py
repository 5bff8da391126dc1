"""Executors in processes of their own, where Spark does not keep the order of rows across a shuffle."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.spark
@pytest.mark.slow
def test_two_fits_on_a_cluster_give_the_same_bits():
    ended = subprocess.run(
        [sys.executable, "-m", "tests.launch.cluster_fit", "local-cluster[2,1,1024]"],
        cwd=ROOT,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    digests = [line.split()[1] for line in ended.stdout.splitlines() if line.startswith("digest")]
    assert len(digests) == 2
    assert digests[0] == digests[1]
    assert "hosts 3" in ended.stdout
