"""Elephas's arguments and the plans and schedules they stand for."""

import itertools

import keras
import pytest

from keraunos import JsonlLog
from keraunos.compat.elephas import optimizers
from keraunos.compat.elephas.enums.frequency import Frequency
from keraunos.compat.elephas.enums.modes import Mode
from keraunos.compat.elephas.translate import FitOptions, fit_options, plan_of, schedule_of, workers_of
from keraunos.errors import JobError

DEFAULTS = {"batch_size": 32, "epochs": 10, "num_workers": None}


@pytest.mark.parametrize(
    ("mode", "frequency", "plan"),
    [
        ("synchronous", "epoch", ("updates", "epoch", "synchronous", "mean")),
        ("synchronous", "batch", ("gradients", 1, "synchronous", "own")),
        ("asynchronous", "epoch", ("updates", "epoch", "asynchronous", "add")),
        ("asynchronous", "batch", ("updates", 1, "asynchronous", "add")),
        ("hogwild", "epoch", ("updates", "epoch", "hogwild", "add")),
        (Mode.HOGWILD, Frequency.BATCH, ("updates", 1, "hogwild", "add")),
    ],
)
def test_mode_and_frequency_mean_what_they_say(mode, frequency, plan):
    found = plan_of(mode, frequency)
    assert (found.send, found.every, found.meet, str(found.rule)) == plan


@pytest.mark.parametrize(("mode", "frequency"), list(itertools.product(Mode, Frequency)))
def test_a_servers_optimizer_gets_the_updates(mode, frequency):
    plan = plan_of(mode, frequency, optimizers.Adam(lr=0.5))
    assert (plan.send, plan.meet, plan.rule.name) == ("updates", str(mode), "adam")
    assert plan.every == ("epoch" if frequency == "epoch" else 1)
    assert plan.rule.options["learning_rate"] == 0.5


@pytest.mark.parametrize(
    ("mode", "frequency", "said"),
    [
        ("sync", "epoch", "`mode` must be one of 'synchronous', 'asynchronous', 'hogwild'. Received: 'sync'"),
        ("hogwild", "batches", "`frequency` must be one of 'epoch', 'batch'. Received: 'batches'"),
        (None, "epoch", "`mode` must be one of"),
    ],
)
def test_an_unknown_mode_or_frequency_is_refused(mode, frequency, said):
    with pytest.raises(JobError, match=said):
        plan_of(mode, frequency)


def test_options_of_every_age():
    old = fit_options({"nb_epoch": 3, "batch_size": 8, "validation_split": 0.1, "num_workers": 2}, DEFAULTS)
    new = fit_options({"epochs": 3, "batch_size": 8, "validation_split": 0.1, "num_workers": 2}, DEFAULTS)
    assert old == new == FitOptions(epochs=3, batch_size=8, validation_split=0.1, num_workers=2)
    stopping = keras.callbacks.EarlyStopping()
    assert fit_options({"callbacks": stopping}, DEFAULTS).callbacks == (stopping,)
    log = JsonlLog("fit.jsonl")
    assert fit_options({"listeners": log}, DEFAULTS).listeners == (log,)
    schedule = schedule_of(fit_options({"class_weight": {0: 2.0}, "shuffle": False}, DEFAULTS))
    assert (schedule.epochs, schedule.class_weight, schedule.shuffle) == (10, {0: 2.0}, False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"epochs": 1, "nb_epoch": 2}, "`epochs` must be given once"),
        ({"steps_per_epoch": 3}, "`steps_per_epoch` must be left out .* sample the RDD"),
        ({"batchsize": 3}, "no argument 'batchsize'. Did you mean 'batch_size'?"),
        ({"sample_weight": [1.0]}, r"True, for an RDD of \(features, label, weight\)"),
        ({"num_workers": 0}, "`num_workers` must be a whole number of at least 1"),
        ({"validation_split": 0.1, "validation_data": ([], [])}, "both say which rows"),
    ],
)
def test_what_fit_cannot_do_is_refused_by_name(arguments, said):
    with pytest.raises(JobError, match=said):
        fit_options(arguments, DEFAULTS)


@pytest.mark.parametrize(
    ("asked", "partitions", "slots", "workers"), [(None, 3, 8, 3), (2, 8, 8, 2), (8, 3, 4, 4), (None, 9, 4, 4)]
)
def test_workers(asked, partitions, slots, workers):
    assert workers_of(asked, partitions, slots) == workers


@pytest.mark.parametrize("shuffle", [True, False])
def test_rows_that_are_not_shuffled_are_not_said_to_keep_their_order(caplog, shuffle):
    assert schedule_of(fit_options({"shuffle": shuffle}, DEFAULTS)).shuffle is shuffle
    assert ("is not that of the RDD" in caplog.text) is not shuffle


def test_fewer_workers_than_asked_for_are_told(caplog):
    workers_of(8, 8, 2)
    assert "num_workers=8, but Spark can run 2 task(s) at once" in caplog.text
