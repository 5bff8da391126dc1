"""Predictions for RDDs, on a real local Spark."""

import numpy as np
import pytest

from keraunos.errors import JobError
from keraunos.job.columns import Columns, Slot
from keraunos.launch.predict import predict_rdd
from keraunos.testing.learner_batches import rows
from tests.conformance import graph_models

pytestmark = pytest.mark.spark

COLUMNS = Columns((Slot(None, ("x",)),))


def test_predictions_come_in_the_order_of_the_records_and_can_be_mapped_further(spark):
    model = graph_models.dense("sgd")
    inputs = rows(5).inputs
    # Partitions of one record, of two and of none are among them.
    rdd = spark.sparkContext.parallelize([[row] for row in inputs], 8).coalesce(3)
    predictions = predict_rdd(rdd, model.source(), COLUMNS, batch_rows=2)
    found = predictions.map(lambda each: (type(each).__name__, each)).collect()
    assert {kind for kind, _ in found} == {"ndarray"}
    np.testing.assert_allclose([each for _, each in found], model.predict(inputs), rtol=1e-5, atol=1e-6)


def test_a_wrong_number_of_rows_at_once_is_refused_on_the_driver(spark):
    rdd = spark.sparkContext.parallelize([[1.0]], 1)
    with pytest.raises(JobError, match="`batch_rows` must be a whole number of at least 1. Received: 0"):
        predict_rdd(rdd, graph_models.dense("sgd").source(), COLUMNS, batch_rows=0)
