"""Executors in processes of their own, with what they are given and what they lack."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def run(*arguments, **environment):
    ended = subprocess.run(
        [sys.executable, "-m", "tests.launch.cluster_fit", *arguments],
        cwd=ROOT,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended.stdout


def test_two_fits_on_a_cluster_give_the_same_bits():
    lines = [line.split() for line in run("same_bits").splitlines()]
    digests = [line[1] for line in lines if line[0] == "digest"]
    assert len(digests) == 2
    assert digests[0] == digests[1]
    assert ["executors", "2"] in lines


def test_devices_of_the_task_become_the_workers_devices(tmp_path):
    script = tmp_path / "devices.sh"
    script.write_text('#!/bin/sh\necho \'{"name": "gpu", "addresses": ["3"]}\'\n')
    script.chmod(0o755)
    assert "devices <3>" in run("devices", str(script))


def test_executors_without_the_package_are_one_clear_error(tmp_path):
    venv.create(tmp_path / "bare", with_pip=False)
    told = run("bare_python", PYSPARK_PYTHON=str(tmp_path / "bare" / "bin" / "python"))
    assert told.startswith("ClusterError The executors cannot import")
    assert "PYSPARK_PYTHON" in told


def test_a_cluster_that_grows_is_waited_for_and_refused_where_it_cannot_grow_enough():
    told = run("grows")
    assert "epochs 2" in told
    assert "ClusterError This fit needs 3 task slots at once, and dynamic allocation grows to 2" in told


def test_a_cluster_without_executors_is_told_within_seconds():
    assert "ClusterError No executor has registered with Spark within 15 s" in run("no_executors")


def test_where_no_worker_comes_the_error_says_what_spark_knows():
    # Its own choice of Python is the driver's; this one is the program's.
    memory, ended, late = run("no_worker_comes", PYSPARK_PYTHON=sys.executable).splitlines()
    assert memory.startswith(
        "WorkerError The Spark job failed because Java ran out of memory: java.lang.OutOfMemoryError"
    )
    assert "a larger heap (spark.executor.memory;" in memory
    assert ended.startswith("ClusterError The executors could not start Python: ")
    assert late.startswith("ClusterError Only 0 of 1 workers came to the driver at ipc://")
    assert "attempt(s) at its tasks have failed, the last at task 0 on 127.0.0.1: " in late
    for told in (ended, late):
        assert "EOFException occurred while reading the port number from pyspark.daemon's stdout" in told
