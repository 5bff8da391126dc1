"""Laps and steps: the workers meet the driver when the schedule says, and everything is exact where they meet."""

import itertools
import math

import keras
import numpy as np
import pytest

from keraunos.job.columns import Columns, Slot
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.schedule import Schedule
from keraunos.job.training_job import TrainingJob
from keraunos.launch.fit import Fit
from keraunos.launch.fit_events import FitEvents
from keraunos.launch.hooks import Hooks
from keraunos.learners.keras_archive import from_archive
from keraunos.learners.keras_variables import read_vector
from tests.conformance import engine
from tests.conformance import learner_models as models
from tests.conformance.engine_suite import counting_model

SIZES = [50, 23]
BATCH = 8
EPOCH_STEPS = 7  # of the rank with the most rows


def rows(sizes=SIZES):
    random = np.random.default_rng(0)
    x = random.normal(size=(sum(sizes), models.FEATURES)).astype("float32")
    table = engine.table(x=x, y=(x[:, 0] > 0).astype("int64"), held_out=np.arange(sum(sizes)) % 5 == 0)
    return engine.partitions(table, sizes)


def job(exchange="allreduce", *, model=None, **options):
    return engine.job_of(model or models.dense("adam"), 2, exchange=exchange, batch_size=BATCH, seed=3, **options)


class Recorder(Hooks):
    """Keeps what it is told and stops where it is told to."""

    def __init__(self, *, stop_at=None, reads=True):
        self.laps, self.vectors, self.calls = [], [], []
        self.losses = []
        self._stop_at = stop_at
        self._reads = reads

    def begin(self, home):
        self.home = home
        self.calls.append("begin")

    def end_lap(self, lap):
        self.calls.append("end_lap")
        self.laps.append(lap)
        if self._reads:
            self.vectors.append(lap.parameters())
        return lap.step == self._stop_at

    def on_losses(self, rank, first_step, losses, rows):
        self.calls.append("on_losses")
        self.losses.append((rank, first_step, losses, rows))

    def end(self):
        self.calls.append("end")
        self.final = self.home.read()


@pytest.mark.parametrize(
    ("exchange", "servers"),
    [
        ("allreduce", "driver"),
        ("allreduce", "workers"),
        (ExchangePlan("gradients", 1, "synchronous", "sgd(learning_rate=0.1)"), "driver"),
        (ExchangePlan.named("averaging", every=5), "driver"),
        (ExchangePlan.named("averaging", every="epoch"), "workers"),
        (ExchangePlan("weights", 2, "synchronous", "mean"), 2),
    ],
    ids=["own", "own-workers", "server", "updates", "updates-workers", "weights-2"],
)
def test_a_lap_that_stops_leads_where_as_many_steps_lead(exchange, servers):
    # Nine steps end in the second epoch, within a round of either plan.
    hooks = Recorder(stop_at=9)
    stopped, history = engine.train(job(exchange, servers=servers, epochs=9, lap=3), rows(), hooks=[hooks])
    assert [(lap.epoch, lap.step, lap.ends_epoch, lap.last) for lap in hooks.laps] == [
        (0, 3, False, False),
        (0, 6, False, False),
        (0, 7, True, False),
        (1, 9, False, False),
    ]
    counted, counted_history = engine.train(job(exchange, servers=servers, steps=9, lap=3), rows())
    np.testing.assert_array_equal(read_vector(stopped), read_vector(counted))
    np.testing.assert_array_equal(hooks.vectors[-1], read_vector(stopped))
    np.testing.assert_array_equal(hooks.final, read_vector(stopped))
    assert len({vector.tobytes() for vector in hooks.vectors}) == 4
    assert history["loss"] == counted_history["loss"]
    assert len(history["loss"]) == 2


