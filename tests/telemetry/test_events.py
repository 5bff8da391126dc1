"""Events are plain data, and the same again after JSON."""

import json
import math
from dataclasses import FrozenInstanceError, fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.errors import DataError
from keraunos.telemetry import events
from keraunos.telemetry.events import KINDS, EpochClosed, RankProgress, event_from_json
from keraunos.telemetry.history import History

numbers = st.floats(allow_nan=False)
metrics = st.dictionaries(st.text(max_size=5), numbers, max_size=3)
ranks = st.builds(
    RankProgress,
    *(st.integers(0, 9), st.text(max_size=5), st.integers(0), st.integers(0), numbers, numbers),
    bytes_sent=st.none() | st.integers(0),
)
# By the annotation of a field.
VALUES = {
    "int": st.integers(0),
    "float": numbers,
    "str": st.text(),
    "bool": st.booleans(),
    "int | None": st.none() | st.integers(0),
    "float | None": st.none() | numbers,
    "str | None": st.none() | st.text(),
    "Metrics": metrics,
    "Facts": st.dictionaries(st.text(max_size=5), st.text() | st.integers() | st.lists(st.booleans()), max_size=3),
    "tuple[Metrics, ...]": st.lists(metrics, max_size=3).map(tuple),
    "tuple[RankProgress, ...]": st.lists(ranks, max_size=3).map(tuple),
}
some_events = st.sampled_from(sorted(KINDS)).flatmap(
    lambda kind: st.builds(KINDS[kind], **{each.name: VALUES[each.type] for each in fields(KINDS[kind])})
)


@given(some_events)
def test_every_kind_is_the_same_after_json(event):
    assert event_from_json(json.loads(json.dumps(event.to_json(), allow_nan=False))) == event


def test_every_class_with_a_kind_is_registered_under_it():
    classes = [each for each in vars(events).values() if isinstance(each, type) and issubclass(each, events.FitEvent)]
    assert {each.kind: each for each in classes if each.kind} == KINDS


def test_what_is_not_a_number_comes_back():
    (value,) = event_from_json(EpochClosed(epoch=0, metrics={"loss": math.nan}).to_json()).metrics.values()
    assert math.isnan(value)


def test_events_are_frozen():
    event = EpochClosed(epoch=0, metrics={})
    with pytest.raises(FrozenInstanceError):
        event.epoch = 1


def test_what_is_no_event_is_refused():
    with pytest.raises(DataError, match=r"`kind` must be one of 'started'.*Received: 'epoch_close'. Did you mean"):
        event_from_json({"kind": "epoch_close"})
    with pytest.raises(DataError, match="'epoch_closed' must have all of its fields"):
        event_from_json({"kind": "epoch_closed", "metrics": {}})


def test_a_history_forgets_what_is_done_again():
    told = [
        events.Started(job={}, plan={}, workers=1, servers="driver", fit="a"),
        EpochClosed(epoch=0, metrics={"loss": 3.0}, fit="a"),
        EpochClosed(epoch=1, metrics={"loss": 2.0}, fit="a"),
        events.Resumed(checkpoint=1, epochs=({"loss": 3.0},), fit="a"),
        EpochClosed(epoch=0, metrics={"loss": 9.0}, fit="another that runs at once"),
        EpochClosed(epoch=1, metrics={"loss": 1.0}, fit="a"),
        events.Ended(how="diverged", why="too large", skipped_rows=3, lost_rows=2, fit="a"),
    ]
    assert History.from_events(told) == History([{"loss": 3.0}, {"loss": 1.0}], "too large", 3, 2)
