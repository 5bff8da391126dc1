"""The Params of a training that goes on from an earlier one. Runs on the driver."""

from __future__ import annotations

from copy import copy

from keraunos.ml import conversion
from keraunos.ml.declaration import param
from keraunos.ml.params import Settings


class HasSaveOptimizer(Settings):
    """What is saved with a fitted model."""

    saveOptimizer, getSaveOptimizer, setSaveOptimizer = param(
        "Whether a fitted model is saved with its optimizer's state, from which a later fit goes on (`initialModel`). "
        "Without it, what Adam has trained takes a third of the room.",
        conversion.boolean("saveOptimizer"),
        default=True,
    )


class HasInitialModel(HasSaveOptimizer):
    """Where a training begins."""

    initialModel, getInitialModel, setInitialModel = param(
        "A fitted model, or the path of a saved one (or of a pipeline that has one, or of a .keras file), that the "
        "training goes on from: its weights, its optimizer's state and step count, and so its learning-rate schedule. "
        "It takes the place of `model`, which may be left out; where both are set, they must be compiled alike.",
        conversion.initial_model("initialModel"),
    )

    trustedModules, getTrustedModules, setTrustedModules = param(
        "Modules, or packages, whose code a file that `initialModel` names may use, besides those in Spark's setting "
        "spark.keraunos.trustedModules. It is not saved with an estimator.",
        conversion.trusted_modules("trustedModules"),
        empty=[],
        read=copy,
    )
