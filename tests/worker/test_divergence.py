"""Infinite and NaN losses, gradients, updates and weights: no server and no optimizer sees them."""

import logging
from dataclasses import replace

import keras
import numpy as np
import pytest

from keraunos.errors import JobError, ModelError
from keraunos.job.exchange_plan import PRESETS, ExchangePlan
from keraunos.launch.hooks import Hooks
from tests.conformance import engine

ROWS = 80
SERVERS = ["driver", "workers", 1]
# Its square is more than float32 holds, and so is the loss.
GIANT = 1e30


def _rows(bad=()):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(ROWS, 4)).astype(np.float32)
    y = (x @ generator.normal(size=4) + 1)[:, None].astype(np.float32)
    x[list(bad)] = GIANT
    return engine.partitions(engine.table(x=x, y=y), [ROWS // 2, ROWS // 2])


def _job(exchange, on_divergence, servers="driver", *, optimizer=None, norm=False, **schedule):
    keras.utils.set_random_seed(5)
    middle = [keras.layers.BatchNormalization()] if norm else []
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(6), *middle, keras.layers.Dense(1)])
    model.compile(optimizer or keras.optimizers.Adam(0.01), "mse")
    options = {"batch_size": 5, "epochs": 3, **schedule}
    job = engine.job_of(model, 2, exchange=exchange, servers=servers, **options)
    return replace(job, on_divergence=on_divergence)


class Seen(Hooks):
    """Counts what hooks are told, and what the parameters were."""

    def __init__(self):
        self.ends = 0
        self.laps = []

    def end_lap(self, lap):
        self.laps.append((lap.last, bool(np.isfinite(lap.parameters()).all())))
        return False

    def end(self):
        self.ends += 1


@pytest.mark.paired
@pytest.mark.parametrize("servers", SERVERS)
@pytest.mark.parametrize("exchange", PRESETS)
def test_rows_that_blow_up_end_the_training_with_good_parameters(exchange, servers, caplog):
    seen = Seen()
    job = _job(exchange, "stop", servers)
    with caplog.at_level(logging.WARNING):
        result = engine.fitted(job, _rows(bad=[60]), hooks=[seen])
    assert np.isfinite(result.parameters).all()
    assert result.history.ended.startswith("In epoch ")
    assert "worker 1" in result.history.ended
    assert len(result.history.epochs) <= 3
    assert seen.ends == 1
    assert seen.laps[-1] == (True, True)
    (told,) = [each for each in caplog.messages if "ended early" in each]
    assert result.history.ended in told
    assert "Lower the learning rate" in told


@pytest.mark.paired
@pytest.mark.parametrize("servers", SERVERS)
@pytest.mark.parametrize("exchange", PRESETS)
def test_a_rate_that_is_much_too_large_ends_the_training_with_good_parameters(exchange, servers):
    # Skipping does not help: the parameters themselves are broken.
    mode = "skip" if servers == 1 else "stop"
    job = _job(exchange, mode, servers, optimizer=keras.optimizers.SGD(1e30))
    result = engine.fitted(job, _rows())
    assert np.isfinite(result.parameters).all()
    assert result.history.ended


@pytest.mark.paired
@pytest.mark.parametrize("servers", ["driver", "workers"])
@pytest.mark.parametrize(
    "exchange",
    [
        *PRESETS,
        ExchangePlan.named("allreduce", every=2),
        ExchangePlan.named("allreduce", compression="int8"),
        ExchangePlan("gradients", 1, "synchronous", "sgd(learning_rate=0.01)"),
        ExchangePlan("gradients", 2, "asynchronous", "adam(learning_rate=0.01)"),
        ExchangePlan.named("bounded", bound=0),
        ExchangePlan("weights", 3, "synchronous", "mean"),
        ExchangePlan("weights", 3, "asynchronous", "moving_average(2)", compression="bfloat16"),
    ],
    ids=str,
)
def test_skipped_rows_are_left_out_and_counted(exchange, servers, caplog):
    plan = exchange if isinstance(exchange, ExchangePlan) else ExchangePlan.named(exchange)
    plan = plan.refined(every=3) if plan.every in (5, 10, 50, 100) else plan
    with caplog.at_level(logging.WARNING):
        result = engine.fitted(_job(plan, "skip", servers, norm=True), _rows(bad=[60]))
    history = result.history
    assert np.isfinite(result.parameters).all()
    assert history.ended is None
    # A round with the row in it is left out in each epoch: a batch of 5, or as many as the round has.
    assert 3 * 5 <= history.skipped_rows <= 3 * 15
    assert len(history["loss"]) == 3
    assert np.isfinite(history["loss"]).all()
    told = [each for each in caplog.messages if "Rows were skipped" in each]
    assert len(told) == 3
    assert all("worker 1" in each for each in told)


