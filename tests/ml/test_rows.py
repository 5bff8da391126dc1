"""What becomes of rows that a model cannot read as they are, from the DataFrame to the prediction."""

from __future__ import annotations

import logging

import keras
import numpy as np
import pytest
from keras import layers

from keraunos import KerasClassificationModel, KerasClassifier, KerasRegressor
from keraunos.errors import DataError
from tests.ml.models import mlp
from tests.ml.untrained import fitted_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_an_infinite_feature_ends_the_fit_and_names_itself(spark):
    frame = spark.createDataFrame([([1.0, 2.0, 1e300], 0)] * 2, "features array<double>, label int")
    with pytest.raises(DataError, match="'features' holds a value that is infinite as float32.*1e\\+300.*allowNaN"):
        KerasClassifier(model=mlp(), verbose=0, numWorkers=1).fit(frame)


def test_rows_that_are_not_finite_have_null_predictions_after_a_reload_too(spark, tmp_path):
    rows = [([1.0, 2.0, 3.0],), ([1.0, float("nan"), 3.0],), ([1.0, 1e300, 3.0],), (None,)]
    frame = spark.createDataFrame([(*row, 0) for row in rows], "features array<double>, label int").coalesce(1)
    for allowed, known in ((False, [True, False, False, False]), (True, [True, True, True, False])):
        fitted = fitted_of(KerasClassifier(model=mlp(), allowNaN=allowed), frame.schema)
        path = str(tmp_path / str(allowed))
        fitted.write().save(path)
        loaded = KerasClassificationModel.load(path)
        assert loaded.getAllowNaN() is allowed
        found = loaded.transform(frame).collect()
        assert [row.probability is not None for row in found] == known
        # What this model makes of NaN is NaN, which is no class; its tanh makes a number of an infinite one.
        assert [row.prediction is not None for row in found] == [True, False, allowed, False]


def test_names_with_dots_and_backticks(spark):
    columns = "`x.y` array<double>, `a.b` double, `a``c` double, `la.bel` double, `w.t` double, `v.i` boolean"
    rows = [([1.0, 2.0], 1.0, 3.0, 0.5, 1.0, True), ([2.0, 1.0], 2.0, 1.0, 0.5, 1.0, False)] * 4
    frame = spark.createDataFrame(rows, columns)
    left, right = keras.Input((2,), name="left"), keras.Input((2,), name="right")
    model = keras.Model([left, right], layers.Dense(1)(layers.Concatenate()([left, right])))
    model.compile("sgd", "mse")
    regressor = KerasRegressor(
        model=model, featuresCol={"left": "x.y", "right": ["`a.b`", "a`c"]}, labelCol="`la.bel`", weightCol="w.t",
        validationIndicatorCol="v.i", predictionCol="p.q", numWorkers=1, verbose=0,
    )  # fmt: skip
    fitted = regressor.fit(frame)
    assert np.isfinite(fitted.history["val_loss"]).all()
    found = fitted.transform(frame).collect()
    expected = fitted.model.predict_on_batch([np.array([[1.0, 2.0]]), np.array([[1.0, 3.0]])])
    assert found[0]["p.q"] == pytest.approx(float(np.asarray(expected)[0, 0]), rel=1e-5)


def test_a_fit_of_raw_scores_warns_once(spark, caplog):
    frame = spark.createDataFrame([([1.0, 2.0, 3.0], 0)] * 2, "features array<double>, label int")
    with caplog.at_level(logging.WARNING):
        KerasClassifier(model=mlp(activation=None), verbose=0, numWorkers=1).fit(frame)
    assert len([each for each in caplog.messages if "are no probabilities" in each]) == 1
