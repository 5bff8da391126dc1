"""`bigdl.optim.optimizer`: every name that a program imports from there. Runs on the driver."""

from __future__ import annotations

from typing import Any

from keraunos.compat.zoo.bigdl.optim.methods import (
    DOUBLEMAX,
    LBFGS,
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    Ftrl,
    LarsSGD,
    OptimMethod,
    ParallelAdam,
    RateFollower,
    RMSprop,
    combined_rule,
)
from keraunos.compat.zoo.bigdl.optim.schedules import (
    Default,
    Exponential,
    MultiStep,
    Plateau,
    Poly,
    SequentialSchedule,
    Step,
    Warmup,
)
from keraunos.compat.zoo.bigdl.optim.summaries import TrainSummary, ValidationSummary
from keraunos.compat.zoo.bigdl.optim.triggers import (
    EveryEpoch,
    MaxEpoch,
    MaxIteration,
    MaxScore,
    MinLoss,
    Needs,
    SeveralIteration,
    TrainingState,
    Trigger,
    TriggerAnd,
    TriggerOr,
    trigger_named,
)
from keraunos.compat.zoo.bigdl.optim.validation import (
    AUC,
    MAE,
    NDCG,
    Accuracy,
    HitRatio,
    Loss,
    MeanAveragePrecision,
    MeanAveragePrecisionObjectDetection,
    Top1Accuracy,
    Top5Accuracy,
    TreeNNAccuracy,
    ValidationMethod,
    validation_method,
)
from keraunos.compat.zoo.bigdl.util import common as _bigdl

__all__ = [
    "AUC",
    "DOUBLEMAX",
    "LBFGS",
    "MAE",
    "NDCG",
    "SGD",
    "Accuracy",
    "Adadelta",
    "Adagrad",
    "Adam",
    "Adamax",
    "Default",
    "EveryEpoch",
    "Exponential",
    "Ftrl",
    "HitRatio",
    "L1L2Regularizer",  # noqa: F822 - found by __getattr__
    "L1Regularizer",  # noqa: F822 - found by __getattr__
    "L2Regularizer",  # noqa: F822 - found by __getattr__
    "LarsSGD",
    "Loss",
    "MaxEpoch",
    "MaxIteration",
    "MaxScore",
    "MeanAveragePrecision",
    "MeanAveragePrecisionObjectDetection",
    "MinLoss",
    "MultiStep",
    "Needs",
    "OptimMethod",
    "Optimizer",  # noqa: F822 - found by __getattr__
    "ParallelAdam",
    "Plateau",
    "Poly",
    "RMSprop",
    "RateFollower",
    "SequentialSchedule",
    "SeveralIteration",
    "Step",
    "Top1Accuracy",
    "Top5Accuracy",
    "TrainSummary",
    "TrainingState",
    "TreeNNAccuracy",
    "Trigger",
    "TriggerAnd",
    "TriggerOr",
    "ValidationMethod",
    "ValidationSummary",
    "Warmup",
    "combined_rule",
    "trigger_named",
    "validation_method",
]
# Imported from BigDL; a star import of this module re-exported them.
__all__ += _bigdl.__all__


def __getattr__(name: str) -> Any:
    if name in {"Optimizer", "DistriOptimizer", "LocalOptimizer"}:  # they need Keras, which methods and triggers do not
        from keraunos.compat.zoo.bigdl.optim import module_optimizer

        return module_optimizer.LocalOptimizer if name == "LocalOptimizer" else module_optimizer.Optimizer
    if name in {"L1L2Regularizer", "L1Regularizer", "L2Regularizer"}:
        from keraunos.compat.zoo.bigdl.optim import regularizers

        return getattr(regularizers, name)
    return _bigdl.passed_on("bigdl.optim.optimizer", name)
