"""Which round is announced to be saved, where the clock says when."""

import itertools

import pytest

from keraunos.job.saving import SaveEvery
from keraunos.launch.saver import Saver
from tests.conformance import engine
from tests.conformance import learner_models as models


@pytest.mark.parametrize("rounds_between_reports", [0, 3])
def test_a_round_that_was_missed_is_tried_again_further_ahead(rounds_between_reports):
    seconds = itertools.count()
    job = engine.job_of(models.dense("sgd"), 1)
    saver = Saver(job, SaveEvery(1.0, "seconds"), None, 0, lambda: None, clock=lambda: float(next(seconds)))
    saver.on_report(0, 10)
    saver.on_report(0, 10 + rounds_between_reports)
    announced = []
    for _ in range(40):
        announced.append(saver.due())
        saver.on_missed(announced[-1])
    assert all(later - 13 >= 1.9 * (earlier - 13) for earlier, later in itertools.pairwise(announced))
