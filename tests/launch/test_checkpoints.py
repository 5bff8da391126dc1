"""A training that is saved as it goes and goes on where it was saved: the same bits, nothing lost, nothing twice."""

import itertools
import os
import random
import signal
import subprocess
import sys
from dataclasses import replace

import keras
import numpy as np
import pytest

from keraunos.checkpoints.folder import LocalFolder
from keraunos.checkpoints.store import CheckpointStore
from keraunos.errors import CheckpointError, DataError, JobError
from keraunos.exchange.server import Server
from keraunos.exchange.wire import Kind
from keraunos.formats.registry import load_home
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.saving import Checkpoints, SaveEvery
from keraunos.launch import local
from keraunos.launch.callbacks import KerasCallbacks
from keraunos.launch.fit import Saving
from keraunos.launch.follow import Follower
from keraunos.launch.hooks import Hooks, Lap
from tests.conformance import engine
from tests.conformance.forked_workers import PATIENCE
from tests.launch.saved_fit import EPOCHS, LONG, ROWS, job, rows

pytestmark = pytest.mark.usefixtures("forked_workers")

# Gradients that the servers apply: their optimizer is what remembers.
GRADIENTS = ExchangePlan("gradients", 1, "synchronous", "adam(learning_rate=0.01)")


class Interrupted(Exception):  # noqa: N818 - nothing is wrong
    pass


class Interrupt(Hooks):
    """Ends the driver's part when an epoch has ended, as losing the driver would."""

    def __init__(self, epoch):
        self._epoch = epoch

    def end_lap(self, lap):
        if lap.epoch == self._epoch:
            raise Interrupted
        return False


def fit(folder=None, every="epoch", *, parts=None, hooks=(), **asked):
    saving = None
    if folder is not None:
        saving = Saving(CheckpointStore(LocalFolder(folder)), SaveEvery.of(every))
    return engine.fitted(job(**asked), parts or rows(), saving=saving, hooks=hooks)


def interrupted(folder, every="epoch", epoch=2, **asked):
    with pytest.raises(Interrupted):
        fit(folder, every, hooks=[Interrupt(epoch)], **asked)


def all_rows(epochs=EPOCHS):
    return {rank: epochs * count for rank, count in enumerate(ROWS)}


@pytest.mark.paired
@pytest.mark.parametrize("every", ["3 rounds", "epoch", "0.02 seconds"])
@pytest.mark.parametrize("servers", ["driver", "workers", 1])
@pytest.mark.parametrize(
    "exchange",
    ["allreduce", ExchangePlan.named("averaging", every=3), ExchangePlan.named("diloco", every=4), GRADIENTS],
)
def test_a_synchronous_training_goes_on_to_the_same_bits(tmp_path, exchange, servers, every):
    asked = {"exchange": exchange, "servers": servers}
    whole = fit(**asked)
    interrupted(tmp_path, every, **asked)
    names = sorted(each.name for each in tmp_path.iterdir())
    saved = [name for name in names if name.startswith("checkpoint-")]
    assert sorted(set(names) - set(saved)) == ["job.json", "program.json", "writer.json"]
    assert len(saved) <= 2
    resumed = fit(tmp_path, every, **asked)
    np.testing.assert_array_equal(resumed.parameters, whole.parameters)
    np.testing.assert_allclose(resumed.history["loss"], whole.history["loss"], rtol=1e-6)
    assert resumed.contributed == whole.contributed == all_rows()


@pytest.mark.paired
@pytest.mark.parametrize("servers", ["driver", "workers", 1])
@pytest.mark.parametrize(
    "exchange",
    [
        ExchangePlan.named("allreduce", compression="int8"),
        ExchangePlan.named("averaging", every=3, compression="int8"),
        ExchangePlan("gradients", 1, "synchronous", "adam(learning_rate=0.01)", compression="bfloat16"),
    ],
    ids=["allreduce", "averaging", "gradients"],
)
def test_what_was_rounded_off_goes_on_too(tmp_path, exchange, servers):
    asked = {"exchange": exchange, "servers": servers}
    whole = fit(**asked)
    interrupted(tmp_path, "3 rounds", **asked)
    resumed = fit(tmp_path, "3 rounds", **asked)
    np.testing.assert_array_equal(resumed.parameters, whole.parameters)
    assert resumed.contributed == all_rows()