@pytest.mark.parametrize("plan", ["allreduce", ExchangePlan.named("averaging", every=3)], ids=["own", "updates"])
def test_when_progress_is_reported_does_not_show_in_the_metrics(plan, monkeypatch):
    # Sums of floats depend on where they are cut, so that a busy machine once changed a loss's last digits.
    monkeypatch.setattr("keraunos.worker.loop.PART_STEPS", 4)
    histories = []
    for seconds in (0.0, math.inf):
        monkeypatch.setattr("keraunos.worker.loop.REPORT_EVERY_SECONDS", seconds)
        _, history = engine.train(job(plan, epochs=4), rows())
        histories.append(history)
    assert histories[0] == histories[1]


def test_steps_are_those_of_one_process():
    parts = rows()
    trained, history = engine.train(job(steps=11, lap=1, epochs=1), parts)
    alone = from_archive(job().model.archive)
    shards = engine.shards_of(job(), parts)
    done = 0
    for epoch in range(2):
        streams = [shard.batches(epoch, BATCH, shuffle=True) for shard in shards]
        for batches in itertools.islice(itertools.zip_longest(*streams), 11 - done):
            both = [batch for batch in batches if batch is not None]
            alone.train_on_batch(*(np.concatenate([getattr(b, name) for b in both]) for name in ("inputs", "targets")))
            done += 1
    assert done == 11
    assert engine.difference(trained, alone) < 1e-3
    assert len(history["loss"]) == 2


def test_a_lap_changes_nothing_but_where_the_workers_meet():
    whole, history = engine.train(job(epochs=3), rows())
    cut, cut_history = engine.train(job(epochs=3, lap=2), rows())
    assert engine.difference(cut, whole) == 0.0
    assert cut_history["loss"] == pytest.approx(history["loss"], rel=1e-6)  # float32 sums, cut elsewhere


def test_metrics_of_laps_add_up_to_those_of_the_epoch():
    hooks = Recorder(reads=False)
    _, history = engine.train(job(model=counting_model(), epochs=2, lap=3), rows(), hooks=[hooks])
    # Steps of two ranks have 16, 16 and 15 rows, those of one rank 8, 8, 8 and 2; a lap ends after every third step.
    assert [lap.logs["counted"] for lap in hooks.laps] == [47, 24, 2, 32, 31, 10]
    assert [lap.epoch_logs["counted"] for lap in hooks.laps] == [47, 71, 73, 32, 63, 73]
    assert history["counted"] == [73, 73]


def test_validation_rows_are_measured_at_every_lap():
    hooks = Recorder()
    _, history = engine.train(job(epochs=1, lap=2, validation="held_out"), rows(), hooks=[hooks])
    tables = [part.to_pydict() for part in rows()]
    x, y, held_out = (np.concatenate([np.array(each[name]) for each in tables]) for name in ("x", "y", "held_out"))
    losses = []
    for lap, vector in zip(hooks.laps, hooks.vectors, strict=True):
        hooks.home.write(vector)
        found = hooks.home.model.evaluate(x[held_out], y[held_out], batch_size=100, verbose=0, return_dict=True)
        assert lap.logs["val_loss"] == pytest.approx(found["loss"], rel=1e-4)
        losses.append(lap.logs["val_loss"])
    assert history["val_loss"] == [losses[-1]]
    assert len(set(losses)) == len(losses) > 1


@pytest.mark.parametrize("exchange", ["downpour", "bounded", "elastic"])
def test_workers_that_do_not_wait_take_as_many_steps_each(exchange):
    hooks = Recorder()
    job_ = job(exchange, model=counting_model(), steps=9, lap=2)
    trained, history = engine.train(job_, rows(), hooks=[hooks])
    # One rank has seven steps an epoch, two of them left for the second; the other three, and so three epochs.
    assert history["counted"] == [50 + 23, 2 * 8 + 23, 23]
    assert [lap.last for lap in hooks.laps] == [False] * (len(hooks.laps) - 1) + [True]
    assert max(lap.step for lap in hooks.laps) == 9
    np.testing.assert_array_equal(hooks.vectors[-1], read_vector(trained))


