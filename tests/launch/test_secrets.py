"""The secrets of a fit are in no file, however large what travels with them."""

import os
from pathlib import Path

import keras
import numpy as np
import pytest

from keraunos import scratch
from keraunos.errors import ClusterError
from keraunos.launch import spark as launch
from keraunos.launch.task_payload import Payload, packed, unpacked
from keraunos.session.registry import session_of
from tests.conformance import engine
from tests.conformance import learner_models as models
from tests.launch.test_spark import Signals, frame, job, rows

pytestmark = pytest.mark.spark

BLOB = os.urandom(2 << 20)


def large_layer():
    """A class that workers cannot import, and that carries 2 MB."""

    class Large(keras.layers.Layer):
        table = BLOB

        def call(self, inputs):
            return inputs * float(len(self.table) > 0)

    return Large


def large_function():
    """A function of the user's that carries 2 MB."""
    blob = bytes(BLOB)
    return lambda record: record if blob else None


def job_with(layer):
    model = keras.Sequential([keras.Input((models.FEATURES,)), layer(), keras.layers.Dense(3, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    return engine.job_of(model, 2, batch_size=16, custom={"Large": layer})


def records(spark):
    table = rows(40)
    pairs = zip(np.stack(table["x"].to_numpy()).tolist(), table["y"].to_pylist(), strict=True)
    return spark.sparkContext.parallelize([{"x": x, "y": y} for x, y in pairs], 2)


@pytest.fixture
def local_directories(spark):
    """Everything that Spark writes below on this machine."""
    (blocks,) = spark.sparkContext.parallelize([0], 1).map(lambda _: scratch.spark_directory()).collect()
    return [Path(spark.sparkContext._temp_dir).parent, Path(blocks)]


@pytest.fixture
def connections(monkeypatch):
    """What the fits of a test hand to their workers."""
    handed_over = []
    launched = launch._launched

    def noted(job, data, opened, *others):
        handed_over.append(opened.connection)
        return launched(job, data, opened, *others)

    monkeypatch.setattr(launch, "_launched", noted)
    return handed_over


def secrets_of(value):
    if isinstance(value, dict):
        return [secret for each in value.values() for secret in secrets_of(each)]
    return [value.encode()] if isinstance(value, str) and len(value) >= 32 else []


@pytest.mark.parametrize("large", ["a class, by DataFrame", "a class, by RDD", "a function before it"])
def test_no_file_of_sparks_holds_the_secrets_while_a_fit_with_large_code_runs(
    spark, local_directories, connections, large
):
    found = {}

    def look():
        files = [path for each in local_directories for path in each.rglob("*") if path.is_file()]
        contents = [path.read_bytes() for path in files]
        found["secrets"] = [secret for secret in secrets_of(connections[0]) if any(secret in each for each in contents)]
        found["code"] = any(BLOB in each for each in contents)

    asked, custom, data = job(), None, frame(spark)
    if "class" in large:
        layer = large_layer()
        asked, custom = job_with(layer), {"Large": layer}
    if "RDD" in large:
        data = records(spark)
    if "function" in large:
        data = records(spark).map(large_function())
    result = launch.fit(asked, data, custom_objects=custom, callbacks=[Signals(look)], verbose=0)
    assert result.history["loss"]
    assert secrets_of(connections[0])
    assert found == {"secrets": [], "code": True}
    look()
    assert not found["code"]  # what was put there for the fit went with it


def test_broadcasts_of_the_users_reach_functions_that_travel_with_the_payload(spark):
    table = spark.sparkContext.broadcast({"factor": 2.0})
    scaled = records(spark).map(lambda record: {**record, "x": [table.value["factor"] * each for each in record["x"]]})
    assert launch.fit(job(), scaled, verbose=0).history["loss"]


def test_a_small_payload_travels_by_itself(spark):
    payload = Payload({"threads": 1}, ("x", "y"), None)
    with packed(session_of(spark), payload) as content:
        assert isinstance(content, bytes)
        assert unpacked(content) == payload


def test_a_threshold_under_which_every_task_becomes_a_file_is_refused(spark):
    conf = spark.sparkContext._jsc.sc().conf()
    conf.set("spark.broadcast.UDFCompressionThreshold", "1000")
    try:
        with pytest.raises(ClusterError, match="UDFCompressionThreshold must be at least 32768.*Received: 1000"):
            launch.fit(job(), frame(spark), verbose=0)
    finally:
        conf.remove("spark.broadcast.UDFCompressionThreshold")
