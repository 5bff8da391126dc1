"""A whole fit over a transport that has no servers is the fit over slices, to the bit; and what becomes of its ends."""

import keras
import numpy as np
import pytest

from keraunos.checkpoints.folder import LocalFolder
from keraunos.checkpoints.store import CheckpointStore
from keraunos.errors import JobError, PlanError, WorkerError
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.saving import SaveEvery
from keraunos.launch import in_process, local
from keraunos.launch.fit import Saving
from keraunos.launch.hooks import Hooks
from keraunos.trust import trusting
from tests.conformance import engine
from tests.conformance.socket_transport import HOME
from tests.launch.saved_fit import EPOCHS, job, rows
from tests.launch.worker_killer import KillsAWorker

PLANS = {
    "allreduce": ExchangePlan.named("allreduce"),
    "gradients of 4 steps": ExchangePlan("gradients", 4, "synchronous", "own"),
    "averaging": ExchangePlan.named("averaging", every=5),
    "weights, mean": ExchangePlan("weights", 3, "synchronous", "mean"),
    "weights, elastic": ExchangePlan("weights", 3, "synchronous", "elastic(0.4)"),
    "updates of an epoch": ExchangePlan("updates", "epoch", "synchronous", "mean"),
}


@pytest.fixture(autouse=True)
def trusted():
    with trusting("tests.conformance"):
        yield


class Interrupted(Exception):  # noqa: N818 - nothing is wrong
    pass


class Laps(Hooks):
    """Notes the parameters after each epoch, and may end the training, or the driver's part, there."""

    def __init__(self, *, last=None, interrupted=None):
        self.seen = []
        self._last = last
        self._interrupted = interrupted

    def end_lap(self, lap):
        self.seen.append(lap.parameters())
        if lap.epoch == self._interrupted:
            raise Interrupted
        return lap.epoch == self._last


def assert_same(ours, theirs):
    np.testing.assert_array_equal(ours.parameters, theirs.parameters)
    assert ours.history == theirs.history
    assert ours.contributed == theirs.contributed


@pytest.mark.parametrize("name", PLANS)
def test_a_fit_is_the_one_over_slices_to_the_bit(name):
    fits = []
    for servers in (HOME, "workers"):
        laps = Laps()
        fits.append((engine.fitted(job(PLANS[name], servers), rows(), hooks=[laps]), laps.seen))
    (ours, seen), (theirs, expected) = fits
    assert_same(ours, theirs)
    assert len(seen) == EPOCHS
    for mine, other in zip(seen, expected, strict=True):
        np.testing.assert_array_equal(mine, other)


def test_a_training_that_a_hook_ends_is_one_of_as_many_epochs():
    stopped = engine.fitted(job(PLANS["averaging"], HOME), rows(), hooks=[Laps(last=1)])
    assert_same(stopped, engine.fitted(job(PLANS["averaging"], "workers", epochs=2), rows()))


@pytest.mark.parametrize("name", ["allreduce", "averaging", "weights, elastic"])
def test_a_training_goes_on_where_it_was_saved(name, tmp_path):
    def saving():
        return Saving(CheckpointStore(LocalFolder(str(tmp_path))), SaveEvery.of("3 rounds"))

    whole = engine.fitted(job(PLANS[name], "workers"), rows())
    with pytest.raises(Interrupted):
        engine.fitted(job(PLANS[name], HOME), rows(), saving=saving(), hooks=[Laps(interrupted=2)])
    resumed = engine.fitted(job(PLANS[name], HOME), rows(), saving=saving())
    np.testing.assert_array_equal(resumed.parameters, whole.parameters)


@pytest.mark.parametrize("name", ["allreduce", "averaging"])
def test_processes_give_the_same_bits_over_any_transport(name):
    ours, theirs = (local.fit(job(PLANS[name], servers), rows(), verbose=0) for servers in (HOME, "workers"))
    assert_same(ours, theirs)


def test_a_single_worker_within_this_process_gives_the_same_bits():
    def alone(servers):
        made = engine.job_of(model(), 1, exchange="averaging", every=5, servers=servers, batch_size=10, epochs=2)
        return in_process.fit(made, rows()[0])

    np.testing.assert_array_equal(alone(HOME).parameters, alone("driver").parameters)


def test_a_process_that_is_killed_ends_the_fit_with_its_rank():
    with pytest.raises(WorkerError, match=r"Worker \d .* ended with code -9"):
        local.fit(job(PLANS["averaging"], HOME, epochs=1000), rows(), callbacks=[KillsAWorker()], verbose=0)


def test_what_does_not_fit_is_refused_before_any_work():
    with pytest.raises(PlanError, match="SocketTransport needs meet='synchronous'"):
        local.fit(job(ExchangePlan.named("downpour"), HOME), rows(), verbose=0)
    with pytest.raises(JobError, match="'Pipes' is of the module 'no_such', which is not trusted"):
        local.fit(job(PLANS["allreduce"], "no_such:Pipes"), rows(), verbose=0)


def model():
    keras.utils.set_random_seed(3)
    made = keras.Sequential([keras.Input((6,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(1)])
    made.compile(keras.optimizers.Adam(0.01), "mse")
    return made
