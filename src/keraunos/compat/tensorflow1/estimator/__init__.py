"""`tf.estimator` of TensorFlow 1.x, which today's TensorFlow has dropped. Runs on the driver.

An `Estimator` is a model function with a folder of checkpoints. It trains in this process; `zoo.tfpark.TFEstimator`
trains the same model function on Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from keraunos.compat.tensorflow1 import _mode

_v1 = _mode.tensorflow_1()

_HOMES = {
    "DNNClassifier": "_canned",
    "DNNRegressor": "_canned",
    "Estimator": "_estimator",
    "EstimatorSpec": "_specs",
    "LinearClassifier": "_canned",
    "LinearRegressor": "_canned",
    "ModeKeys": "_specs",
    "RunConfig": "_run_config",
    "WarmStartSettings": "_run_config",
}
_MODULES = ("export", "inputs")
# What was always `tf.train`'s, under two names.
_OF_TRAIN = (
    "CheckpointSaverHook", "CheckpointSaverListener", "FeedFnHook", "FinalOpsHook", "GlobalStepWaiterHook",
    "LoggingTensorHook", "NanLossDuringTrainingError", "NanTensorHook", "ProfilerHook", "SecondOrStepTimer",
    "SessionRunArgs", "SessionRunContext", "SessionRunHook", "SessionRunValues", "StepCounterHook", "StopAtStepHook",
    "SummarySaverHook",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name in _OF_TRAIN:
        return getattr(_v1.train, name)
    raise AttributeError(
        f"tf.estimator.{name} is not there: TensorFlow has dropped tf.estimator, and this part of it was not built "
        f"again. There are: {', '.join(sorted([*_HOMES, *_MODULES]))}. Write a model function for tf.estimator."
        "Estimator, or a Keras model for zoo.tfpark.KerasModel."
    )


def __dir__() -> list[str]:
    return sorted([*_HOMES, *_MODULES, *_OF_TRAIN])
