"""What every estimator does: check, train on Spark, hand over a fitted model. Runs on the driver."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

from pyspark.ml import Estimator
from pyspark.ml.util import MLReadable, MLWritable
from pyspark.sql import functions as sf

from keraunos.errors import JobError
from keraunos.formats.registry import format_named
from keraunos.launch.rule_memory import RuleMemory
from keraunos.launch.spark import quoted
from keraunos.launch.training_result import TrainingResult
from keraunos.ml.class_balance import balanced_weights
from keraunos.ml.continuation import RuleState, rule_memory
from keraunos.ml.conversion import BALANCED
from keraunos.ml.datasets import check_dataset
from keraunos.ml.fit_plan import FitPlan
from keraunos.ml.live_models import LiveModels
from keraunos.ml.model import FittedModel, Trained
from keraunos.ml.padding import lengths_of
from keraunos.ml.persistence import Parts, PartsReader, PartsWriter
from keraunos.ml.preparation import Labels, Prepared, prepare
from keraunos.ml.references import tell_unsavable
from keraunos.ml.serving import is_case_sensitive
from keraunos.ml.signature import Signature
from keraunos.ml.training_params import TrainingParams
from keraunos.ml.validation_rows import with_validation
from keraunos.session.registry import session_of


class Fitter(Estimator, TrainingParams, MLReadable, MLWritable):  # type: ignore[misc]  # pyspark is used untyped
    """A model of any format as a spark.ml Estimator; a subclass has the Param `model` and names its live models."""

    live: ClassVar[LiveModels]
    """How models of this kind of estimator are checked and made ready."""

    @abstractmethod
    def getModel(self) -> Any:
        """The live model to train, or `None`."""

    def write(self) -> PartsWriter:
        """A writer that saves to any Hadoop path."""
        return PartsWriter(self)

    @classmethod
    def read(cls) -> PartsReader[Self]:
        """A reader of what `write` saved."""
        return PartsReader(cls)

    @abstractmethod
    def _check(self, model: Any, signature: Signature) -> None:
        """Raise where this kind of estimator cannot use the model."""

    @abstractmethod
    def _fitted(self, trained: Trained) -> FittedModel:
        """The fitted model of this kind."""

    def _head(self, model: Any, signature: Signature) -> Mapping[str, Any] | None:
        """What else the fitted model must remember of the compiled one."""
        return None

    def _warn(self, prepared: Prepared) -> None:
        """Say what may be trained, but will hardly be what was meant."""

    def _given_callbacks(self) -> Sequence[Any]:
        """Live objects that run on the driver while the model trains."""
        return ()

    def _unsaved(self) -> Mapping[str, Sequence[Any]]:
        """Live objects by Param, without which alone an estimator can be saved."""
        return {"listeners": self.getListeners()}

    def _encoded(self, model: Any, signature: Signature, labels: Labels) -> Labels:
        """What the labels become before a worker hands them to the model."""
        return labels

    def plan_fit(self, dataset: Any, workers: int | None = None) -> FitPlan:
        """What `fit` would do, for a search to run; `workers` in place of `numWorkers`."""
        check_dataset(dataset, "fit")
        case_sensitive = is_case_sensitive(dataset.sparkSession)
        prepared = prepare(
            self,
            dataset.schema,
            workers=session_of(dataset).slots(),
            first_row=lambda: _first_row(dataset),
            case_sensitive=case_sensitive,
            check=self._check,
            encode=self._encoded,
            longest=lambda columns: _longest([dataset, self.getValidationData()], columns),
        )
        tell_unsavable(prepared.custom_objects)
        if self.getPad():
            self.live.warn_of_padding(prepared.model)
        self._warn(prepared)
        memory = rule_memory(self, prepared.job)
        job = prepared.job if workers is None else replace(prepared.job, workers=workers)
        apart = self.getValidationData()
        if self.getClassWeight() == BALANCED:
            marked = job.columns.validation if apart is None else None
            weights = balanced_weights(dataset, job.columns.labels[0], marked)
            job = replace(job, schedule=replace(job.schedule, class_weight=weights))
        return FitPlan(
            job=job,
            rows=dataset
            if apart is None
            else with_validation(dataset, apart, job.columns, job.workers, case_sensitive=case_sensitive),
            finish=lambda result: self._model_of(prepared, result, memory),
            custom_objects=prepared.custom_objects,
            callbacks=self._given_callbacks(),
            listeners=self.getListeners(),
            checkpoints=self.checkpoints(),
            memory=memory,
        )

    def _fit(self, dataset: Any) -> FittedModel:
        from keraunos.launch import spark as launch

        plan = self.plan_fit(dataset)
        result = launch.fit(
            plan.job,
            plan.rows,
            custom_objects=plan.custom_objects,
            callbacks=plan.callbacks,
            listeners=plan.listeners,
            verbose=self.getVerbose(),
            checkpoints=plan.checkpoints,
            memory=plan.memory,
        )
        fitted: FittedModel = plan.finish(result)
        return fitted

    def _model_of(self, prepared: Prepared, result: TrainingResult, memory: RuleMemory | None = None) -> FittedModel:
        remembered = () if memory is None else tuple(memory.state)
        trained = Trained(
            archive=result.archive,
            history=result.history,
            signature=prepared.signature,
            backend=prepared.job.model.backend,
            floatx=prepared.job.model.floatx,
            trusted=prepared.job.model.trusted,
            head=self._head(prepared.model, prepared.signature),
            ranks=result.ranks,
            rule=RuleState(prepared.job.exchange.rule, remembered) if remembered else None,
            lengths=lengths_of(prepared.job.columns.features),
        )
        fitted = self._fitted(trained)._resetUid(self.uid)
        served: FittedModel = self._copyValues(fitted)
        return served.setParams(customObjects=prepared.custom_objects) if prepared.custom_objects else served

    def _to_parts(self) -> Parts:
        for param, live in self._unsaved().items():
            if live:
                names = [type(each).__name__ for each in live]
                raise JobError(
                    f"`{param}` cannot be saved: they are live objects. Expected an estimator without any. Received: "
                    f"{names!r}. Use estimator.clear(estimator.{param}) and set them again after loading."
                )
        if not isinstance(self.getInitialModel(), str | None):
            raise JobError(
                "`initialModel` cannot be saved with an estimator: it is a live object. Expected the path of a saved "
                f"model, or none. Received: {self.getInitialModel()!r}. Use estimator.clear(estimator.initialModel), "
                "or save the fitted model and set its path."
            )
        if self.getValidationData() is not None:
            raise JobError(
                "`validationData` cannot be saved: it is a live object. Expected an estimator without one. Received: "
                f"{self.getValidationData()!r}. Use estimator.clear(estimator.validationData) and set it again after "
                "loading."
            )
        model = self.getModel()
        if model is None:
            return Parts()
        kind = format_named(self.live.format)
        written = kind.write(model, self.getCustomObjects())
        return Parts({kind.file_name: written.archive}, custom_objects=written.code)

    @classmethod
    def _from_parts(cls, parts: Parts, custom_objects: Mapping[str, Any]) -> Self:
        kind = format_named(cls.live.format)
        estimator = cls()
        if kind.file_name in parts.files:
            estimator.setParams(model=kind.read(parts.files[kind.file_name], custom_objects))
        return estimator


def _longest(datasets: Sequence[Any], columns: Sequence[str]) -> Mapping[str, int | None]:
    """The length of the longest array in each of these columns, in all datasets that there are."""
    lengths = [sf.max(sf.size(sf.col(quoted(column)))) for column in columns]
    rows = [dataset.agg(*lengths).head() for dataset in datasets if dataset is not None]
    return {
        column: max((length for length in found if length is not None), default=None)
        for column, found in zip(columns, zip(*rows, strict=True), strict=True)
    }


def _first_row(dataset: Any) -> Mapping[str, Any] | None:
    rows = dataset.head(1)
    return rows[0].asDict() if rows else None
