"""What evaluators say of a batch, as the mean over its rows."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from numpy.testing import assert_allclose

from keraunos.compat.paddle.lowering.evaluators import row_measure
from keraunos.compat.paddle.lowering.network import Flow
from keraunos.compat.paddle.model_config import EvaluatorConfig

OUTPUT = np.array([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.6, 0.3, 0.1]], np.float32)
LABEL = np.array([1, 2, 2, 1], np.int32)


def told(kind, *inputs, masks=(), **attributes):
    """What an evaluator gives for each row of arrays; ids are arrays of whole numbers."""
    tensors, flows = [], []
    for at, array in enumerate(inputs):
        symbol = keras.Input(array.shape[1:], dtype=str(array.dtype))
        tensors.append(symbol)
        mask = None
        if at < len(masks) and masks[at] is not None:
            mask = keras.Input(masks[at].shape[1:], dtype="bool")
        flows.append(Flow(symbol, mask, "ids" if array.dtype.kind == "i" else "dense"))
    shown = [flow.mask for flow in flows if flow.mask is not None]
    measured = row_measure(EvaluatorConfig("evaluator", kind, ("a", "b"), attributes), flows)
    model = keras.Model([*tensors, *shown], measured)
    given = [*inputs, *(each for each in masks if each is not None)]
    again = keras.Model.from_config(model.get_config())
    return keras.ops.convert_to_numpy(again([keras.ops.convert_to_tensor(each) for each in given]))


def test_errors_are_rows_whose_highest_column_is_another():
    assert told("classification_error", OUTPUT, LABEL).tolist() == [0.0, 1.0, 0.0, 1.0]


def test_a_label_among_the_best_few_is_found():
    assert told("classification_error", OUTPUT, LABEL, top_k=2).tolist() == [0.0, 1.0, 0.0, 0.0]


def test_a_single_column_says_yes_above_the_threshold():
    scores, label = np.array([[0.7], [0.55], [0.2]], np.float32), np.array([1, 0, 1], np.int32)
    assert told("classification_error", scores, label).tolist() == [0.0, 1.0, 1.0]
    assert told("classification_error", scores, label, classification_threshold=0.6).tolist() == [0.0, 0.0, 1.0]


def test_columns_with_labels_of_their_own_are_judged_one_by_one():
    label = np.array([[0, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 1]], np.float32)
    expected = np.mean((OUTPUT > 0.4) != (label > 0.4), axis=1)
    assert_allclose(told("classification_error", OUTPUT, label, classification_threshold=0.4), expected)


def test_weights_count_as_samples():
    weight = np.array([[1.0], [3.0], [0.5], [0.5]], np.float32)
    assert_allclose(told("classification_error", OUTPUT, LABEL, weight).mean(), 3.5 / 5.0, rtol=1e-6)


def test_steps_count_as_samples():
    steps = np.stack([OUTPUT, OUTPUT[::-1]])
    label = np.stack([LABEL, LABEL[::-1]])
    mask = np.array([[True, True, False, False], [True, True, True, True]])
    wrong = np.argmax(steps, axis=-1) != label
    found = told("classification_error", steps, label, masks=(mask, mask))
    assert_allclose(found.mean(), wrong[mask].mean(), rtol=1e-6)


@pytest.mark.parametrize(("kind", "expected"), [("sum", OUTPUT.sum(axis=1)), ("last-column-sum", OUTPUT[:, -1])])
def test_sums(kind, expected):
    assert_allclose(told(kind, OUTPUT), expected, rtol=1e-6)
    weight = np.array([[1.0], [3.0], [0.5], [0.5]], np.float32)
    assert_allclose(told(kind, OUTPUT, weight).mean(), (expected * weight[:, 0]).sum() / 5.0, rtol=1e-6)


def test_what_is_no_mean_over_rows_is_left_to_others():
    assert row_measure(EvaluatorConfig("auc", "last-column-auc", ("a", "b")), []) is None
