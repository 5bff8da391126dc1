"""What every estimator does: check, train on Spark, hand over a fitted model. Runs on the driver."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from pyspark.ml import Estimator
from pyspark.ml.util import MLReadable, MLWritable

from keraunos.errors import JobError
from keraunos.launch.training_result import TrainingResult
from keraunos.ml.fit_plan import FitPlan
from keraunos.ml.model import FittedModel, Trained
from keraunos.ml.persistence import MODEL_FILE, KerasReader, KerasWriter, Parts
from keraunos.ml.preparation import Labels, Prepared, prepare
from keraunos.ml.serving import is_case_sensitive
from keraunos.ml.signature import Signature
from keraunos.ml.training_params import TrainingParams


class Fitter(Estimator, TrainingParams, MLReadable, MLWritable):  # type: ignore[misc]  # pyspark is used untyped
    """A compiled Keras model as a spark.ml Estimator."""

    def write(self) -> KerasWriter:
        """A writer that saves to any Hadoop path."""
        return KerasWriter(self)

    @classmethod
    def read(cls) -> KerasReader[Self]:
        """A reader of what `write` saved."""
        return KerasReader(cls)

    @abstractmethod
    def _check(self, model: Any, signature: Signature) -> None:
        """Raise where this kind of estimator cannot use the model."""

    @abstractmethod
    def _fitted(self, trained: Trained) -> FittedModel:
        """The fitted model of this kind."""

    def _head(self, model: Any, signature: Signature) -> Mapping[str, Any] | None:
        """What else the fitted model must remember of the compiled one."""
        return None

    def _encoded(self, model: Any, signature: Signature, labels: Labels) -> Labels:
        """What the labels become before a worker hands them to the model."""
        return labels

    def plan_fit(self, dataset: Any, workers: int | None = None) -> FitPlan:
        """What `fit` would do, for a search to run; `workers` in place of `numWorkers`."""
        from keraunos.launch import spark as launch

        session = dataset.sparkSession
        prepared = prepare(
            self,
            dataset.schema,
            workers=launch.total_slots(session),
            first_row=lambda: _first_row(dataset),
            case_sensitive=is_case_sensitive(session),
            check=self._check,
            encode=self._encoded,
        )
        return FitPlan(
            job=prepared.job if workers is None else replace(prepared.job, workers=workers),
            rows=dataset,
            finish=lambda result: self._model_of(prepared, result),
            custom_objects=self.getCustomObjects(),
            callbacks=self.getCallbacks(),
            checkpoints=self.checkpoints(),
        )

    def _fit(self, dataset: Any) -> FittedModel:
        from keraunos.launch import spark as launch

        plan = self.plan_fit(dataset)
        result = launch.fit(
            plan.job,
            dataset,
            custom_objects=plan.custom_objects,
            callbacks=plan.callbacks,
            verbose=self.getVerbose(),
            checkpoints=plan.checkpoints,
        )
        fitted: FittedModel = plan.finish(result)
        return fitted

    def _model_of(self, prepared: Prepared, result: TrainingResult) -> FittedModel:
        trained = Trained(
            archive=result.archive,
            history=result.history,
            signature=prepared.signature,
            backend=prepared.job.model.backend,
            floatx=prepared.job.model.floatx,
            head=self._head(prepared.model, prepared.signature),
            ranks=result.ranks,
        )
        fitted = self._fitted(trained)._resetUid(self.uid)
        return self._copyValues(fitted)  # type: ignore[no-any-return]  # spark.ml's own copying

    def _to_parts(self) -> Parts:
        from keraunos.learners.keras_archive import to_archive

        if self.getCallbacks():
            names = [type(each).__name__ for each in self.getCallbacks()]
            raise JobError(
                f"`callbacks` cannot be saved: they are live objects. Expected an estimator without any. Received: "
                f"{names!r}. Use estimator.clear(estimator.callbacks) and set them again after loading."
            )
        model = self.getModel()
        return Parts({} if model is None else {MODEL_FILE: to_archive(model, self.getCustomObjects())})

    @classmethod
    def _from_parts(cls, parts: Parts, custom_objects: Mapping[str, Any]) -> Self:
        from keraunos.learners.keras_archive import from_archive

        estimator = cls()
        if MODEL_FILE in parts.files:
            estimator.setParams(model=from_archive(parts.files[MODEL_FILE], custom_objects))
        return estimator


def _first_row(dataset: Any) -> Mapping[str, Any] | None:
    rows = dataset.head(1)
    return rows[0].asDict() if rows else None
