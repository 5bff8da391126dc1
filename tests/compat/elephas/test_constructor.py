"""What `SparkModel` means where it is told little, by the Keras that the program was written for."""

import keras
import pytest

from keraunos.compat.elephas import optimizers
from keraunos.compat.elephas.constructor import settings_of
from keraunos.compat.run_unchanged import era


@pytest.fixture(scope="module")
def model():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


@pytest.mark.parametrize(
    ("day", "mode"), [("0", "asynchronous"), ("1", "asynchronous"), ("2", "asynchronous"), ("", "synchronous")]
)
def test_a_mode_that_is_not_said_is_the_one_of_the_day(model, day, mode, monkeypatch):
    monkeypatch.setitem(era._told, "keras", day)
    assert settings_of("SparkModel", (model,), {}, "synchronous").mode == mode
    assert settings_of("SparkModel", (model,), {"mode": "hogwild"}, "synchronous").mode == "hogwild"


def test_a_mode_that_changed_within_keras_0_is_told(model, monkeypatch, caplog):
    monkeypatch.setitem(era._told, "keras", "0")
    settings_of("SparkModel", (), {"sc": None, "model": model, "mode": "synchronous"}, "synchronous")
    assert not caplog.records
    assert settings_of("SparkModel", (), {"sc": None, "model": model}, "synchronous").mode == "asynchronous"
    assert "synchronous until November 2015 and asynchronous from 0.2 on" in caplog.text


def test_an_optimizer_stood_before_the_custom_objects(model):
    adagrad = optimizers.Adagrad()
    behind = ("hogwild", "batch", "socket", 3)
    for given, expected in (
        ((adagrad,), (adagrad, {}, 32)),
        ((adagrad, {"a": 1}), (adagrad, {"a": 1}, 32)),
        ((None, {"a": 1}, 8), (None, {"a": 1}, 8)),
        (({"a": 1}, 8), (None, {"a": 1}, 8)),
        ((None, 8), (None, {}, 8)),
    ):
        found = settings_of("SparkMLlibModel", (model, *behind, *given), {}, "synchronous")
        assert (found.optimizer, found.custom_objects, found.batch_size) == expected
        assert (found.mode, found.num_workers) == ("hogwild", 3)