@pytest.mark.paired
@pytest.mark.parametrize("servers", ["driver", "workers", 1])
@pytest.mark.parametrize("exchange", ["downpour", "hogwild", "bounded", "elastic"])
def test_an_asynchronous_training_applies_every_row_once(tmp_path, exchange, servers):
    asked = {"exchange": exchange, "servers": servers}
    interrupted(tmp_path, **asked)
    resumed = fit(tmp_path, **asked)
    assert resumed.contributed == all_rows()
    assert len(resumed.history["loss"]) == EPOCHS
    assert np.isfinite(resumed.parameters).all()


@pytest.mark.parametrize("exchange", ["hogwild", "allreduce"])
def test_rows_are_counted_when_all_are_done_whoever_says_so_first(monkeypatch, exchange):
    handle, early = Follower._handle, []

    def the_last_word_first(self, event):
        if event.kind is Kind.DONE and not early:
            early.append(event)
        else:
            handle(self, event)
            if event.kind is Kind.DONE:
                handle(self, early[0])

    monkeypatch.setattr(Follower, "_handle", the_last_word_first)
    assert fit(exchange=exchange, servers="workers").contributed == all_rows()


def newest(folder):
    return max((int(each.name.split("-")[1]) for each in folder.glob("checkpoint-*")), default=0)


def test_a_driver_that_is_killed_goes_on_to_the_same_bits(tmp_path):
    chance = random.Random(5)
    program = [sys.executable, "-m", "tests.launch.saved_fit"]
    folder = tmp_path / "killed"
    for _ in range(2):
        # Four checkpoints further an epoch has ended that need not be done again.
        wanted, laps = newest(folder) + 5, chance.randrange(1, 9)
        command, pipes = (
            [*program, str(folder), str(LONG), "asks"],
            {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE},
        )
        with subprocess.Popen(command, **pipes, text=True, bufsize=1) as driver:
            told = itertools.takewhile(lambda line: line.startswith("lap"), driver.stdout)
            for lap, _ in enumerate(told):
                reached = lap >= laps and newest(folder) >= wanted
                driver.stdin.write("\n")
                if reached:
                    break
            os.kill(driver.pid, signal.SIGKILL)
        assert reached
    resumed = subprocess.run([*program, str(folder)], capture_output=True, text=True, check=True)
    *laps, contributed = resumed.stdout.splitlines()
    assert 0 < len(laps) < LONG
    assert contributed == f"contributed {sorted(all_rows(LONG).items())}"
    whole = local.fit(job(epochs=LONG), rows(), verbose=0)
    np.testing.assert_array_equal(np.load(f"{folder}.npy"), whole.parameters)


def test_a_training_may_go_on_for_longer_and_a_finished_one_gives_the_same_again(tmp_path):
    fit(tmp_path, epochs=2)
    longer, again = fit(tmp_path), fit(tmp_path)
    np.testing.assert_array_equal(longer.parameters, fit().parameters)
    np.testing.assert_array_equal(again.parameters, longer.parameters)
    assert again.history == longer.history
    assert again.contributed == all_rows()


def test_a_driver_that_was_given_up_ends_when_it_comes_back(tmp_path):
    results = []

    class GivenUp(Hooks):
        """Stands still after its second epoch, until another driver has done the rest."""

        def end_lap(self, lap):
            if lap.epoch == 2:
                results.append(fit(tmp_path))
            return False

    with pytest.raises(CheckpointError, match="now written by another fit of the same job"):
        fit(tmp_path, hooks=[GivenUp()])
    np.testing.assert_array_equal(results[0].parameters, fit().parameters)
    # What the other saved last is what is there.
    np.testing.assert_array_equal(fit(tmp_path).parameters, results[0].parameters)


def test_what_is_not_the_same_training_is_refused(tmp_path):
    interrupted(tmp_path, epoch=1)
    with pytest.raises(JobError, match="batch_size"):
        fit(tmp_path, batch_size=5)
    with pytest.raises(DataError, match="not those that the training was saved with"):
        fit(tmp_path, parts=rows(seed=1))


