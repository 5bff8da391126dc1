"""BigDL's triggers over trainings of any length: when they fire, and what they say they need."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.compat.zoo.bigdl.optim.optimizer import (
    EveryEpoch,
    MaxEpoch,
    MaxIteration,
    MaxScore,
    MinLoss,
    SeveralIteration,
    TrainingState,
    TriggerAnd,
    TriggerOr,
    trigger_named,
)
from keraunos.compat.zoo.util import triggers
from keraunos.errors import JobError


def training(steps, per_epoch, losses=None, scores=None):
    """The state after each step; validation, where there is one, at the ends of epochs."""
    score = None
    for step in range(1, steps + 1):
        ends = step % per_epoch == 0
        epochs = step // per_epoch
        if ends and scores is not None:
            score = scores[epochs - 1]
        loss = None if losses is None else losses[step - 1]
        yield TrainingState.after(step, epochs, loss=loss, score=score, epoch_finished=ends)


def fired(trigger, steps=12, per_epoch=4, **more):
    return [state.neval - 1 for state in training(steps, per_epoch, **more) if trigger.fires(state)]


def test_each_trigger_fires_when_bigdl_says_it_does():
    assert fired(MaxEpoch(2)) == [8, 9, 10, 11, 12]
    assert fired(MaxIteration(10)) == [10, 11, 12]
    assert fired(EveryEpoch()) == [4, 8, 12]
    assert fired(SeveralIteration(5)) == [5, 10]
    assert fired(MaxScore(0.8), scores=[0.5, 0.9, 0.7]) == [8, 9, 10, 11]
    assert fired(MinLoss(0.5), steps=4, losses=[0.9, 0.4, 0.5, 0.1]) == [2, 4]


def test_nothing_fires_before_the_first_step_or_without_what_it_looks_at():
    for trigger in (MaxEpoch(1), MaxIteration(1), EveryEpoch(), SeveralIteration(1), MaxScore(-1.0), MinLoss(9.0)):
        assert not trigger.fires(TrainingState())
    assert not fired(MaxScore(-1.0))


def test_triggers_are_put_together():
    both = TriggerAnd(EveryEpoch(), SeveralIteration(8))
    either = TriggerOr(EveryEpoch(), SeveralIteration(5))
    assert fired(both) == [8]
    assert fired(either) == [4, 5, 8, 10, 12]
    nested = TriggerOr(MaxIteration(11), TriggerAnd(MaxEpoch(1), MinLoss(0.5)))
    assert fired(nested, losses=[0.1] * 5 + [0.9] * 7) == [4, 5, 11, 12]
    assert repr(nested) == "TriggerOr(MaxIteration(11), TriggerAnd(MaxEpoch(1), MinLoss(0.5)))"


simple = st.one_of(
    st.builds(MaxEpoch, st.integers(1, 6)),
    st.builds(MaxIteration, st.integers(1, 20)),
    st.just(EveryEpoch()),
    st.builds(SeveralIteration, st.integers(1, 7)),
    st.builds(MinLoss, st.floats(0, 1)),
)
anything = st.recursive(
    simple,
    lambda inner: st.builds(
        lambda kind, each: kind(*each),
        st.sampled_from([TriggerAnd, TriggerOr]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=5,
)


@given(anything, st.integers(1, 7))
def test_a_trigger_has_fired_by_the_time_it_says(trigger, per_epoch):
    needs = trigger.needs()
    for bound in (needs.steps, None if needs.epochs is None else needs.epochs * per_epoch):
        if bound is not None:
            assert fired(trigger, bound, per_epoch, losses=[0.5] * bound)


@given(anything, st.integers(1, 7))
def test_whoever_looks_when_a_trigger_says_misses_no_first_firing(trigger, per_epoch):
    needs = trigger.needs()
    steps = 40
    losses = [((7 * step) % 11) / 11 for step in range(steps)]
    first = next(iter(fired(trigger, steps, per_epoch, losses=losses)), None)
    looks = [
        step
        for step in range(1, steps + 1)
        if step % per_epoch == 0 or (needs.lap and step % needs.lap == 0) or step == needs.steps
    ]
    if first is not None:
        assert first in looks


def test_a_trigger_says_what_it_looks_at():
    assert MinLoss(0.1).needs().loss
    assert not MinLoss(0.1).needs().score
    assert TriggerAnd(MaxEpoch(2), MaxScore(0.5)).needs().score
    assert TriggerOr(SeveralIteration(6), SeveralIteration(4)).needs().lap == 2
    assert EveryEpoch().needs().lap is None


def test_a_trigger_may_be_named_and_what_is_none_is_refused():
    assert isinstance(trigger_named("EveryEpoch"), EveryEpoch)
    with pytest.raises(JobError, match="A trigger must be EveryEpoch.*Received: 'sometimes'"):
        trigger_named("sometimes")
    with pytest.raises(JobError, match="A trigger must be"):
        TriggerAnd(MaxEpoch(1), 3)
    with pytest.raises(JobError, match="`max_epoch` must be a whole number of at least 1. Received: 0"):
        MaxEpoch(0)
    with pytest.raises(JobError, match="`interval`"):
        SeveralIteration(2.5)


def test_analytics_zoos_names():
    assert issubclass(triggers.MaxEpoch, MaxEpoch)
    assert triggers.MaxEpoch(max=3).max_epoch == 3
    either = triggers.TriggerOr(triggers.MaxEpoch(2), triggers.SeveralIteration(3))
    assert isinstance(either, triggers.ZooTrigger)
    assert [either.fires(state) for state in training(6, 2)] == [False, False, True, True, True, True]
