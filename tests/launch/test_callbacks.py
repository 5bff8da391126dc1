"""Keras callbacks on the driver: the real ones work, and what cannot work is refused by name."""

import csv
import sys
from dataclasses import replace

import keras
import numpy as np
import pyarrow as pa
import pytest

from keraunos.errors import JobError
from keraunos.launch import local
from keraunos.launch.callback_checks import check_callbacks
from keraunos.learners.keras_archive import from_archive
from keraunos.learners.keras_variables import read_vector
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


class Sets(keras.callbacks.Callback):
    """Sets all weights to a number in one of its hooks, and the learning rate when training begins."""

    def __init__(self, hook, epoch=None, number=0.25, rate=None):
        super().__init__()
        self.rate, self.number, self.epoch = rate, number, epoch
        setattr(self, hook, self.set)

    def set(self, epoch=None, logs=None):
        if self.epoch is None or epoch == self.epoch:
            self.model.set_weights([np.full_like(each, self.number) for each in self.model.get_weights()])
        if self.rate is not None:
            self.model.optimizer.learning_rate = self.rate


@pytest.mark.parametrize("exchange", ["allreduce", "averaging", "downpour"])
def test_training_starts_from_what_a_callback_sets_when_it_begins(exchange):
    trained, _ = engine.train(job(1, exchange), rows(), callbacks=[Sets("on_train_begin", rate=1e-12)])
    for weights in trained.get_weights():
        np.testing.assert_allclose(weights, 0.25, atol=1e-6)


def test_weights_that_a_callback_sets_between_epochs_are_refused_by_its_name():
    with pytest.raises(JobError, match=r"callback Sets has set the model's weights at the end of an epoch"):
        engine.train(job(2), rows(), callbacks=[Recorder(), Sets("on_epoch_end", 0)])
    with pytest.raises(JobError, match=r"callback Sets has set the model's weights"):
        engine.train(job(2), rows(), callbacks=[Sets("on_epoch_begin", 1)])


@pytest.mark.parametrize("exchange", ["allreduce", "averaging"])
def test_weights_that_a_callback_sets_at_the_end_of_the_last_epoch_are_the_trained_ones(exchange):
    trained, _ = engine.train(job(2, exchange), rows(), callbacks=[Sets("on_epoch_end", 1)])
    for weights in trained.get_weights():
        np.testing.assert_array_equal(weights, np.full_like(weights, 0.25))


class Fails(keras.callbacks.Callback):
    def __init__(self, epoch):
        super().__init__()
        self.epoch = epoch

    def on_epoch_end(self, epoch, logs=None):
        if epoch == self.epoch:
            raise RuntimeError("the driver is lost")


@pytest.mark.parametrize("exchange", ["allreduce", "averaging"])
def test_a_backup_is_restored_and_its_epochs_are_not_trained_again(tmp_path, exchange):
    whole, losses = engine.train(job(4, exchange), rows())
    backup = str(tmp_path / "backup")
    with pytest.raises(RuntimeError, match="the driver is lost"):
        engine.train(job(4, exchange), rows(), callbacks=[keras.callbacks.BackupAndRestore(backup), Fails(1)])
    recorder = Recorder()
    again, history = engine.train(
        job(4, exchange), rows(), callbacks=[keras.callbacks.BackupAndRestore(backup), recorder]
    )
    assert [call for call in recorder.calls if "begin" in call] == ["train_begin", "epoch_begin 2", "epoch_begin 3"]
    assert history["loss"] == pytest.approx(losses["loss"][2:])
    # Plain SGD remembers nothing, and rows are shuffled by the number of the epoch: it is one training.
    assert engine.difference(again, whole) < 1e-6
    assert not (tmp_path / "backup").exists()