@pytest.mark.parametrize(
    ("asked", "victims", "number"),
    [
        ({"exchange": "averaging", "servers": "workers", "every": 3}, [1], signal.SIGKILL),
        ({"exchange": "averaging", "servers": "workers", "every": 3}, [1], signal.SIGSTOP),
        ({"exchange": "averaging", "servers": 1, "every": 3}, [2], signal.SIGSTOP),
        ({"exchange": "allreduce"}, [0, 1], signal.SIGKILL),
    ],
    ids=["a-part", "a-part-silent", "a-server-silent", "everyone"],
)
def test_what_nobody_has_any_more_comes_back_from_where_it_was_saved(tmp_path, monkeypatch, asked, victims, number):
    made = []

    class Processes(local.WorkerProcesses):
        def __init__(self, *args):
            super().__init__(*args)
            made.append(self)

    class KillOnce(Hooks):
        def __init__(self):
            self.done = False

        def end_lap(self, lap):
            if lap.epoch == 2 and not self.done:
                self.done = True
                for victim in victims:
                    os.kill(made[-1]._processes[victim].pid, number)
            return False

    patient = replace(job(**asked), worker_patience=PATIENCE, on_worker_lost="continue")
    whole = local.fit(patient, rows(), verbose=0)
    monkeypatch.setattr(local, "WorkerProcesses", Processes)
    checkpoints = Checkpoints(str(tmp_path))
    resumed = local.fit(patient, rows(), checkpoints=checkpoints, hooks=[KillOnce()], verbose=0, max_failures=2)
    np.testing.assert_array_equal(resumed.parameters, whole.parameters)
    assert resumed.contributed == all_rows()
    assert len(made) == 2


def test_a_part_that_is_lost_when_it_is_to_come_home(tmp_path, monkeypatch):
    asked = {"exchange": "averaging", "servers": "workers", "every": 3}
    whole = local.fit(job(**asked), rows(), verbose=0)
    made, real = [], Server.parameters

    class Processes(local.WorkerProcesses):
        def __init__(self, *args):
            super().__init__(*args)
            made.append(self)

    def parameters(self, check=None, *, last=False):
        if last and len(made) == 1:
            os.kill(made[0]._processes[1].pid, signal.SIGKILL)
            made[0]._processes[1].wait()
        return real(self, check, last=last)

    monkeypatch.setattr(local, "WorkerProcesses", Processes)
    monkeypatch.setattr(Server, "parameters", parameters)
    checkpoints = Checkpoints(str(tmp_path))
    resumed = local.fit(job(**asked), rows(), checkpoints=checkpoints, verbose=0, max_failures=2)
    np.testing.assert_array_equal(resumed.parameters, whole.parameters)
    assert resumed.contributed == all_rows()
    assert len(made) == 2


def test_callbacks_remember(tmp_path):
    def begun(*, goes_on):
        home = load_home(job().model)
        stopping = keras.callbacks.EarlyStopping("loss", patience=3, restore_best_weights=True, start_from_epoch=0)
        hooks = KerasCallbacks([stopping], epochs=9, goes_on=goes_on)
        hooks.begin(home)
        return home, stopping, hooks

    def lap(home, epoch, loss):
        logs = {"loss": loss}
        return Lap(epoch, epoch, ends_epoch=True, logs=logs, epoch_logs=logs, parameters=home.read)

    home, stopping, hooks = begun(goes_on=False)
    best = home.read()
    losses = [3.0, 2.0, 2.5, 2.6]
    for epoch, loss in enumerate(losses):
        assert not hooks.end_lap(lap(home, epoch, loss))
        home.write(home.read() + 1)
    facts, arrays = hooks.keep()

    other, resumed, more = begun(goes_on=True)
    more.go_on_from(facts, arrays, len(losses))
    assert (resumed.wait, resumed.best, resumed.best_epoch) == (stopping.wait, 2.0, 1) == (2, 2.0, 1)
    assert more.end_lap(lap(other, 4, 2.7))
    more.end()
    np.testing.assert_array_equal(other.read(), best + 1)
