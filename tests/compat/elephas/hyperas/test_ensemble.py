"""Models that vote."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from keraunos.compat.elephas.hyperas.ensemble import VotingModel
from keraunos.errors import DataError, JobError

shapes = st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(2, 4))
# Multiples of 1/64 add up exactly, so that classes are even exactly where they should be.
probabilities = shapes.flatmap(lambda shape: arrays.arrays(np.int64, shape, elements=st.integers(0, 64))).map(
    lambda numbers: numbers / 64
)


class Fixed:
    """A model that always says the same."""

    def __init__(self, output):
        self.output = np.asarray(output)

    def predict(self, rows, batch_size, verbose):
        return self.output


def voting(outputs, *arguments, **named):
    return VotingModel([Fixed(each) for each in outputs], *arguments, **named)


@given(probabilities)
def test_most_votes_win_and_the_lower_class_where_they_are_even(outputs):
    chosen = voting(outputs).predict(None)
    for row, found in enumerate(chosen):
        votes = Counter(int(np.argmax(each[row])) for each in outputs)
        most = max(votes.values())
        assert found == min(number for number, count in votes.items() if count == most)


@given(probabilities, st.data())
def test_soft_votes_are_a_weighted_mean(outputs, data):
    weights = data.draw(st.lists(st.integers(0, 4), min_size=len(outputs), max_size=len(outputs)).filter(any))
    model = voting(outputs, "soft", weights)
    expected = np.average(outputs, axis=0, weights=weights)
    np.testing.assert_allclose(model.predict_proba(None), expected)
    assert expected[np.arange(len(expected)), model.predict(None)] == pytest.approx(expected.max(axis=1))


@given(probabilities, st.data())
def test_a_model_with_all_the_weight_decides(outputs, data):
    decides = data.draw(st.integers(0, len(outputs) - 1))
    weights = np.eye(len(outputs))[decides]
    for kind in ("hard", "soft"):
        found = voting(outputs, kind, weights=weights).predict(None)
        assert found.tolist() == outputs[decides].argmax(axis=1).tolist()


def test_weights_count_in_a_hard_vote():
    outputs = [[[1.0, 0.0]], [[0.0, 1.0]], [[0.0, 1.0]]]
    assert voting(outputs).predict(None).tolist() == [1]
    assert voting(outputs, weights=[3, 1, 1]).predict(None).tolist() == [0]
    assert voting(outputs, weights=[3, 1, 1]).predict_proba(None) == pytest.approx(np.array([[0.6, 0.4]]))


def test_one_output_is_the_second_of_two_classes():
    outputs = [[[0.9], [0.2]], [[0.8], [0.4]], [[0.1], [0.9]]]
    assert voting(outputs).predict(None).tolist() == [1, 0]
    assert voting(outputs, "soft", nb_classes=2).predict_proba(None) == pytest.approx(
        np.array([[0.4, 0.6], [0.5, 0.5]])
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"voting": "loud"}, "`voting` must be one of 'hard', 'soft'. Received: 'loud'"),
        ({"weights": [1, 2]}, "`weights` must be a number for each of the 1 models"),
        ({"weights": [-1]}, "none below 0 and not all 0"),
        ({"weights": [0]}, "none below 0 and not all 0"),
    ],
)
def test_votes_that_cannot_be_counted(arguments, message):
    with pytest.raises(JobError, match=message):
        voting([[[1.0, 0.0]]], **arguments)


def test_nobody_votes():
    with pytest.raises(JobError, match="at least one model"):
        VotingModel([])


def test_outputs_that_are_no_classes():
    with pytest.raises(DataError, match=r"3 classes for each row. Received: an output of shape \(1, 2\)"):
        voting([[[1.0, 0.0]]], nb_classes=3).predict(None)
    with pytest.raises(DataError, match=r"one column for each class for each row. Received: .* \(2,\)"):
        voting([[1.0, 0.0]]).predict(None)
