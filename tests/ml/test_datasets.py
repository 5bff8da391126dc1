"""What `fit` and `transform` say to what is no DataFrame, or one whose Spark was stopped."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyspark.sql.types import ArrayType, FloatType, IntegerType, StructType

from keraunos import KerasClassifier
from keraunos.errors import JobError
from tests.ml.models import mlp
from tests.ml.untrained import fitted_of

ROOT = Path(__file__).parents[2]
SCHEMA = StructType().add("features", ArrayType(FloatType())).add("label", IntegerType())


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (pd.DataFrame({"features": [[1.0, 2.0, 3.0]], "label": [1]}), "pandas.*DataFrame"),
        (np.zeros((2, 3)), "numpy.ndarray"),
        ([([1.0, 2.0, 3.0], 1)], "builtins.list"),
        (None, "builtins.NoneType"),
    ],
)
def test_something_else_than_a_dataframe_is_refused_with_the_way_to_make_one(given, kind):
    estimator = KerasClassifier(model=mlp())
    fitted = fitted_of(estimator, SCHEMA)
    for method, call in (("fit", estimator.fit), ("transform", fitted.transform)):
        with pytest.raises(JobError, match=rf"`{method}` needs a Spark DataFrame. Received: {kind}.*createDataFrame"):
            call(given)


@pytest.mark.spark
def test_after_the_end_of_spark_every_call_says_so(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tests.ml.stopped_spark", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=True,
    )
    told = [line.split(" ", 2) for line in done.stdout.splitlines()]
    assert [(name, kind) for name, kind, _ in told] == [
        ("fit", "ClusterError"),
        ("transform", "ClusterError"),
        ("save", "ClusterError"),
        ("load", "ClusterError"),
    ]
    for name, _, message in told:
        assert message.startswith(f"`{name}` needs Spark, and ")
        assert "was stopped" in message
