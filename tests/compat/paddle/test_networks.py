"""Classic networks written in the language: they train, and have as many parameters as Keras counts."""

from pathlib import Path

import keras
import numpy as np
import pytest

from keraunos.compat.paddle.config_parser import parse_config
from keraunos.compat.paddle.estimator import compiled
from keraunos.compat.paddle.lowering.network import lower

NETWORKS = Path(__file__).parent / "networks"
SMALL = {
    "lenet": "side=16,classes=4",
    "alexnet": "side=67,shrink=16,classes=4",
    "vgg16": "side=32,shrink=16,classes=4",
    "lstm_text": "words=30,embedding=6,hidden=5,classes=3",
    "wide_and_deep": "crossed=40,users=20,items=15,numbers=4,embedding=3,hidden=8,classes=2",
}
ROWS = 6


def rows_for(network):
    """Rows of any content in the shapes that a network takes."""
    random = np.random.default_rng(0)
    rows = {}
    for name, tensor in network.inputs.items():
        size = network.config.layer(name).size
        shape = [ROWS, *(each or 5 for each in tensor.shape[1:])]
        if tensor.dtype == "int32":
            # A label's layer says how many classes there are, or 1; an id's how many words.
            rows[name] = random.integers(0, max(2, min(size, 15)), shape).astype("int32")
        else:
            rows[name] = random.random(shape, dtype="float32")
    return rows


@pytest.mark.parametrize("name", SMALL)
def test_a_classic_network_trains_a_step_and_counts_its_parameters(name):
    config = parse_config(str(NETWORKS / f"{name}.py"), SMALL[name])
    network = lower(config.model_config)
    trainer = compiled(network, config, 1, None)
    assert trainer.count_params() == sum(each.size for each in config.model_config.parameters)
    rows = rows_for(network)
    before = {each.path: np.array(each.value) for each in trainer.trainable_variables}
    label = next(iter(rows.values()))
    given = {tensor.name: rows[tensor.name] for tensor in trainer.inputs}
    loss = trainer.train_on_batch(given, label)
    assert np.all(np.isfinite(loss))
    moved = [path for path, value in before.items() if not np.array_equal(value, _now(trainer, path))]
    assert len(moved) >= 0.8 * len(before)


def _now(model, path):
    return np.array(next(each for each in model.trainable_variables if each.path == path).value)


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
