"""What the fitted models of Keras estimators share besides `transform`. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from keraunos.batch import Arrays
from keraunos.job.model_formats import KERAS
from keraunos.ml.keras.existing import Existing, existing
from keraunos.ml.keras.models import KerasModels
from keraunos.ml.label_params import HasLabels
from keraunos.ml.measured_model import MeasuredModel
from keraunos.ml.model import FittedModel, Trained
from keraunos.ml.one_row import batch_of_one
from keraunos.ml.params import HasAllowNaN, HasServing
from keraunos.ml.references import tell_unsavable
from keraunos.telemetry.history import History
from keraunos.trust import trusted_names, trusting


class KerasFitted(MeasuredModel):
    """A Keras model as a spark.ml Transformer, trained by `fit` or given to `of`."""

    format = KERAS
    live = KerasModels()

    @classmethod
    def of(
        cls,
        model: Any,
        *,
        layer: str | Sequence[str] | None = None,
        trustedModules: Sequence[str] | None = None,
        **params: Any,
    ) -> Self:
        """A fitted model from a Keras model that exists, without a fit; its `history` is empty.

        Args:
            model: a live Keras model, compiled or not; the path of a `.keras` file, local or any that Hadoop reads; or
                a fitted model, whose `featuresCol` and other Params of reading are taken over.
            layer: the name of a layer, or a list of names, whose outputs are served in place of the model's own.
            trustedModules: modules, or packages, whose code a file may use, besides those in Spark's setting
                spark.keraunos.trustedModules.
            params: any Params of this class, such as `featuresCol`.
        """
        with trusting(*trusted_names(trustedModules)):
            return cls._of(model, layer, params, None)

    def _outputs(self, row: Any) -> Arrays:
        """What the model gives for one row, on the driver: a batch of one."""
        inputs = batch_of_one(
            row,
            self._trained.signature,
            backend=self._backend(),
            floatx=self._trained.floatx,
            allow_nan=self.getAllowNaN(),
        )
        outputs = self.model.predict_on_batch(inputs)
        if isinstance(outputs, Mapping):
            return {str(name): np.asarray(output) for name, output in outputs.items()}
        if not isinstance(outputs, list | tuple):
            return np.asarray(outputs)
        names = [port.name for port in self._trained.signature.outputs]
        return {name: np.asarray(output) for name, output in zip(names, outputs, strict=True)}

    @classmethod
    def _of(cls, model: Any, layer: str | Sequence[str] | None, params: Mapping[str, Any], logits: bool | None) -> Self:
        cls._check_params(params)
        inherited = _reading_params(model) if isinstance(model, FittedModel) else {}
        found = existing(model, layer, params.get("customObjects") or inherited.get("customObjects") or {})
        # The same model of the same kind is what it was, whatever had to be said about it then.
        known = isinstance(model, cls) and layer is None and logits is None
        trained = Trained(
            archive=found.archive,
            history=History(),
            signature=found.signature,
            backend=found.backend,
            floatx=found.floatx,
            trusted=found.trusted,
            head=model._trained.head if known else cls._head_of(found, logits),
        )
        tell_unsavable(found.custom_objects)
        made = cls(trained).setParams(**inherited).setParams(**params)
        return made.setParams(customObjects=found.custom_objects) if found.custom_objects else made

    @classmethod
    def _head_of(cls, found: Existing, logits: bool | None) -> Mapping[str, Any] | None:  # noqa: ARG003 - some need it
        """What else this kind of fitted model remembers; raises where it cannot use the model."""
        return None


def _reading_params(fitted: FittedModel) -> dict[str, Any]:
    """What says how a fitted model reads its rows and runs, where it was set."""
    names = [each for kind in (HasServing, HasAllowNaN, HasLabels) for each in kind._param_names()]
    return {name: fitted._get(name) for name in names if fitted.hasParam(name) and fitted.isSet(name)}