def test_a_backup_restores_the_learning_rate_of_an_optimizer_with_memory(tmp_path):
    def fit(epochs, *callbacks):
        backup = keras.callbacks.BackupAndRestore(str(tmp_path / "backup"), delete_checkpoint=False)
        each = engine.job_of(models.dense("adam"), 2, epochs=epochs, batch_size=16)
        return engine.train(each, rows(), callbacks=[backup, *callbacks])[1]

    fit(1, keras.callbacks.LearningRateScheduler(lambda epoch, rate: 0.0078125))
    plateau = keras.callbacks.ReduceLROnPlateau("loss", patience=9)
    assert fit(2, plateau)["learning_rate"] == [0.0078125]


@pytest.mark.usefixtures("forked_workers")
def test_where_a_backup_has_all_epochs_nothing_is_trained(tmp_path):
    def fit():
        backup = keras.callbacks.BackupAndRestore(str(tmp_path / "backup"), delete_checkpoint=False)
        return local.fit(replace(job(1), workers=1), [pa.concat_tables(rows())], callbacks=[backup], verbose=0)

    trained, again = fit(), fit()
    assert len(trained.history["loss"]) == 1
    assert list(again.history.epochs) == []
    np.testing.assert_array_equal(again.parameters, trained.parameters)
    restored, first = from_archive(again.archive), from_archive(trained.archive)
    np.testing.assert_array_equal(read_vector(restored), read_vector(first))


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


def test_what_a_callback_puts_into_the_logs_is_in_the_history_and_seen_by_the_next(tmp_path):
    class Adds(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            logs["twice"] = 2 * logs["loss"]
            logs["words"] = "not a number"

    halved = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2 if epoch else rate)
    written = keras.callbacks.CSVLogger(str(tmp_path / "log.csv"))
    _, history = engine.train(job(2, learning_rate=0.25), rows(), callbacks=[halved, Adds(), written])
    assert history["learning_rate"] == [0.25, 0.125]
    assert history["twice"] == [2 * loss for loss in history["loss"]]
    assert list(history) == ["loss", "accuracy", "learning_rate", "twice"]
    read = list(csv.DictReader((tmp_path / "log.csv").read_text().splitlines()))
    assert [float(row["learning_rate"]) for row in read] == [0.25, 0.125]
    assert [float(row["twice"]) for row in read] == history["twice"]


def test_a_plateau_leaves_its_learning_rate_in_the_history():
    plateau = keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=0, min_delta=1e9, min_lr=0)
    _, history = engine.train(job(3, learning_rate=0.25), rows(), callbacks=[plateau])
    assert history["learning_rate"] == [0.25, 0.25, 0.125]


def events_in(folder):
    """What TensorBoard would show: the tags of the event files in a folder, with their steps and values."""
    tensorflow = pytest.importorskip("tensorflow")
    found = {}
    for file in sorted(folder.glob("events.out.tfevents.*")):
        for event in tensorflow.compat.v1.train.summary_iterator(str(file)):
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, tensorflow.make_ndarray(value.tensor)))
    return found


@pytest.mark.parametrize("options", [{}, {"write_graph": False, "histogram_freq": 1, "update_freq": "epoch"}])
def test_tensorboard_writes_the_metrics_of_each_epoch(tmp_path, options):
    pytest.importorskip("tensorboard")
    board = keras.callbacks.TensorBoard(str(tmp_path), **options)
    check_callbacks([board])
    _, history = engine.train(job(2, validation_split=0.2), rows(), callbacks=[board])
    train, validation = events_in(tmp_path / "train"), events_in(tmp_path / "validation")
    assert [step for step, _ in train["epoch_loss"]] == [0, 1]
    assert [float(loss) for _, loss in train["epoch_loss"]] == pytest.approx(history["loss"])
    assert [float(loss) for _, loss in validation["epoch_loss"]] == pytest.approx(history["val_loss"])
    assert ("keras" in train) == (not options)
    assert any(tag.endswith("/histogram") for tag in train) == bool(options)


