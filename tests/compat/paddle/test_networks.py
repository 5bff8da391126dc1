"""Classic networks written in the language: they train, alike on all backends, and count parameters as Keras does."""

import functools
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from keraunos.compat.paddle.config_parser import parse_config
from keraunos.compat.paddle.estimator import parameter_values
from tests.compat.paddle import lowered_step
from tests.extended import extended

NETWORKS = Path(__file__).parent / "networks"
SMALL = {
    "lenet": "side=16,classes=4",
    "alexnet": "side=67,shrink=16,classes=4",
    "vgg16": "side=32,shrink=16,classes=4",
    "lstm_text": "words=30,embedding=6,hidden=5,classes=3",
    "wide_and_deep": "crossed=40,users=20,items=15,numbers=4,embedding=3,hidden=8,classes=2",
}


# Deep stacks of what LeNet has one of.
DEEP = ["alexnet", "vgg16"]


@pytest.fixture(scope="module")
def stepped():
    """A function that gives a network after a step, and its parameters before; each takes its step once."""
    return functools.cache(lambda name: lowered_step.stepped(NETWORKS / f"{name}.py", SMALL[name]))


@pytest.mark.parametrize("name", [extended(name) if name in DEEP else name for name in SMALL])
def test_a_classic_network_trains_a_step_and_counts_its_parameters(name, stepped):
    config = parse_config(str(NETWORKS / f"{name}.py"), SMALL[name])
    trainer, before = stepped(name)
    assert trainer.count_params() == sum(each.size for each in config.model_config.parameters)
    after = parameter_values(trainer)
    moved = [each for each, value in before.items() if not np.array_equal(value, after[each])]
    assert len(moved) >= 0.8 * len(before)


@pytest.mark.parametrize("name", ["lenet", extended("lstm_text")])
@pytest.mark.skipif(keras.config.backend() != "jax", reason="the other backend is to be TensorFlow")
def test_a_step_is_the_same_on_tensorflow(name, stepped, tmp_path):
    same_step(name, stepped, "tensorflow", tmp_path)


@pytest.mark.torch
@pytest.mark.parametrize("name", ["lenet", "lstm_text"])
@pytest.mark.skipif(keras.config.backend() != "torch", reason="run by make test-torch")
def test_a_step_is_the_same_on_torch(name, stepped, tmp_path):
    same_step(name, stepped, "jax", tmp_path)


def same_step(name, stepped, other, tmp_path):
    """A step of this process leads to the parameters that one in a process on another backend leads to."""
    trainer, start = stepped(name)
    file = tmp_path / "start.npz"
    np.savez(file, **start)
    subprocess.run(
        [sys.executable, lowered_step.__file__, name, SMALL[name], str(file)],
        env=os.environ | {"KERAS_BACKEND": other, "TF_CPP_MIN_LOG_LEVEL": "3"},
        check=True,
    )
    expected = parameter_values(trainer)
    with np.load(f"{file}.after.npz") as found:
        assert set(found) == set(expected)
        for each, value in expected.items():
            np.testing.assert_allclose(found[each], value, rtol=1e-4, atol=1e-6, err_msg=each)


def test_lenet_has_the_parameters_of_keras_lenet():
    layers = keras.layers
    twin = keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(20, 5),
            layers.MaxPooling2D(2),
            layers.Conv2D(50, 5),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dense(500),
            layers.Dense(10),
        ]
    )
    config = parse_config(str(NETWORKS / "lenet.py"), "")
    assert sum(each.size for each in config.model_config.parameters) == twin.count_params()
