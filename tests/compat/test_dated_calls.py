"""What programs older than Spark 2 and Keras 3 call, in a process of their own: it changes others' classes."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
from keras.layers.core import Activation, Dense, Dropout
from keras.layers.convolutional import Conv2D
from keras.utils import np_utils
import keras.layers
assert Dense is keras.layers.Dense and Conv2D is keras.layers.Conv2D
assert np_utils.to_categorical([1], 2).tolist() == [[0.0, 1.0]]
try:
    import keras.layers.nowhere
except ModuleNotFoundError as error:
    print("nowhere:", error.name)

from pyspark.mllib.evaluation import MulticlassMetrics
frame = spark.createDataFrame([(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (1.0, 1.0)], ["prediction", "label"])
pairs = frame.map(lambda row: (row.prediction, row.label))
print("pairs:", pairs.count(), frame.flatMap(tuple).count(), frame.mapPartitions(lambda rows: rows).count())
metrics = MulticlassMetrics(pairs)
print("overall:", metrics.precision(), metrics.recall(), metrics.fMeasure())
print("one class:", metrics.precision(1.0), metrics.recall(1.0))
scores = frame.rdd.map(lambda row: (row.label, [1 - row.prediction, row.prediction]))
print("scores:", MulticlassMetrics(scores).accuracy)

from pyspark.ml import Pipeline
from pyspark.ml.feature import StandardScaler
from pyspark.mllib.linalg import Vectors
rows = spark.createDataFrame([(Vectors.dense([1.0, 5.0]),), (Vectors.dense([3.0, 5.0]),)], ["features"])
scaler = StandardScaler(inputCol="features", outputCol="scaled", withMean=True, withStd=True)
scaled = Pipeline(stages=[scaler]).fit(rows).transform(rows).select("scaled").collect()
print("scaled:", [round(float(row.scaled[0]), 3) for row in scaled])
"""


@pytest.mark.spark
def test_dropped_calls_are_there(tmp_path):
    script = tmp_path / "dated.py"
    script.write_text(PROGRAM)
    command = [sys.executable, "-m", "keraunos.cli.main", "run", "--as", "elephas", str(script)]
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "KERAS_BACKEND": "jax"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.splitlines() == [
        "nowhere: keras.layers.nowhere",
        "pairs: 4 8 4",
        "overall: 0.75 0.75 0.75",
        f"one class: {2 / 3} 1.0",
        "scores: 0.75",
        "scaled: [-0.707, 0.707]",
    ]
