"""A fit and a transform whose workers run another backend than the driver does, or the one of this process."""

import keras
import numpy as np
import pyarrow as pa
import pytest
from keras import layers

from keraunos import KerasClassifier

pytestmark = pytest.mark.spark


def train_and_serve(spark, backend):
    random = np.random.default_rng(0)
    features = random.normal(size=(200, 4)).astype("float32")
    rows = {
        "features": pa.FixedSizeListArray.from_arrays(pa.array(features.reshape(-1)), 4),
        "label": pa.array((features[:, 0] > 0).astype("int64")),
    }
    frame = spark.createDataFrame(pa.table(rows)).repartition(2)
    model = keras.Sequential(
        [keras.Input((4,)), layers.Dense(8, activation="relu"), layers.Dense(2, activation="softmax")]
    )
    model.compile(keras.optimizers.Adam(0.02), "sparse_categorical_crossentropy", metrics=["accuracy"])
    fitted = KerasClassifier(model=model, epochs=8, batchSize=16, backend=backend, verbose=0).fit(frame)
    served = fitted.transform(frame).select("features", "probability").collect()
    expected = fitted.model.predict(np.array([row.features for row in served], "float32"), verbose=0)
    np.testing.assert_allclose([row.probability.toArray() for row in served], expected, rtol=1e-4, atol=1e-5)
    return fitted.history["accuracy"][-1]


@pytest.mark.slow
@pytest.mark.skipif(keras.config.backend() != "jax", reason="the driver is to run another backend")
def test_workers_on_tensorflow_for_a_driver_on_jax(spark):
    assert train_and_serve(spark, "tensorflow") > 0.9


@pytest.mark.torch
@pytest.mark.skipif(keras.config.backend() != "torch", reason="run by make test-torch")
def test_torch_from_end_to_end(spark):
    assert train_and_serve(spark, "torch") > 0.9
