"""`fit_generator` and its kin with batches of any size, and files of weights of any name."""

import numpy as np
import pytest

from keraunos.compat import keras0, keras1, keras2
from keraunos.errors import DataError, JobError, ModelError

SIZES = (3, 5, 2)
X = np.arange(10.0)[:, None]


def model_of(package, rate=0.0, **named):
    layers = package.layers
    first = layers.Dense(1, 1) if package is keras0 else layers.Dense(1, input_dim=1)
    model = package.models.Sequential()
    model.add(first)
    model.compile(package.optimizers.SGD(lr=rate), "mse", **named)
    model.set_weights([np.ones((1, 1)), np.zeros(1)])
    return model


def batches(given=None, sizes=SIZES):
    while True:
        begin = 0
        for size in sizes:
            if given is not None:
                given.append(size)
            yield X[begin : begin + size], np.zeros((size, 1))
            begin += size


def full_of(step):
    return [step(x, y) for x, y in zip(np.split(X, [3, 8]), np.split(np.zeros((10, 1)), [3, 8]), strict=True)]


@pytest.mark.parametrize("package", [keras0, keras1])
def test_batches_of_any_size_are_one_step_each(package):
    model, other = model_of(package, 0.01), model_of(package, 0.01)
    history = model.fit_generator(batches(), samples_per_epoch=10, nb_epoch=2, verbose=0)
    full_of(other.train_on_batch)
    full_of(other.train_on_batch)
    np.testing.assert_allclose(model.get_weights()[0], other.get_weights()[0], rtol=1e-5)
    assert history.epoch == [0, 1]
    assert len(history.history["loss"]) == 2


def test_an_epoch_ends_with_the_batch_that_reaches_its_rows():
    given, ends = [], []

    class Ends(keras1.callbacks.Callback):
        def on_train_begin(self, logs=None):
            ends.append("begin")

        def on_epoch_end(self, epoch, logs=None):
            ends.append((epoch, round(float(logs["loss"]), 3), round(float(logs["val_loss"]), 3)))

        def on_train_end(self, logs=None):
            ends.append("end")

    model = model_of(keras1)
    model.fit_generator(
        batches(given), 4, 3, verbose=0, callbacks=[Ends()], validation_data=batches(), nb_val_samples=10
    )
    squares = (X**2)[:, 0]
    # 3 and 5 rows, then 2 and 3, then 5; the loss is weighted by rows
    losses = [squares[:8].mean(), np.r_[squares[8:], squares[:3]].mean(), squares[3:8].mean()]
    whole = round(float(squares.mean()), 3)
    assert ends == ["begin", *[(n, round(float(loss), 3), whole) for n, loss in enumerate(losses)], "end"]
    assert given[:5] == [3, 5, 2, 3, 5]


def test_training_by_rows_stops_where_a_callback_stops_it():
    model = model_of(keras1)
    stop = keras1.callbacks.EarlyStopping(monitor="loss", patience=1)
    history = model.fit_generator(batches(), samples_per_epoch=10, nb_epoch=9, verbose=0, callbacks=[stop])
    assert len(history.epoch) < 9


def test_rows_are_measured_and_predicted():
    model = model_of(keras1, metrics=["mae"])
    found = model.evaluate_generator(batches(), val_samples=10)
    assert found[0] == pytest.approx((X**2).mean())
    assert found[1] == pytest.approx(np.abs(X).mean())
    assert model.predict_generator(batches(), val_samples=9).shape == (10, 1)
    with pytest.raises(DataError, match="must give batches"):
        model.fit_generator(iter([]), samples_per_epoch=10, nb_epoch=1, verbose=0)


def test_classes_have_weights_in_a_generator():
    model = model_of(keras1)
    ones = ((X[:4], np.array([[0.0], [1.0], [0.0], [1.0]])) for _ in iter(int, 1))
    history = model.fit_generator(ones, 4, 1, verbose=0, class_weight={0: 1.0, 1: 3.0})
    expected = np.mean([0.0, 0.0, 4.0, 3 * 4.0])
    assert history.history["loss"] == [pytest.approx(expected)]


def test_steps_of_keras_2():
    model = model_of(keras2)
    images = np.ones((4, 2, 2, 1))
    flow = keras2.preprocessing.image.ImageDataGenerator().flow(images, np.ones(4), batch_size=2)
    convolution = keras2.models.Sequential([keras2.layers.Flatten(input_shape=(2, 2, 1)), keras2.layers.Dense(1)])
    convolution.compile("sgd", "mse")
    steps = []
    told = keras2.callbacks.LambdaCallback(on_batch_end=lambda batch, logs: steps.append(batch))
    convolution.fit_generator(flow, steps_per_epoch=7 / 2, epochs=2, verbose=0, callbacks=[told])
    assert steps == [0, 1, 2, 3] * 2  # more than the rows have, and a share of one is one more
    assert len(model.fit_generator(batches(), steps_per_epoch=3, epochs=2, verbose=0).epoch) == 2
    with pytest.raises(JobError, match="`steps_per_epoch` must be given with a generator"):
        model.fit_generator(batches(), epochs=1)


@pytest.mark.parametrize("package", [keras0, keras1, keras2])
@pytest.mark.parametrize("name", ["w.dat", "weights", "w.hdf5", "w.weights.h5", "w.keras"])
def test_weights_are_read_from_the_file_that_they_were_written_to(package, name, tmp_path):
    model, other = model_of(package), model_of(package)
    model.set_weights([np.full((1, 1), 3.0), np.full(1, 4.0)])
    path = str(tmp_path / name)
    model.save_weights(path)
    other.load_weights(path)
    assert [float(each.sum()) for each in other.get_weights()] == [3.0, 4.0]


def test_a_file_of_something_else_is_refused(tmp_path):
    (tmp_path / "w.dat").write_text("nothing")
    with pytest.raises(ModelError, match="must be an HDF5 file of weights"):
        model_of(keras1).load_weights(str(tmp_path / "w.dat"))
