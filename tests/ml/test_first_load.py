"""Loading what was saved as the first thing that a process does with Spark."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from keraunos import KerasClassifier
from keraunos.compat.elephas.ml_model import ElephasEstimator, ElephasTransformer
from keraunos.compat.paddle.estimator import Paddle, PaddleModel
from keraunos.compat.sparkflow.tensorflow_async import SparkAsyncDL, SparkAsyncDLModel
from keraunos.ml.persistence import PartsReader
from tests.ml.models import mlp

ROOT = Path(__file__).resolve().parents[2]


def printed(program):
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=os.environ
        | {
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_SUBMIT_ARGS": "--master local[1] --conf spark.ui.enabled=false pyspark-shell",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.spark
@pytest.mark.slow
def test_a_load_in_a_fresh_process_gets_a_session(spark, tmp_path):
    estimator = KerasClassifier(model=mlp(), batchSize=7)
    estimator.save(str(tmp_path / "saved"))
    program = f"import keraunos\nprint(keraunos.KerasClassifier.load({str(tmp_path / 'saved')!r}).getBatchSize())"
    assert printed(program) == "7\n"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.extended
def test_so_does_one_of_a_stage_of_elephas_where_there_is_only_a_context(spark, tmp_path):
    ElephasEstimator(epochs=3).write().save(str(tmp_path / "saved"))
    program = (
        "from pyspark import SparkContext\nsc = SparkContext()\n"
        "from keraunos.compat.elephas.ml_model import ElephasEstimator\n"
        f"stage = ElephasEstimator.load({str(tmp_path / 'saved')!r})\nprint(stage.get_epochs())"
    )
    assert printed(program) == "3\n"


@pytest.mark.parametrize(
    "stage", [ElephasEstimator, ElephasTransformer, Paddle, PaddleModel, SparkAsyncDL, SparkAsyncDLModel]
)
def test_every_front_end_loads_by_a_reader_that_gets_a_session(stage):
    assert isinstance(stage.read(), PartsReader)
