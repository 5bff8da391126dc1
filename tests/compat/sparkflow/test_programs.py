"""The program of SparkFlow's document and the three examples, run as a user would."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ENVIRONMENT = {"PYSPARK_PYTHON": sys.executable}
EXAMPLES = Path(__file__).resolve().parents[3] / "examples"

SCORE = """
import sys
from pyspark.ml import PipelineModel
from pyspark.ml.evaluation import MulticlassClassificationEvaluator
from pyspark.sql import SparkSession
from keraunos.compat.sparkflow.pipeline_util import PysparkPipelineWrapper
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.read.option("inferSchema", "true").csv("mnist_train.csv")
evaluator = MulticlassClassificationEvaluator(labelCol="_c0", predictionCol="predicted", metricName="accuracy")
pipeline = PysparkPipelineWrapper.unwrap(PipelineModel.load("location"))
print("ACCURACY", evaluator.evaluate(pipeline.transform(rows)))
"""

ALL_EXAMPLES = f"""
import sys
sys.path.insert(0, {str(EXAMPLES / "sparkflow")!r})
import autoencoder_example, cnn_example, simple_dnn
simple_dnn.main()
cnn_example.main(iters=4)
autoencoder_example.main()
"""


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


def test_the_documents_program(folder):
    keraunos = [sys.executable, "-m", "keraunos.cli.main", "run", "--as", "sparkflow"]
    printed = run([*keraunos, str(EXAMPLES / "seeds" / "sparkflow.py")], folder)
    told = re.findall(r"^Partition Id: (\d+), Iteration: (\d+), Loss: ([\d.]+)$", printed, re.MULTILINE)
    assert sorted(int(iteration) for partition, iteration, _ in told if partition == "0") == list(range(20))
    assert float(told[-1][2]) < 0.5
    (metadata,) = (folder / "location" / "stages").glob("2_*/metadata/part-*")
    assert json.loads(metadata.read_text())["class"].startswith("keraunos.compat.sparkflow.")
    # In another process, which runs under no alias.
    accuracy = float(run([sys.executable, "-c", SCORE], folder).split("ACCURACY ")[1])
    assert accuracy > 0.95


def test_the_three_examples(folder):
    printed = run([sys.executable, "-c", ALL_EXAMPLES], folder)
    assert float(re.search(r"^test error ([\d.]+)$", printed, re.MULTILINE).group(1)) < 0.08
    assert float(re.search(r"^accuracy ([\d.]+)$", printed, re.MULTILINE).group(1)) > 0.9
    assert float(re.search(r"^mean squared error ([\d.]+)$", printed, re.MULTILINE).group(1)) < 0.3


def test_every_example_is_run():
    names = {path.stem for path in (EXAMPLES / "sparkflow").glob("*.py")} - {"digits_csv"}
    assert all(f"{name}.main(" in ALL_EXAMPLES for name in names)
