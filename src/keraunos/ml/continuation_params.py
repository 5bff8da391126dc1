"""The Params of a training that goes on from an earlier one. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from keraunos.ml import conversion
from keraunos.ml.params import Settings, param


class HasSaveOptimizer(Settings):
    """What is saved with a fitted model."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"saveOptimizer": True}

    saveOptimizer = param(
        "saveOptimizer",
        "Whether a fitted model is saved with its optimizer's state, from which a later fit goes on (`initialModel`). "
        "Without it, what Adam has trained takes a third of the room.",
        conversion.boolean("saveOptimizer"),
    )

    def getSaveOptimizer(self) -> bool:
        """Whether a fitted model is saved with its optimizer's state."""
        return bool(self._get("saveOptimizer"))

    def setSaveOptimizer(self, value: bool) -> Self:
        """Set whether a fitted model is saved with its optimizer's state."""
        return self.setParams(saveOptimizer=value)


class HasInitialModel(HasSaveOptimizer):
    """Where a training begins."""

    initialModel = param(
        "initialModel",
        "A fitted model, or the path of a saved one (or of a pipeline that has one, or of a .keras file), that the "
        "training goes on from: its weights, its optimizer's state and step count, and so its learning-rate schedule. "
        "It takes the place of `model`, which may be left out; where both are set, they must be compiled alike.",
        conversion.initial_model("initialModel"),
    )

    trustedModules = param(
        "trustedModules",
        "Modules, or packages, whose code a file that `initialModel` names may use, besides those in Spark's setting "
        "spark.keraunos.trustedModules. It is not saved with an estimator.",
        conversion.trusted_modules("trustedModules"),
    )

    def getTrustedModules(self) -> list[str]:
        """The modules whose code a file of `initialModel` may use."""
        return list(self._get("trustedModules") or [])

    def setTrustedModules(self, value: Sequence[str]) -> Self:
        """Set the modules whose code a file of `initialModel` may use."""
        return self.setParams(trustedModules=value)

    def getInitialModel(self) -> Any:
        """The fitted model, or its path, that the training goes on from."""
        return self._get("initialModel")

    def setInitialModel(self, value: Any) -> Self:
        """Set the fitted model, or its path, that the training goes on from."""
        return self.setParams(initialModel=value)
