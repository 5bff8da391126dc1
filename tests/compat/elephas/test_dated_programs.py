"""Programs of five dates, each for the Keras and the Elephas of its day, run as a user would."""

import os
import re
import subprocess
import sys

import pytest

from keraunos.compat.old_keras.evidence import day_of
from tests.compat.elephas.dated_programs import DIGITS, PROGRAMS
from tests.extended import extended

ENVIRONMENT = {
    "KERAS_BACKEND": "jax",
    "PYSPARK_PYTHON": sys.executable,
    "PYSPARK_SUBMIT_ARGS": "--conf spark.ui.enabled=false --conf spark.log.level=ERROR pyspark-shell",
    "SPARK_LOCAL_IP": "127.0.0.1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}

# `make test` runs the oldest and the newest.
EXTENDED = {"2016-03", "2016-12", "2018-12"}


@pytest.mark.parametrize("date", PROGRAMS)
def test_the_source_tells_the_day(date):
    source, day, _ = PROGRAMS[date]
    found, told = day_of([("program.py", source.encode())])
    assert found == day, told


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("date", [extended(date) if date in EXTENDED else date for date in PROGRAMS])
def test_a_program_of_its_day_learns_the_digits(date, tmp_path):
    source, _, reached = PROGRAMS[date]
    if "search" in reached:
        pytest.importorskip("optuna")
    (tmp_path / "digits.py").write_text(DIGITS)
    (tmp_path / "program.py").write_text(source)
    command = [sys.executable, "-m", "keraunos.cli.main", "run", "--as", "elephas", "program.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    accuracies = dict(re.findall(r"^(\w+) accuracy (\d\.\d+)", done.stdout, re.MULTILINE))
    assert tuple(accuracies) == reached
    assert all(float(accuracy) > 0.85 for accuracy in accuracies.values()), accuracies
