"""Arrays to DataFrames and back."""

import numpy as np
import pytest
from pyspark.ml.linalg import VectorUDT
from pyspark.mllib.linalg import Vectors as OldVectors
from pyspark.mllib.regression import LabeledPoint

from keraunos.compat.elephas.ml.adapter import df_to_simple_rdd, from_data_frame, to_data_frame
from keraunos.errors import ColumnError, DataError

pytestmark = pytest.mark.spark

FEATURES = np.arange(20.0).reshape(2, 10)
NUMBERS = np.asarray([2.0, 1.5])
ONE_HOT = np.asarray([[0, 0, 1.0], [0, 1.0, 0]])


@pytest.mark.parametrize("labels", [NUMBERS, NUMBERS[:, np.newaxis]])
def test_numbers_stay_numbers(spark, labels):
    frame = to_data_frame(spark.sparkContext, FEATURES, labels)
    assert frame.columns == ["features", "label"]
    assert isinstance(frame.schema["features"].dataType, VectorUDT)
    x, y = from_data_frame(frame)
    np.testing.assert_array_equal(x, FEATURES)
    np.testing.assert_array_equal(y, NUMBERS)


def test_one_hot_labels_are_class_numbers_in_between(spark):
    frame = to_data_frame(spark.sparkContext, FEATURES, ONE_HOT, categorical=True)
    assert [row.label for row in frame.collect()] == [2.0, 1.0]
    np.testing.assert_array_equal(from_data_frame(frame, categorical=True, nb_classes=3)[1], ONE_HOT)
    np.testing.assert_array_equal(from_data_frame(frame, categorical=True)[1], ONE_HOT)


def test_rows_of_any_shape_come_back(spark):
    images, targets = np.arange(24.0).reshape(2, 2, 3, 2), np.arange(4.0).reshape(2, 2)
    x, y = from_data_frame(to_data_frame(spark, images, targets))
    np.testing.assert_array_equal(x, images)
    np.testing.assert_array_equal(y, targets)


def test_an_rdd_has_pairs(spark):
    frame = to_data_frame(spark.sparkContext, FEATURES, NUMBERS)
    (first, label), (_, second) = df_to_simple_rdd(frame, False).collect()
    np.testing.assert_array_equal(first, FEATURES[0])
    assert (label, second) == (2.0, 1.5)


@pytest.mark.parametrize("nb_classes", [None, 3])
def test_an_rdd_has_one_hot_labels_from_named_columns_of_old_vectors(spark, nb_classes):
    points = [LabeledPoint(2.0, OldVectors.dense([1, 2])), LabeledPoint(0.0, OldVectors.sparse(2, {1: 3.0}))]
    frame = spark.createDataFrame(points).toDF("x", "y")
    pairs = df_to_simple_rdd(frame, True, nb_classes, features_col="x", label_col="y").collect()
    np.testing.assert_array_equal([x for x, _ in pairs], [[1, 2], [0, 3]])
    np.testing.assert_array_equal([y for _, y in pairs], [[0, 0, 1], [1, 0, 0]])
    x, _ = from_data_frame(frame, features_col="x", label_col="y")
    np.testing.assert_array_equal(x, [[1, 2], [0, 3]])


def test_an_empty_dataframe_gives_empty_arrays(spark):
    frame = to_data_frame(spark, FEATURES, NUMBERS).limit(0)
    x, y = from_data_frame(frame)
    assert len(x) == len(y) == 0


def test_labels_that_do_not_tell_the_classes_are_named(spark):
    frame = to_data_frame(spark, FEATURES, NUMBERS)
    with pytest.raises(DataError, match="`nb_classes` must be given"):
        from_data_frame(frame, categorical=True)
    with pytest.raises(DataError, match="from 0 to 1"):
        from_data_frame(to_data_frame(spark, FEATURES, ONE_HOT, categorical=True), categorical=True, nb_classes=2)


def test_what_does_not_fit_together_is_refused(spark):
    with pytest.raises(DataError, match="Received: 2 and 1"):
        to_data_frame(spark, FEATURES, NUMBERS[:1])
    with pytest.raises(DataError, match=r"one-hot rows with categorical=True\. Received: an array of shape \(2,\)"):
        to_data_frame(spark, FEATURES, NUMBERS, categorical=True)
    with pytest.raises(DataError, match=r"shape \(2,\)"):
        to_data_frame(spark, NUMBERS, NUMBERS)
    with pytest.raises(ColumnError, match="Did you mean 'label'"):
        df_to_simple_rdd(to_data_frame(spark, FEATURES, NUMBERS), label_col="labels")
