"""Models in files: what was saved is what is loaded, from any file system and from Elephas itself."""

import json
import warnings

import h5py
import keras
import numpy as np
import pytest

from keraunos.compat.elephas import optimizers
from keraunos.compat.elephas.spark_model import (
    AsynchronousSparkModel,
    SparkMLlibModel,
    SparkModel,
    load_spark_model,
)
from keraunos.errors import JobError, ModelError
from tests.compat.elephas import models


def functional():
    inputs = keras.Input((64,))
    network = keras.Model(inputs, keras.layers.Dense(10, "softmax")(inputs))
    network.compile("adam", "categorical_crossentropy", metrics=["accuracy"])
    return network


@pytest.mark.parametrize("suffix", [".keras", ".h5"])
@pytest.mark.parametrize("kind", [SparkModel, AsynchronousSparkModel, SparkMLlibModel])
@pytest.mark.parametrize("network", [models.classifier, functional])
def test_a_saved_model_is_loaded_with_its_settings(tmp_path, suffix, kind, network):
    model = kind(
        network(), mode="hogwild", frequency="batch", num_workers=3, batch_size=7, optimizer=optimizers.Adam(lr=0.5)
    )
    path = str(tmp_path / f"model{suffix}")
    model.save(path)
    again = load_spark_model(path)
    assert type(again) is kind
    assert again.get_config() == model.get_config()
    x, y = models.digits(20)
    assert again.master_network.evaluate(x, y, verbose=0) == model.master_network.evaluate(x, y, verbose=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert keras.saving.load_model(path).count_params() == model.master_network.count_params()


@pytest.mark.spark
@pytest.mark.parametrize("suffix", [".keras", ".h5"])
@pytest.mark.parametrize("way", ["file", "viewfs"])
@pytest.mark.parametrize("told", [True, False])
def test_a_model_goes_through_hadoop(mounted, tmp_path, suffix, way, told):
    path = f"{mounted if way == 'viewfs' else tmp_path.as_uri()}/models/model{suffix}"
    model = SparkModel(models.classifier())
    model.save(path, to_hadoop=told)
    assert (tmp_path / "models" / f"model{suffix}").is_file()
    with pytest.raises(JobError, match="overwrite=True"):
        model.save(path, to_hadoop=told)
    model.save(path, overwrite=True, to_hadoop=told)
    again = load_spark_model(path, from_hadoop=told)
    for ours, theirs in zip(again.master_network.get_weights(), model.master_network.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", ["SparkModel", "SparkMLlibModel", "AsynchronousSparkModel"])
def test_a_file_of_elephas_is_loaded(tmp_path, name):
    network = models.classifier()
    path = tmp_path / "model.h5"
    network.save(path)
    config = {"num_workers": 2, "batch_size": 64, "anything": "a program gave"}
    with h5py.File(path, "a") as file:
        file.attrs["distributed_config"] = json.dumps({"class_name": name, "config": config}).encode("utf8")
    loaded = load_spark_model(str(path))
    assert type(loaded).__name__ == name
    assert (loaded.get_config()["num_workers"], loaded.get_config()["batch_size"]) == (2, 64)
    x, y = models.digits(20)
    assert loaded.master_network.evaluate(x, y, verbose=0) == network.evaluate(x, y, verbose=0)


def test_a_custom_layer_is_handed_over_when_a_file_is_read(tmp_path):
    class Doubled(keras.layers.Layer):
        def call(self, inputs):
            return 2 * inputs

    network = keras.Sequential([keras.layers.Input((3,)), Doubled(), keras.layers.Dense(1)])
    network.compile("sgd", "mse")
    path = str(tmp_path / "model.keras")
    SparkModel(network, custom_objects={"Doubled": Doubled}).save(path)
    loaded = load_spark_model(path, custom_objects={"Doubled": Doubled})
    np.testing.assert_array_equal(
        loaded.master_network.predict(np.ones((1, 3)), verbose=0), network.predict(np.ones((1, 3)), verbose=0)
    )


def test_mistakes_are_told(tmp_path):
    model = SparkModel(models.classifier())
    with pytest.raises(JobError, match=r"must end in '\.keras' or '\.h5'. Received: 'model\.json'"):
        model.save("model.json")
    path = tmp_path / "model.keras"
    model.save(str(path))
    with pytest.raises(JobError, match="overwrite=True"):
        model.save(str(path))
    plain = tmp_path / "plain.keras"
    model.master_network.save(plain)
    with pytest.raises(ModelError, match="must have been saved by SparkModel.save"):
        load_spark_model(str(plain))