def test_hooks_that_stop_end_workers_that_do_not_wait():
    hooks = Recorder(stop_at=2)
    _, history = engine.train(job("downpour", epochs=10_000, lap=2), rows(), hooks=[hooks])
    assert len(hooks.laps) == 1
    assert len(history["loss"]) == 1


def test_callbacks_see_the_end_of_a_training_that_ends_within_an_epoch():
    seen = []
    callback = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: seen.append(f"begin {epoch}"),
        on_epoch_end=lambda epoch, logs: seen.append(f"end {epoch} {sorted(logs)}"),
        on_train_end=lambda logs: seen.append(f"over {sorted(logs)}"),
    )
    engine.train(job(steps=10, lap=3), rows(), callbacks=[callback])
    names = "['accuracy', 'loss']"
    assert seen == ["begin 0", f"end 0 {names}", "begin 1", f"end 1 {names}", f"over {names}"]


def test_callbacks_are_told_when_hooks_stop():
    seen = []
    callback = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: seen.append(f"begin {epoch}"),
        on_epoch_end=lambda epoch, logs: seen.append(f"end {epoch}"),
    )
    engine.train(job(epochs=5, lap=3), rows(), callbacks=[callback], hooks=[Recorder(stop_at=7)])
    assert seen == ["begin 0", "end 0"]


def test_a_hook_may_change_the_learning_rate_at_a_lap():
    class Freezes(Recorder):
        def end_lap(self, lap):
            self.home.learning_rate = 1e-12
            return super().end_lap(lap)

    hooks = Freezes()
    engine.train(job(model=models.dense("sgd"), epochs=1, lap=3), rows(), hooks=[hooks])
    np.testing.assert_allclose(hooks.vectors[0], hooks.vectors[-1], atol=1e-8)


class Fails(Hooks):
    def __init__(self, moment):
        self._moment = moment

    def _at(self, moment):
        if moment == self._moment:
            raise ZeroDivisionError(moment)

    def begin(self, home):
        self._at("begin")

    def end_lap(self, lap):
        self._at("end_lap")
        return False

    def end(self):
        self._at("end")


@pytest.mark.leaks
@pytest.mark.parametrize(
    ("exchange", "moment"),
    [("allreduce", "begin"), ("allreduce", "end_lap"), ("allreduce", "end"), ("downpour", "end_lap")],
)
def test_what_a_hook_raises_ends_the_fit(exchange, moment):
    with pytest.raises(ZeroDivisionError, match=moment):
        engine.train(job(exchange, epochs=5 if moment == "end" else 500, lap=2), rows(), hooks=[Fails(moment)])


def test_only_what_a_hook_needs_has_to_be_written():
    class Stops(Hooks):
        def end_lap(self, lap):
            return True

    _, history = engine.train(job(epochs=50, lap=2), rows(), hooks=[Stops()])
    assert len(history["loss"]) == 1


def graph_job(exchange, **schedule):
    """A linear model as a TensorFlow graph, whose learner knows each step's loss."""
    tf = pytest.importorskip("tensorflow").compat.v1
    from keraunos.learners.graph_source import graph_source

    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, models.FEATURES])
        y = tf.placeholder(tf.float32, [None])
        weights = tf.get_variable("w", [models.FEATURES, 1], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.squeeze(x @ weights, 1) - y))
        source = graph_source(graph, loss=loss, inputs={"x": x}, targets={"y": y}, outputs={"out": x @ weights})
    return TrainingJob(
        model=source,
        columns=Columns((Slot("x", ("x",)),), (Slot("y", ("y",)),)),
        schedule=Schedule(batch_size=BATCH, seed=3, **schedule),
        exchange=exchange,
        workers=2,
    )


def train_graph(job, *, hooks):
    with FitEvents(job) as events, Fit.open(job, events, verbose=0, hooks=hooks) as fit:
        threads = engine.Threads(job, fit.connection, rows(), share_memory=True)
        try:
            return fit.follow(threads)
        finally:
            threads.join()


