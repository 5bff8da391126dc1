"""Metrics and losses of Keras 0, 1 and 2 as numbers: each expectation is the old formula in numpy."""

import keras
import numpy as np
import pytest

from keraunos.compat import keras0, keras1, keras2
from keraunos.errors import JobError

X = np.random.default_rng(0).normal(size=(10, 3)).astype("float32")
KERNEL = np.array([[1.0], [2.0], [-1.0]])
OUT = (X @ KERNEL)[:, 0]
Y = np.round(np.random.default_rng(1).normal(size=10) * 2).astype("float32")
DAYS = pytest.mark.parametrize("package", [keras0, keras1, keras2])


def _one(package, loss="mse", metrics=None, activation="linear", **named):
    layer = package.layers.Dense(*((3, 1) if package is keras0 else (1,)), activation=activation, input_dim=3) \
        if package is not keras0 else package.layers.Dense(3, 1, activation=activation)  # fmt: skip
    model = package.models.Sequential([layer])
    model.compile(package.optimizers.SGD(lr=0.0), loss, **({"metrics": metrics} if metrics else {}), **named)
    model.set_weights([KERNEL, np.zeros(1)])
    return model


def sse(y_true, y_pred):
    return keras.ops.sum(keras.ops.square(y_pred - y_true), axis=-1)


def root(y_true, y_pred):
    return keras.ops.sqrt(keras.ops.mean(keras.ops.square(y_pred - y_true)))


@DAYS
@pytest.mark.parametrize(("activation", "loss"), [("linear", "mse"), ("tanh", "hinge")])
def test_outputs_are_rounded_for_the_accuracy(package, activation, loss):
    out, labels = (OUT, np.round(OUT)) if loss == "mse" else (np.tanh(OUT), np.sign(OUT))
    labels[0] += 1
    if package is keras0:
        found = _one(package, loss, activation=activation).evaluate(X, labels, show_accuracy=True, verbose=0)
    else:
        found = _one(package, loss, ["accuracy"], activation).evaluate(X, labels, verbose=0)
        assert _one(package, loss, ["binary_accuracy"], activation).evaluate(X, labels, verbose=0) == found
    assert found[1] == pytest.approx(np.mean(np.round(out) == labels))


@pytest.mark.parametrize("package", [keras1, keras2])
def test_functions_get_labels_as_columns_and_count_by_rows(package):
    off = OUT - Y
    by_rows = (8 * np.sqrt((off[:8] ** 2).mean()) + 2 * np.sqrt((off[8:] ** 2).mean())) / 10
    expected = [(off**2).mean(), (off**2).mean(), by_rows]
    model = _one(package, metrics=[sse, root])
    assert model.metrics_names == ["loss", "sse", "root"]
    for labels in (Y, Y[:, None]):
        assert model.evaluate(X, labels, batch_size=8, verbose=0) == pytest.approx(expected, rel=1e-5)
        named = {"epochs" if package is keras2 else "nb_epoch": 1}
        history = model.fit(X, labels, batch_size=8, shuffle=False, verbose=0, **named).history
        assert [history[name][0] for name in model.metrics_names] == pytest.approx(expected, rel=1e-5)


def test_a_copy_for_workers_measures_the_same_and_its_sums_come_together():
    model = _one(keras1, metrics=["accuracy", sse])
    metrics = model.get_compile_config()["metrics"]
    with keras.saving.custom_object_scope({"sse": sse}):
        halves = [[keras.saving.deserialize_keras_object(each) for each in metrics] for _ in range(2)]
    for half, rows in zip(halves, (slice(0, 7), slice(7, 10)), strict=True):
        for metric in half:
            metric.update_state(Y[rows], OUT[rows, None].astype("float32"))
    for metric, other in zip(*halves, strict=True):
        metric.merge_state([other])
    found = [float(metric.result()) for metric in halves[0]]
    assert found == pytest.approx([np.mean(np.round(OUT) == Y), ((OUT - Y) ** 2).mean()], rel=1e-5)


@DAYS
@pytest.mark.parametrize("name", ["hinge", "squared_hinge"])
def test_hinges_take_labels_as_they_are(package, name):
    labels = (OUT > 0.3).astype("float32")
    expected = (np.maximum(1 - labels * OUT, 0) ** (2 if name == "squared_hinge" else 1)).mean()
    for loss in (name, getattr(package.objectives, name)):
        assert _one(package, loss).evaluate(X, labels, verbose=0) == pytest.approx(expected, rel=1e-5)
    if package is not keras0:
        found = _one(package, metrics=[name]).evaluate(X, labels, verbose=0)
        assert found[1] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("package", "expected"), [(keras1, 0.5), (keras2, 1.0)])
def test_a_mask_hides_from_the_accuracy_since_keras_2(package, expected):
    masking = package.layers.Masking(0.0, input_shape=(2, 2))
    model = package.models.Sequential([masking, package.layers.TimeDistributed(package.layers.Dense(2))])
    model.compile("sgd", "mse", ["accuracy"])
    model.set_weights([np.eye(2), np.zeros(2)])
    x = np.array([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]]])
    y = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    assert model.evaluate(x, y, verbose=0)[1] == pytest.approx(expected)


def _two(loss, metrics, **named):
    tensor = keras1.layers.Input(shape=(3,))
    outputs = [keras1.layers.Dense(1, name=name)(tensor) for name in ("b", "a")]
    model = keras1.models.Model(input=tensor, output=outputs)
    model.compile("sgd", loss, metrics, **named)
    model.set_weights([KERNEL, np.zeros(1), 2 * KERNEL, np.zeros(1)])
    return model


@pytest.mark.parametrize("weights", [[1.0, 0.5], {"a": 0.5}])
def test_one_loss_and_one_list_of_metrics_are_for_each_output(weights):
    model = _two("mse", ["accuracy", "mae"], loss_weights=weights)
    parts = [(OUT - Y), (2 * OUT - Y)]
    losses = [(part**2).mean() for part in parts]
    right = [np.mean(np.round(out) == Y) for out in (OUT, 2 * OUT)]
    off = [np.abs(part).mean() for part in parts]
    names = ["b_loss", "a_loss", "b_acc", "b_mean_absolute_error", "a_acc", "a_mean_absolute_error"]
    assert model.metrics_names == ["loss", *names]
    expected = [losses[0] + 0.5 * losses[1], *losses, right[0], off[0], right[1], off[1]]
    assert model.evaluate(X, [Y, Y], verbose=0) == pytest.approx(expected, rel=1e-5)
    assert model.test_on_batch(X, [Y, Y]) == pytest.approx(expected, rel=1e-5)


def test_metrics_by_output():
    model = _two("mse", {"a": ["accuracy"]})
    assert model.metrics_names == ["loss", "b_loss", "a_loss", "a_acc"]
    assert len(model.evaluate(X, [Y, Y], verbose=0)) == 4
    with pytest.raises(JobError, match="output in `metrics`.* 'c'"):
        _two("mse", {"c": ["accuracy"]})
