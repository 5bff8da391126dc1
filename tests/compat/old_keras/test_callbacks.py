"""Callbacks of Keras 0, 1 and 2: when they act, what they are told and which files they write."""

import numpy as np
import pytest

from keraunos.compat import keras0, keras1, keras2
from keraunos.compat.old_keras import undecided
from keraunos.errors import JobError

X = np.random.default_rng(0).normal(size=(10, 3)).astype("float32")
Y = np.random.default_rng(1).normal(size=10).astype("float32")
EPOCHS = {keras0: "nb_epoch", keras1: "nb_epoch", keras2: "epochs"}


def _model(package, rate=0.0, **named):
    size = (3, 1) if package is keras0 else (1,)
    model = package.models.Sequential([package.layers.Dense(*size, **({} if package is keras0 else {"input_dim": 3}))])
    model.compile(package.optimizers.SGD(lr=rate, **named), "mse")
    return model


def _fit(package, callbacks, epochs=12, model=None, **named):
    model = _model(package) if model is None else model
    return model.fit(X, Y, verbose=0, callbacks=callbacks, shuffle=False, **{EPOCHS[package]: epochs}, **named)


@pytest.mark.parametrize(
    ("package", "patience", "epochs"),
    [(keras0, 2, 4), (keras1, 2, 4), (keras1, 0, 2), (keras2, 2, 3), (keras2, 0, 2)],
)
def test_patience_ends_when_it_did(package, patience, epochs):
    stop = package.callbacks.EarlyStopping(monitor="loss", patience=patience)
    assert len(_fit(package, [stop]).epoch) == epochs


def test_a_quantity_grows_where_its_name_says_acc():
    assert keras1.callbacks.EarlyStopping(monitor="val_acc").grows
    for package in (keras1, keras2):
        assert not package.callbacks.EarlyStopping(monitor="val_f1").grows
        assert package.callbacks.EarlyStopping(monitor="val_f1", mode="max").grows


@pytest.mark.parametrize(("package", "cut"), [(keras1, [3, 5]), (keras2, [2, 4])])
def test_the_rate_is_cut_when_it_was(package, cut):
    plateau = package.callbacks.ReduceLROnPlateau(monitor="loss", factor=0.5, patience=2)
    rates = _fit(package, [plateau], 7, _model(package, 1e-30)).history["lr"]
    lower = [epoch for epoch in range(1, 7) if rates[epoch] < rates[epoch - 1]]
    assert lower == [each + 1 for each in cut]


def _recorder(package):
    class Recorder(package.callbacks.Callback):
        def on_train_begin(self, logs=None):
            self.logs = []

        def on_batch_end(self, batch, logs=None):
            self.logs.append(dict(logs))

    return Recorder()


@pytest.mark.parametrize("package", [keras0, keras1, keras2])
def test_a_batch_reports_its_own_loss(package):
    model, recorder = _model(package), _recorder(package)
    squares = (model.predict(X)[:, 0] - Y) ** 2
    history = _fit(package, [recorder], 2, model, batch_size=4)
    expected = [squares[:4].mean(), squares[4:8].mean(), squares[8:].mean()] * 2
    assert [each["loss"] for each in recorder.logs] == pytest.approx(expected, rel=1e-4)
    assert [each["size"] for each in recorder.logs] == [4, 4, 2] * 2
    assert [each["batch"] for each in recorder.logs] == [0, 1, 2] * 2
    assert history.history["loss"] == pytest.approx([squares.mean()] * 2, rel=1e-4)
    assert set(history.history) == {"loss"}


@pytest.mark.parametrize(("package", "given"), [(keras0, 0.5), (keras1, 0.5), (keras2, 0.25)])
def test_a_schedule_is_asked_as_it_was(package, given, monkeypatch, caplog):
    monkeypatch.setattr(undecided, "_said", set())
    told = []
    schedule = package.callbacks.LearningRateScheduler(lambda epoch, base=0.5: told.append(base) or 0.25)
    model = _model(package, 0.25)
    _fit(package, [schedule], 2, model)
    assert told == [given, given]
    assert ("the epoch alone until Keras 2.1.3" in caplog.text) == (package is keras2)
    with pytest.raises(JobError, match="must return a float"):
        _fit(package, [package.callbacks.LearningRateScheduler(lambda epoch: 1)], 1)


@pytest.mark.parametrize(("package", "names"), [(keras0, ["00", "01"]), (keras1, ["00", "01"]), (keras2, ["01", "02"])])
@pytest.mark.parametrize(("alone", "ending"), [(False, ".hdf5"), (True, ".hdf5"), (False, ".model"), (True, "")])
def test_checkpoints_have_their_names(package, names, alone, ending, tmp_path):
    named = {} if package is keras0 else {"save_weights_only": alone}
    path = str(tmp_path / ("w.{epoch:02d}-{val_loss:.0f}" + ending))
    model = _model(package, 0.01)
    _fit(package, [package.callbacks.ModelCheckpoint(path, **named)], 2, model, validation_data=(X, Y))
    found = sorted(tmp_path.iterdir())
    assert [each.name[2:4] for each in found] == names
    again = _model(package)
    again.load_weights(str(found[1]))
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-5)
    if not alone and package is not keras0:
        loaded = package.models.load_model(str(found[1]))
        np.testing.assert_allclose(loaded.predict(X), model.predict(X), rtol=1e-5)
        assert loaded.evaluate(X, Y, verbose=0) == pytest.approx(model.evaluate(X, Y, verbose=0))


def test_checkpoints_of_the_best_and_of_some_epochs(tmp_path):
    for named, count in (({"save_best_only": True, "monitor": "loss"}, 1), ({"period": 2}, 2)):
        folder = tmp_path / str(count)
        folder.mkdir()
        _fit(keras1, [keras1.callbacks.ModelCheckpoint(str(folder / "{epoch}.h5"), **named)], 4)
        assert len(list(folder.iterdir())) == count


@pytest.mark.parametrize("named", [{"validation_data": (X[7:], Y[7:])}, {"validation_split": 0.3}])
def test_callbacks_have_what_is_held_out(named):
    recorder = _recorder(keras1)
    _fit(keras1, [recorder], 1, **named)
    inputs, labels, weights = recorder.validation_data
    np.testing.assert_array_equal(inputs, X[7:])
    np.testing.assert_array_equal(labels, Y[7:, None])
    np.testing.assert_array_equal(weights, np.ones(3))


def test_weights_of_classes_that_are_no_dict_have_no_effect(monkeypatch, caplog):
    monkeypatch.setattr(undecided, "_said", set())
    _fit(keras1, [], 1, class_weight="auto")
    assert "'auto' had no effect" in caplog.text