def test_tensorboard_shows_the_rate_that_a_schedule_has_reached(tmp_path):
    pytest.importorskip("tensorboard")
    model = models.dense("sgd")
    model.optimizer.learning_rate = keras.optimizers.schedules.ExponentialDecay(0.5, 4, 0.5)
    board = keras.callbacks.TensorBoard(str(tmp_path), write_graph=False)
    each = engine.job_of(model, 2, epochs=2, batch_size=15)
    engine.train(each, rows(), callbacks=[board])
    assert [float(rate) for _, rate in events_in(tmp_path / "train")["epoch_learning_rate"]] == pytest.approx(
        [0.25, 0.125]
    )


@pytest.mark.parametrize("package", ["tensorflow", "tensorboard"])
def test_where_a_package_is_missing_tensorboard_is_refused_in_a_sentence(tmp_path, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(JobError, match=rf"TensorBoard .* of which the driver lacks .*{package}"):
        check_callbacks([keras.callbacks.TensorBoard(str(tmp_path))])


class OnBatches(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        pass


@pytest.mark.parametrize(
    ("callback", "told"),
    [
        (OnBatches(), r"OnBatches has batch hooks \(on_train_batch_end\) and no others.* epoch hooks"),
        (keras.callbacks.LambdaCallback(on_train_batch_end=print), r"LambdaCallback has batch hooks"),
        (
            keras.callbacks.ModelCheckpoint("x.keras", save_freq=10),
            r"ModelCheckpoint counts batches.*save_freq='epoch'.*save_freq=10",
        ),
        (keras.callbacks.BackupAndRestore("x", save_freq=5), r"BackupAndRestore counts batches.*save_freq=5"),
        (keras.callbacks.TensorBoard("x", update_freq="batch"), r"TensorBoard counts batches.*update_freq='epoch'"),
        (keras.callbacks.TensorBoard("x", update_freq=100), r"TensorBoard counts batches.*update_freq=100"),
    ],
)
def test_what_cannot_work_without_batches_is_refused_by_name(callback, told):
    with pytest.raises(JobError, match=told):
        check_callbacks([callback])


class Tracking(Recorder):
    """As MLflow's callback for Keras: it writes at the ends of epochs or, if it is asked to, of batches."""

    def on_batch_end(self, batch, logs=None):
        raise AssertionError("no batch ends on the driver")

    def on_test_begin(self, logs=None):
        self.calls.append("test_begin")

    def on_test_end(self, logs=None):
        self.calls.append(f"test_end {sorted(logs)}")

    def on_test_batch_end(self, batch, logs=None):
        raise AssertionError("no batch ends on the driver")


@pytest.mark.usefixtures("forked_workers")
def test_a_callback_with_batch_hooks_among_others_is_taken_with_one_warning(caplog):
    tracking = Tracking()
    partly = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: None, on_train_batch_end=print)
    each = replace(job(1, validation_split=0.2), workers=1)
    local.fit(each, [pa.concat_tables(rows())], callbacks=[tracking, partly, Recorder()], verbose=0)
    told = [record.getMessage() for record in caplog.records if "Batch hooks" in record.getMessage()]
    assert len(told) == 1
    assert "Tracking, LambdaCallback are not called, because batches end on the workers" in told[0]
    assert "Recorder" not in told[0]
    assert tracking.calls == [
        "train_begin",
        "epoch_begin 0",
        "test_begin",
        "test_end ['accuracy', 'loss']",
        "epoch_end 0 ['accuracy', 'loss', 'val_accuracy', 'val_loss']",
        "train_end",
    ]


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


def test_epoch_callbacks_of_keras_pass(caplog):
    check_callbacks(
        [
            keras.callbacks.EarlyStopping(),
            keras.callbacks.ReduceLROnPlateau(),
            keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate),
            keras.callbacks.ModelCheckpoint("x.keras"),
            keras.callbacks.CSVLogger("x.csv"),
            keras.callbacks.BackupAndRestore("x"),
            keras.callbacks.LambdaCallback(on_epoch_end=print),
        ]
    )
    assert not caplog.records
