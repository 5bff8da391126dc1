"""Keras callbacks on the driver: the real ones work, and what cannot work is refused by name."""

import csv

import keras
import numpy as np
import pytest

from keraunos.errors import JobError
from keraunos.launch.callbacks import check_callbacks
from tests.conformance import engine
from tests.conformance import learner_models as models


def rows(count=120):
    random = np.random.default_rng(0)
    x = random.normal(size=(count, models.FEATURES)).astype("float32")
    return engine.partitions(engine.table(x=x, y=(x[:, 0] > 0).astype("int64")), [count // 2, count - count // 2])


def job(epochs, exchange="allreduce", **options):
    return engine.job_of(models.dense("sgd"), 2, exchange=exchange, epochs=epochs, batch_size=16, **options)


class Recorder(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.calls, self.weights = [], []

    def on_train_begin(self, logs=None):
        self.calls.append("train_begin")

    def on_epoch_begin(self, epoch, logs=None):
        self.calls.append(f"epoch_begin {epoch}")

    def on_epoch_end(self, epoch, logs=None):
        self.calls.append(f"epoch_end {epoch} {sorted(logs)}")
        self.weights.append(self.model.get_weights())

    def on_train_end(self, logs=None):
        self.calls.append("train_end")


@pytest.mark.parametrize("exchange", ["allreduce", "averaging", "downpour"])
def test_hooks_run_in_order_and_see_the_trained_weights(exchange):
    recorder = Recorder()
    trained, history = engine.train(job(2, exchange), rows(), callbacks=[recorder])
    assert recorder.calls == [
        "train_begin",
        "epoch_begin 0",
        "epoch_end 0 ['accuracy', 'loss']",
        "epoch_begin 1",
        "epoch_end 1 ['accuracy', 'loss']",
        "train_end",
    ]
    assert not np.array_equal(recorder.weights[0][0], models.dense("sgd").get_weights()[0])
    if exchange != "downpour":
        # Asynchronous workers do not wait for the driver: the last of them may have sent all of its second epoch
        # before the driver, woken by the end of its first, reads the server's weights. Both hooks then see the same.
        assert not np.array_equal(recorder.weights[0][0], recorder.weights[1][0])
    for ours, theirs in zip(recorder.weights[-1], trained.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert len(history["loss"]) == 2


@pytest.mark.parametrize("exchange", ["allreduce", "averaging", "downpour"])
def test_early_stopping_ends_the_fit_and_restores_the_best_weights(exchange):
    stopping = keras.callbacks.EarlyStopping("loss", patience=1, min_delta=1e9, restore_best_weights=True)
    recorder = Recorder()
    trained, history = engine.train(job(50, exchange), rows(), callbacks=[recorder, stopping])
    assert len(history["loss"]) == 2
    for ours, theirs in zip(recorder.weights[0], trained.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_schedule_reaches_the_workers_before_their_first_step():
    still = keras.callbacks.LearningRateScheduler(lambda epoch, rate: 0.1 if epoch else 1e-12)
    recorder = Recorder()
    initial = models.dense("sgd").get_weights()
    engine.train(job(2), rows(), callbacks=[still, recorder])
    np.testing.assert_allclose(recorder.weights[0][0], initial[0], atol=1e-8)
    assert np.abs(recorder.weights[1][0] - initial[0]).max() > 1e-3


def test_a_plateau_lowers_the_learning_rate_on_the_workers():
    plateau = keras.callbacks.ReduceLROnPlateau("loss", factor=1e-9, patience=0, min_delta=1e9, min_lr=0)
    recorder = Recorder()
    engine.train(job(4), rows(), callbacks=[plateau, recorder])
    np.testing.assert_allclose(recorder.weights[2][0], recorder.weights[3][0], atol=1e-6)
    assert np.abs(recorder.weights[1][0] - recorder.weights[0][0]).max() > 1e-3


def test_checkpoints_and_logs_are_written_on_the_driver(tmp_path):
    checkpoint = keras.callbacks.ModelCheckpoint(str(tmp_path / "{epoch}.weights.h5"), save_weights_only=True)
    logger = keras.callbacks.CSVLogger(str(tmp_path / "log.csv"))
    trained, history = engine.train(job(2), rows(), callbacks=[checkpoint, logger])
    read = list(csv.DictReader((tmp_path / "log.csv").read_text().splitlines()))
    assert [float(row["loss"]) for row in read] == pytest.approx(history["loss"])
    restored = models.dense("sgd")
    restored.load_weights(tmp_path / "2.weights.h5")
    for ours, theirs in zip(restored.get_weights(), trained.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


class OnBatches(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        pass


@pytest.mark.parametrize(
    ("callback", "name"),
    [
        (OnBatches(), "OnBatches"),
        (keras.callbacks.ModelCheckpoint("x.keras", save_freq=10), "ModelCheckpoint"),
        (keras.callbacks.LambdaCallback(on_train_batch_end=print), "LambdaCallback"),
    ],
)
def test_batch_hooks_are_refused_by_name(callback, name):
    with pytest.raises(JobError, match=rf"{name} has batch hooks .* epoch hooks"):
        check_callbacks([callback])


def test_terminate_on_nan_passes_unless_it_is_to_raise():
    check_callbacks([keras.callbacks.TerminateOnNaN()])
    raising = keras.callbacks.TerminateOnNaN()
    # An argument of newer releases of Keras.
    raising.raise_error = True
    with pytest.raises(JobError, match=r"raise_error=True. .*`history.ended`"):
        check_callbacks([raising])


def test_what_is_no_callback_is_refused():
    with pytest.raises(JobError, match="must be Keras callbacks"):
        check_callbacks([print])


def test_epoch_callbacks_of_keras_pass():
    check_callbacks(
        [
            keras.callbacks.EarlyStopping(),
            keras.callbacks.ReduceLROnPlateau(),
            keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate),
            keras.callbacks.ModelCheckpoint("x.keras"),
            keras.callbacks.CSVLogger("x.csv"),
            keras.callbacks.LambdaCallback(on_epoch_end=print),
        ]
    )