def test_a_skipped_gradient_is_as_if_the_rows_had_not_been_there():
    # One batch a worker and an epoch: worker 1's is skipped each time, so only worker 0's rows are learned from.
    job = _job("allreduce", "skip", batch_size=ROWS // 2, norm=True)
    both, alone = _rows(bad=[60]), replace(job, workers=1)
    result = engine.fitted(job, both)
    expected = engine.fitted(alone, both[:1])
    np.testing.assert_allclose(result.parameters, expected.parameters, rtol=1e-6)
    assert result.history.skipped_rows == 3 * ROWS // 2


@pytest.mark.parametrize(
    ("exchange", "servers"),
    [("allreduce", "driver"), ("allreduce", "workers"), ("diloco", 1), ("downpour", "driver"), ("elastic", "driver")],
)
def test_training_ends_when_every_row_of_an_epoch_is_skipped(exchange, servers, caplog):
    job = _job(exchange, "skip", servers, norm=True)
    seen = Seen()
    with caplog.at_level(logging.WARNING):
        result = engine.fitted(job, _rows(bad=range(ROWS)), hooks=[seen])
    initial = engine.from_archive(job.model.archive)
    np.testing.assert_array_equal(result.parameters, engine.read_vector(initial))
    assert result.history.ended == "In epoch 1 what any rows led to was not finite, and all of them were skipped."
    assert result.history.skipped_rows >= ROWS
    assert np.isnan(result.history["loss"][0])
    assert seen.laps[0] == (True, True)
    assert seen.ends == 1


def test_ignore_trains_on_as_plain_keras_does():
    result = engine.fitted(_job("allreduce", "ignore"), _rows(bad=[60]))
    assert not np.isfinite(result.parameters).all()
    assert result.history.ended is None
    assert len(result.history["loss"]) == 3


@pytest.mark.parametrize("exchange", ["allreduce", "averaging", "downpour"])
def test_checks_change_nothing_where_all_is_well(exchange):
    plan = ExchangePlan.named(exchange)
    vectors = []
    for mode in ("stop", "skip", "ignore"):
        job = replace(_job(plan, mode), workers=1)
        vectors.append(engine.fitted(job, _rows()[:1]).parameters)
    np.testing.assert_array_equal(vectors[0], vectors[2])
    np.testing.assert_array_equal(vectors[1], vectors[2])


def test_a_model_that_is_broken_to_begin_with_is_refused():
    keras.utils.set_random_seed(5)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.set_weights([np.full((4, 1), np.nan), np.zeros(1)])
    with pytest.raises(ModelError, match="parameters must be finite"):
        engine.fitted(engine.job_of(model, 2, batch_size=5), _rows())


def test_callbacks_see_the_end_of_the_epoch_and_of_the_training():
    told = []

    class Told(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            told.append(("epoch", epoch, bool(np.isfinite(engine.read_vector(self.model)).all())))

        def on_train_end(self, logs=None):
            told.append(("train", bool(np.isfinite(engine.read_vector(self.model)).all())))

    result = engine.fitted(_job("allreduce", "stop"), _rows(bad=[60]), callbacks=[Told()])
    assert told == [("epoch", len(result.history.epochs) - 1, True), ("train", True)]


def test_terminate_on_nan_is_what_stop_does():
    callback = keras.callbacks.TerminateOnNaN()
    assert engine.fitted(_job("allreduce", "stop"), _rows(bad=[60]), callbacks=[callback]).history.ended
    with pytest.raises(JobError, match="TerminateOnNaN needs onDivergence='stop'"):
        engine.fitted(_job("allreduce", "skip"), _rows(), callbacks=[callback])


def test_an_unknown_answer_names_the_known_ones():
    with pytest.raises(JobError, match="`onDivergence` must be one of 'stop', 'skip', 'ignore'. Received: 'stopp'"):
        _job("allreduce", "stopp")
