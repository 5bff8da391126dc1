"""The program of SparkFlow's document, run as a user would."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.ml import PipelineModel
from pyspark.ml.evaluation import MulticlassClassificationEvaluator

from keraunos.compat.sparkflow.pipeline_util import PysparkPipelineWrapper

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ENVIRONMENT = {"PYSPARK_PYTHON": sys.executable}
EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def run(command, folder):
    done = subprocess.run(
        command, cwd=folder, env=os.environ | ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with MNIST's file, which here holds scikit-learn's digits."""
    folder = tmp_path_factory.mktemp("programs")
    program = "from digits_csv import mnist_csv; mnist_csv('mnist_train.csv')"
    subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(EXAMPLES / "sparkflow")},
        check=True,
    )
    return folder


def test_the_documents_program(folder, spark):
    keraunos = [sys.executable, "-m", "keraunos.cli.main", "run", "--as", "sparkflow"]
    printed = run([*keraunos, str(EXAMPLES / "seeds" / "sparkflow.py")], folder)
    told = re.findall(r"^Partition Id: (\d+), Iteration: (\d+), Loss: ([\d.]+)$", printed, re.MULTILINE)
    assert sorted(int(iteration) for partition, iteration, _ in told if partition == "0") == list(range(20))
    assert float(told[-1][2]) < 0.5
    (metadata,) = (folder / "location" / "stages").glob("2_*/metadata/part-*")
    assert json.loads(metadata.read_text())["class"].startswith("keraunos.compat.sparkflow.")
    # In another process, which runs under no alias.
    rows = spark.read.option("inferSchema", "true").csv(str(folder / "mnist_train.csv"))
    evaluator = MulticlassClassificationEvaluator(labelCol="_c0", predictionCol="predicted", metricName="accuracy")
    pipeline = PysparkPipelineWrapper.unwrap(PipelineModel.load(str(folder / "location")))
    assert evaluator.evaluate(pipeline.transform(rows)) > 0.95
