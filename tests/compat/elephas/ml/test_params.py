"""Elephas's mixins: defaults, setters and getters, and what they refuse."""

import keras
import pytest

from keraunos.compat.elephas import optimizers
from keraunos.compat.elephas.enums.frequency import Frequency
from keraunos.compat.elephas.enums.modes import Mode
from keraunos.compat.elephas.ml import params
from keraunos.errors import JobError, ModelError


@pytest.mark.parametrize(
    ("mixin", "name", "default", "other"),
    [
        (params.HasKerasModelConfig, "keras_model_config", None, {"foo": "bar"}),
        (params.HasKerasOptimizerConfig, "optimizer_config", None, {"foo": "bar"}),
        (params.HasElephasOptimizerConfig, "elephas_optimizer_config", None, {"name": "SGD", "lr": 0.5}),
        (params.HasLoss, "loss", None, "mse"),
        (params.HasMetrics, "metrics", ["acc"], ["mae"]),
        (params.HasMode, "mode", "asynchronous", "hogwild"),
        (params.HasFrequency, "frequency", "epoch", "batch"),
        (params.HasNumberOfClasses, "nb_classes", 10, 42),
        (params.HasCategoricalLabels, "categorical_labels", True, False),
        (params.HasEpochs, "epochs", 10, 3),
        (params.HasEpochs, "nb_epoch", 10, 3),
        (params.HasBatchSize, "batch_size", 32, 64),
        (params.HasVerbosity, "verbosity", 0, 2),
        (params.HasValidationSplit, "validation_split", 0.1, 0.5),
        (params.HasNumberOfWorkers, "num_workers", 8, 12),
        (params.HasCustomObjects, "custom_objects", {}, {"relu": keras.activations.relu}),
        (params.HasInferenceBatchSize, "inference_batch_size", None, 64),
        (params.HasPredictClasses, "predict_classes", False, True),
    ],
)
def test_a_default_gives_way_to_what_is_set(mixin, name, default, other):
    stage = mixin()
    assert getattr(stage, f"get_{name}")() == default
    assert getattr(stage, f"set_{name}")(other) is stage
    found = getattr(stage, f"get_{name}")()
    assert found == other if not isinstance(other, dict) else other.items() <= found.items()


def test_a_server_optimizer_may_be_an_object_of_elephas_or_of_keras():
    stage = params.HasElephasOptimizerConfig().set_params(optimizer=optimizers.Adagrad(lr=0.3))
    assert stage.get_elephas_optimizer_config() == {"name": "Adagrad", "lr": 0.3, "epsilon": 1e-6}
    stage.set_elephas_optimizer_config(keras.optimizers.Adam(0.5))
    assert stage.get_elephas_optimizer_config()["config"]["learning_rate"] == 0.5


def test_an_optimizer_of_keras_is_kept_as_its_configuration():
    stage = params.HasKerasOptimizerConfig().set_optimizer_config(keras.optimizers.SGD(0.25))
    assert stage.get_optimizer_config()["config"]["learning_rate"] == 0.25


def test_enumerations_are_names():
    assert params.HasMode().set_mode(Mode.HOGWILD).get_mode() == "hogwild"
    assert params.HasFrequency().set_frequency(Frequency.BATCH).get_frequency() == "batch"


@pytest.mark.parametrize(
    ("mixin", "name", "wrong", "told"),
    [
        (params.HasMode, "mode", "synchron", r"'synchronous'.*Did you mean 'synchronous'"),
        (params.HasFrequency, "frequency", "batches", r"Did you mean 'batch'"),
        (params.HasValidationSplit, "validation_split", 1.5, r"Received: 1\.5"),
        (params.HasEpochs, "epochs", 0, r"at least 1\. Received: 0"),
        (params.HasKerasOptimizerConfig, "optimizer_config", 0.1, r"keras\.optimizers\.serialize"),
        (params.HasLoss, "loss", 3, r"Received: 3"),
        (params.HasMetrics, "metrics", 3, r"Received: 3"),
    ],
)
def test_what_means_nothing_is_refused_where_it_is_set(mixin, name, wrong, told):
    with pytest.raises(JobError, match=told):
        getattr(mixin(), f"set_{name}")(wrong)


def test_yaml_is_refused_with_what_to_do():
    with pytest.raises(ModelError, match=r"YAML.*model\.to_json\(\)"):
        params.HasKerasModelConfig().set_keras_model_config("class_name: Sequential\nconfig:\n- class_name: Dense\n")


def test_two_names_of_one_param_are_not_both_taken():
    with pytest.raises(JobError, match="`epochs` must be given once"):
        params.HasEpochs().set_params(epochs=3, nb_epoch=4)


def test_an_unknown_name_brings_the_nearest():
    with pytest.raises(TypeError, match="Did you mean 'batch_size'"):
        params.HasBatchSize().set_params(batchsize=3)
