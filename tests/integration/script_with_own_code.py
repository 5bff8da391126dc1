"""A user's script: everything that a model can have of its own lives in it, and nothing is handed over.

`test_own_code.py` runs it as `__main__`; it prints what the test looks at as one line of JSON.
"""

import json
import logging
import sys

import keras
import numpy as np
import pyarrow as pa
from keras import layers
from pyspark.sql import SparkSession

from keraunos import KerasRegressor
from keraunos.errors import JobError

SHIFT = 1.0


class Shifted(layers.Layer):
    def call(self, inputs):
        return inputs + SHIFT


def leaky(values):
    return keras.ops.maximum(values, 0.1 * values)


class Ones(keras.initializers.Initializer):
    def __call__(self, shape, dtype=None):
        return keras.ops.ones(shape, dtype=dtype) * 0.5


class Small(keras.regularizers.Regularizer):
    def __call__(self, weights):
        return 1e-4 * keras.ops.sum(keras.ops.square(weights))


class Capped(keras.constraints.Constraint):
    def __call__(self, weights):
        return keras.ops.clip(weights, -2.0, 2.0)


class Gap(keras.losses.Loss):
    def call(self, y_true, y_pred):
        return keras.ops.mean(keras.ops.square(y_true - y_pred), axis=-1)


class Mean(keras.metrics.Mean):
    def update_state(self, y_true, y_pred, sample_weight=None):
        return super().update_state(keras.ops.abs(y_true - y_pred), sample_weight)

    def merge_state(self, metrics):
        for each in metrics:
            self.total.assign_add(each.total)
            self.count.assign_add(each.count)


def furthest(y_true, y_pred):
    return keras.ops.max(keras.ops.abs(y_true - y_pred), axis=-1)


class Slowing(keras.optimizers.schedules.LearningRateSchedule):
    def __call__(self, step):
        return 0.05 / (1.0 + 0.01 * keras.ops.cast(step, "float32"))

    def get_config(self):
        return {}


class Plain(keras.optimizers.SGD):
    pass


class Net(keras.Model):
    def __init__(self, units=4, **options):
        super().__init__(**options)
        self.units = units
        self.first = Shifted()
        self.inner = layers.Dense(
            units, activation=leaky, kernel_initializer=Ones(), kernel_regularizer=Small(), kernel_constraint=Capped()
        )
        self.outer = layers.Dense(1)

    def call(self, inputs):
        return self.outer(self.inner(self.first(inputs)))

    def get_config(self):
        return {**super().get_config(), "units": self.units}


def made_in_a_function():
    class Inner(layers.Layer):
        def call(self, inputs):
            return inputs * 2.0

    return keras.Sequential([Inner(), layers.Dense(1)])


if __name__ == "__main__":
    warnings = []
    handler = logging.Handler()
    handler.emit = lambda record: warnings.append(record.getMessage())
    logging.getLogger("keraunos").addHandler(handler)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    x = np.random.default_rng(0).normal(size=(40, 3)).astype("float32")
    rows = {"features": pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), 3), "label": pa.array(x.sum(axis=1))}
    frame = spark.createDataFrame(pa.table(rows)).repartition(2).cache()
    told = {}
    for name, model in {"net": Net(), "inner": made_in_a_function()}.items():
        model.compile(Plain(Slowing()), Gap(), metrics=[Mean(name="gap"), furthest])
        fitted = KerasRegressor(model=model, epochs=2, batchSize=8, verbose=0).fit(frame)
        served = [row.prediction for row in fitted.transform(frame).select("prediction").collect()]
        own = fitted.model.predict(np.array([row.features for row in frame.collect()]), verbose=0)[:, 0]
        try:
            fitted.save(f"{sys.argv[1]}/{name}")
            refused = None
        except JobError as error:
            refused = str(error)
        told[name] = {
            "losses": fitted.history["loss"],
            "metrics": sorted(fitted.history),
            "differs": float(np.abs(np.array(served) - own).max()),
            "refused": refused,
        }
    spark.stop()
    print("TOLD", json.dumps({**told, "warnings": [each for each in warnings if "saved" in each]}))