SYNCHRONOUS = ExchangePlan("gradients", 1, "synchronous", "sgd(learning_rate=0.1)")
ASYNCHRONOUS = ExchangePlan("gradients", 1, "asynchronous", "sgd(learning_rate=0.1)")


def trace(recorder, rank):
    """The steps, losses and rows of one rank, as they came."""
    mine = [each for each in recorder.losses if each[0] == rank]
    steps = [step for _, first, losses, _ in mine for step in range(first, first + len(losses))]
    return steps, [loss for each in mine for loss in each[2]], [count for each in mine for count in each[3]]


@pytest.mark.parametrize("plan", [SYNCHRONOUS, ASYNCHRONOUS], ids=["synchronous", "asynchronous"])
@pytest.mark.parametrize("lap", [None, 2])
def test_every_steps_loss_comes_once_and_in_order(plan, lap, monkeypatch):
    # As if every round took long: what is reported then comes between what others report.
    monkeypatch.setattr("keraunos.worker.loop.REPORT_EVERY_SECONDS", 0.0)
    recorder = Recorder(reads=False)
    result = train_graph(graph_job(plan, epochs=3, lap=lap), hooks=[recorder])
    for rank, size in enumerate(SIZES):
        own = -(-size // BATCH)
        length = EPOCH_STEPS if plan.synchronous else own
        steps, losses, counts = trace(recorder, rank)
        assert steps == [epoch * length + step for epoch in range(3) for step in range(own)]
        assert counts == [*[BATCH] * (own - 1), size - BATCH * (own - 1)] * 3
        assert np.all(np.isfinite(losses))
    weighted = [np.dot(losses, counts) for _, losses, counts in (trace(recorder, rank) for rank in (0, 1))]
    assert sum(weighted) / (3 * sum(SIZES)) == pytest.approx(np.mean(result.history["loss"]))
    assert recorder.calls[0] == "begin"
    assert recorder.calls[-2:] == ["end_lap", "end"]


def test_losses_of_a_lap_come_before_it_ends():
    class Sums(Recorder):
        def end_lap(self, lap):
            since = [(losses, rows) for _, _, losses, rows in self.losses]
            self.losses = []
            mean = sum(np.dot(*each) for each in since) / sum(counts.sum() for _, counts in since)
            assert lap.logs["loss"] == pytest.approx(mean)
            return super().end_lap(lap)

    sums = Sums(reads=False)
    train_graph(graph_job(SYNCHRONOUS, steps=9, lap=2), hooks=[sums])
    assert [lap.step for lap in sums.laps] == [2, 4, 6, 7, 8, 9]


def test_a_graph_stops_at_a_lap_with_the_parameters_that_hooks_see():
    hooks = Recorder(stop_at=4)
    stopped = train_graph(graph_job(SYNCHRONOUS, epochs=9, lap=2), hooks=[hooks])
    counted = train_graph(graph_job(SYNCHRONOUS, steps=4), hooks=[])
    assert stopped.archive == counted.archive
    np.testing.assert_array_equal(hooks.vectors[-1], hooks.final)
    assert not math.isnan(stopped.history["loss"][-1])


def test_a_failing_trace_ends_the_fit():
    class Broken(Hooks):
        def on_losses(self, rank, first_step, losses, rows):
            raise ZeroDivisionError("no trace")

    with pytest.raises(ZeroDivisionError, match="no trace"):
        train_graph(graph_job(SYNCHRONOUS, epochs=1), hooks=[Broken()])


def test_progress_counts_the_rows_and_epochs_of_the_steps(capsys):
    asked = job(steps=10, lap=2)
    with FitEvents(asked) as events, Fit.open(asked, events, verbose=2) as fit:
        threads = engine.Threads(job(), fit.connection, rows(), share_memory=True)
        fit.follow(threads)
        threads.join()
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["epoch 1/2", "epoch 2/2"]
