"""Executors in processes of their own, with what they are given and what they lack."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What each program printed. They share a process and its JVM, which take as long to start as a program does."""
    folder = tmp_path_factory.mktemp("programs")
    devices = folder / "devices.sh"
    devices.write_text('#!/bin/sh\necho \'{"name": "gpu", "addresses": ["3"]}\'\n')
    devices.chmod(0o755)
    venv.create(folder / "bare", with_pip=False)
    programs = [
        ["same_bits"],
        ["devices", str(devices)],
        ["grows"],
        ["no_executors"],
        ["no_worker_comes"],
        # The last: after a local master, this JVM has another name for its host.
        ["bare_python", str(folder / "bare" / "bin" / "python")],
    ]
    ended = subprocess.run(
        [sys.executable, "-m", "tests.launch.cluster_fit", json.dumps(programs)],
        cwd=ROOT,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=560,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    sections = ended.stdout.split("== ")[1:]
    return {name: text for name, _, text in (section.partition("\n") for section in sections)}


def test_two_fits_on_a_cluster_give_the_same_bits(told):
    lines = [line.split() for line in told["same_bits"].splitlines()]
    digests = [line[1] for line in lines if line[0] == "digest"]
    assert len(digests) == 2
    assert digests[0] == digests[1]
    assert ["executors", "2"] in lines


def test_devices_of_the_task_become_the_workers_devices(told):
    assert "devices <3>" in told["devices"]


def test_executors_without_the_package_are_one_clear_error(told):
    assert told["bare_python"].startswith("ClusterError The executors cannot import")
    assert "PYSPARK_PYTHON" in told["bare_python"]


def test_a_cluster_that_grows_is_waited_for_and_refused_where_it_cannot_grow_enough(told):
    assert "epochs 2" in told["grows"]
    assert "ClusterError This fit needs 3 task slots at once, and dynamic allocation grows to 2" in told["grows"]


def test_a_cluster_without_executors_is_told_within_seconds(told):
    assert "ClusterError No executor has registered with Spark within 15 s" in told["no_executors"]


def test_where_no_worker_comes_the_error_says_what_spark_knows(told):
    memory, ended, late = told["no_worker_comes"].splitlines()
    assert memory.startswith(
        "WorkerError The Spark job failed because Java ran out of memory: java.lang.OutOfMemoryError"
    )
    assert "a larger heap (spark.executor.memory;" in memory
    assert ended.startswith("ClusterError The executors could not start Python: ")
    assert late.startswith("ClusterError Only 0 of 1 workers came to the driver at ipc://")
    assert "attempt(s) at its tasks have failed, the last at task 0 on 127.0.0.1: " in late
    for each in (ended, late):
        assert "EOFException occurred while reading the port number from pyspark.daemon's stdout" in each
