"""Arrays, RDDs and LabeledPoints."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.mllib.regression import LabeledPoint

from keraunos.compat.elephas.utils import rdd_utils
from keraunos.errors import DataError

FEATURES = np.arange(15, dtype="float32").reshape(5, 3)
LABELS = np.array([2.0, 0.0, 1.0, 1.0, 2.0])
ONE_HOT = np.eye(3)[LABELS.astype(int)]


@pytest.fixture
def sc(spark):
    return spark.sparkContext


@pytest.mark.spark
def test_pairs_keep_rows_order_and_types(sc):
    pairs = rdd_utils.to_simple_rdd(sc, FEATURES, ONE_HOT).collect()
    assert len(pairs) == 5
    for (x, y), features, label in zip(pairs, FEATURES, ONE_HOT, strict=True):
        assert x.dtype == np.float32
        np.testing.assert_array_equal(x, features)
        np.testing.assert_array_equal(y, label)
    several = rdd_utils.to_simple_rdd(sc, [FEATURES, 2 * FEATURES], LABELS).collect()
    (left, right), label = several[3]
    np.testing.assert_array_equal(right, 2 * left)
    assert label == LABELS[3]


@pytest.mark.spark
@pytest.mark.parametrize("categorical", [True, False])
def test_labeled_points_and_back(sc, categorical):
    points = rdd_utils.to_labeled_point(sc, FEATURES, ONE_HOT if categorical else LABELS, categorical=categorical)
    assert all(isinstance(point, LabeledPoint) for point in points.collect())
    features, labels = rdd_utils.from_labeled_point(points, categorical=categorical)
    np.testing.assert_array_equal(features, FEATURES)
    np.testing.assert_array_equal(labels, ONE_HOT if categorical else LABELS)


@pytest.mark.spark
def test_labels_of_a_regression_are_not_cut(sc):
    points = rdd_utils.to_labeled_point(sc, FEATURES, LABELS + 0.25)
    np.testing.assert_array_equal(rdd_utils.from_labeled_point(points)[1], LABELS + 0.25)
    with pytest.raises(DataError, match="`nb_classes` must be given with categorical=True"):
        rdd_utils.lp_to_simple_rdd(points, categorical=True)


@pytest.mark.spark
@pytest.mark.parametrize(("nb_classes", "width"), [(None, 3), (5, 5)])
def test_pairs_from_labeled_points(sc, nb_classes, width):
    points = rdd_utils.to_labeled_point(sc, FEATURES, LABELS)
    pairs = rdd_utils.lp_to_simple_rdd(points, categorical=True, nb_classes=nb_classes).collect()
    np.testing.assert_array_equal([y for _, y in pairs], np.eye(width)[LABELS.astype(int)])
    plain = rdd_utils.lp_to_simple_rdd(points).collect()
    assert [y for _, y in plain] == list(LABELS)


@given(st.integers(1, 9).flatmap(lambda classes: st.tuples(st.just(classes), st.integers(0, classes - 1))))
def test_a_label_is_one_among_zeros(case):
    classes, label = case
    np.testing.assert_array_equal(rdd_utils.encode_label(label, classes), np.eye(classes)[label])


@pytest.mark.parametrize("label", [3, -1, 0.5])
def test_a_label_that_is_no_class_is_refused(label):
    with pytest.raises(DataError, match="must be a class number from 0 to 2"):
        rdd_utils.encode_label(label, 3)


@pytest.mark.spark
def test_rows_that_do_not_match_are_refused(sc):
    with pytest.raises(DataError, match="Received: 5 and 4"):
        rdd_utils.to_simple_rdd(sc, FEATURES, LABELS[:4])
    with pytest.raises(DataError, match="to_simple_rdd, which takes any shape"):
        rdd_utils.to_labeled_point(sc, FEATURES.reshape(5, 3, 1), LABELS)
    with pytest.raises(DataError, match=r"one number. Received: labels of shape \(5, 3\). Give categorical=True"):
        rdd_utils.to_labeled_point(sc, FEATURES, ONE_HOT)
    assert rdd_utils.to_labeled_point(sc, FEATURES, LABELS[:, None]).first().label == LABELS[0]
