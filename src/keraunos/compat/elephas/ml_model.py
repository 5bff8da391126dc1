"""`ElephasEstimator` and `ElephasTransformer`: a Keras model as stages of a spark.ml pipeline. Runs on the driver."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from pyspark import SparkContext
from pyspark.ml import Estimator, Model
from pyspark.ml.util import MLReadable, MLWritable
from pyspark.sql import SparkSession

from keraunos.compat.elephas.ml import files, network, values
from keraunos.compat.elephas.ml.params import (
    HasBatchSize,
    HasCategoricalLabels,
    HasColumns,
    HasCustomObjects,
    HasElephasOptimizerConfig,
    HasEpochs,
    HasFitOptions,
    HasFrequency,
    HasInferenceBatchSize,
    HasKerasModelConfig,
    HasKerasOptimizerConfig,
    HasLoss,
    HasMetrics,
    HasMode,
    HasNumberOfClasses,
    HasNumberOfWorkers,
    HasPredictClasses,
    HasValidationSplit,
    HasVerbosity,
    Options,
)
from keraunos.compat.elephas.ml.stage_reader import StageReader
from keraunos.compat.elephas.ml.training import ElephasFitter, Reading
from keraunos.compat.elephas.translate import plan_of, workers_of
from keraunos.errors import JobError, ModelError
from keraunos.formats.keras_format import MODEL_FILE, KerasFormat
from keraunos.launch.session_trust import session_trust
from keraunos.ml.fit_plan import FitPlan
from keraunos.ml.keras.conversion import keras_model
from keraunos.ml.model import Trained
from keraunos.ml.persistence import Parts, PartsReader, PartsWriter
from keraunos.ml.references import from_references, to_references
from keraunos.ml.signature import Signature
from keraunos.session.registry import session_of
from keraunos.telemetry.history import History
from keraunos.trust import trusting


class _Stage(Options, MLReadable, MLWritable):  # type: ignore[misc]  # pyspark is used untyped
    """Base class of both stages: files of Elephas's format in addition to spark.ml's folders."""

    def write(self) -> PartsWriter:
        """Returns a writer that saves to any Hadoop path."""
        return PartsWriter(self)

    @classmethod
    def read(cls) -> PartsReader[Self]:
        """Returns a reader of what `write` saved, and of what Elephas's estimator did."""
        return StageReader(cls)

    def save(self, path: str, overwrite: bool | None = None, to_hadoop: bool = False) -> None:
        """Save to one `.h5` file, as Elephas does, or by any other name to a folder, as spark.ml does.

        A file is replaced unless `overwrite` is False; a folder only if it is True.
        """
        if not files.is_file(str(path)):
            writer = self.write()
            (writer.overwrite() if overwrite else writer).save(path)
            return
        parts, references = self._to_parts(), to_references(self.getCustomObjects())
        stage = files.Stage(type(self).__name__, self._set_values(), parts, references)
        files.save(stage, str(path), overwrite=overwrite is not False, to_hadoop=to_hadoop)

    def _set_values(self) -> dict[str, Any]:
        """Returns the Params that were set and that parts do not hold."""
        outside = (*self._OUTSIDE_OF_PARAMS, "callbacks", "listeners")
        return {param.name: value for param, value in self._paramMap.items() if param.name not in outside}

    @classmethod
    def _from_file(cls, path: str, custom_objects: Mapping[str, Any] | None, *, from_hadoop: bool) -> Self:
        """Returns the stage in a file of Keraunos or Elephas, or in a folder of spark.ml."""
        if not files.is_file(path) and not Path(path).is_file():
            loaded: Self = cls.load(path)
            return loaded.set_params(custom_objects=custom_objects)
        with trusting(*session_trust()):
            return cls._from_one_file(path, custom_objects, from_hadoop=from_hadoop)

    @classmethod
    def _from_one_file(cls, path: str, custom_objects: Mapping[str, Any] | None, *, from_hadoop: bool) -> Self:
        stage = files.load(path, cls.__name__, from_hadoop=from_hadoop)
        if stage.parts is None:
            return cls(**{**stage.config, "custom_objects": custom_objects})
        given = dict(custom_objects or {})
        named = {name: each for name, each in stage.references.items() if name not in given}
        custom = {**from_references(named), **given}
        made: Self = cls._from_parts(stage.parts, custom)
        # Not by `set_params`: with another architecture that takes the model apart.
        return made._set(**stage.config, **({"custom_objects": custom} if custom else {}))  # type: ignore[no-any-return]


class ElephasTransformer(
    Model,  # type: ignore[misc]  # pyspark is used untyped
    _Stage,
    HasKerasModelConfig,
    HasColumns,
    HasCustomObjects,
    HasInferenceBatchSize,
    HasPredictClasses,
):
    """A trained Keras model; adds its predictions to a DataFrame.

    Made by `ElephasEstimator.fit`, or from an architecture and its weights.

    Args:
        weights: the model's weights, as `model.get_weights()` returns them, for the model in `keras_model_config`.
        model_type: a `ModelType`: the prediction of a regression is a double, otherwise it is an array of doubles.
        history: what the training measured.
        params: any of the Params; `explainParams()` describes them.
    """

    _OUTSIDE_OF_PARAMS: ClassVar[tuple[str, ...]] = ("custom_objects",)

    def __init__(
        self,
        *,
        weights: Sequence[Any] | None = None,
        model_type: Any = None,
        history: Sequence[Any] = (),
        **params: Any,
    ) -> None:
        super().__init__()
        self._weights = [np.asarray(weight) for weight in weights] if weights else None
        self._given_type = model_type
        self._history = list(history)
        self._trained: Trained | None = None
        self._served: Any = None
        self._lock = threading.RLock()
        self.setParams(**params)

    @property
    def history(self) -> list[Any]:
        """The histories of all trainings: each a mapping from metric to its values, epoch by epoch."""
        return self._history

    @property
    def model_type(self) -> Any:
        """Whether the model is one of classification or of regression; `None` if its loss does not show it."""
        return self._given_type if self._trained is None else network.model_type_of(self._trained.head)

    @property
    def weights(self) -> list[Any]:
        """The model's weights; none where it was never given any."""
        if self._weights is None and self._trained is not None:
            return list(self._serving().model.get_weights())
        return self._weights or []

    def setParams(self, **params: Any) -> Self:
        """Set any of the Params by name; another architecture takes over the weights."""
        if params.get("keras_model_config") is not None and self._trained is not None:
            self._weights, self._given_type = self.weights, self.model_type
            self._trained = self._served = None
        return super().setParams(**params)

    def get_model(self) -> Any:
        """Returns the Keras model, with its weights where there are some."""
        if self._trained is None and self._weights is None:
            return network.model_of(self._architecture(), self.get_custom_objects())
        return self._serving().model

    def get_config(self) -> dict[str, Any]:
        """Returns the Params, the weights and the kind of the model, from which the constructor makes it again."""
        return {
            "keras_model_config": self.get_keras_model_config(),
            "labelCol": self.getLabelCol(),
            "featuresCol": self.getFeaturesCol(),
            "outputCol": self.getOutputCol(),
            "weights": [weight.tolist() for weight in self.weights],
            "model_type": self.model_type,
        }

    def holding(self, trained: Trained) -> Self:
        """Returns this transformer with a trained model."""
        self._trained, self._history = trained, [trained.history]
        return self

    def _transform(self, dataset: Any) -> Any:
        with self._lock:
            served = self._serving()
            for name, value in (
                ("featuresCol", self.getFeaturesCol()),
                ("customObjects", self.get_custom_objects()),
                ("inferenceBatchSize", self.get_inference_batch_size()),
            ):
                served.clear(served.getParam(name))
                served.setParams(**{name: value})
            served.rendering = network.rendering_of(
                self._made(), self.getOutputCol(), classes=self.get_predict_classes()
            )
            return served.transform(dataset)

    def _serving(self) -> Any:
        """Returns the model that predicts, which knows what is on its way to the workers already."""
        with self._lock:
            if self._served is None:
                self._served = network.Served(self._made()).setParams(customObjects=self.get_custom_objects())
            return self._served

    def _made(self) -> Trained:
        if self._trained is None:
            if self._weights is None:
                raise ModelError(
                    "A transformer must have weights before `transform`. Received: none. Fit an ElephasEstimator, or "
                    "give weights=model.get_weights() to ElephasTransformer."
                )
            self._trained = network.trained_from(
                self._architecture(), self._weights, self._given_type, self.get_custom_objects()
            )
        return self._trained

    def _architecture(self) -> Any:
        config = self.get_keras_model_config()
        if config is None:
            raise ModelError("`keras_model_config` must be set. Expected: model.to_json(). Received: None.")
        return config

    def _to_parts(self) -> Parts:
        facts: dict[str, Any] = {
            "history": [each.to_json() if isinstance(each, History) else each for each in self._history],
            "model_type": None if self.model_type is None else self.model_type.name,
            "trained": None,
        }
        if self._trained is None and self._weights is None:
            return Parts({}, facts)
        trained = self._made()
        return Parts({MODEL_FILE: trained.archive}, {**facts, "trained": trained.facts})

    @classmethod
    def _from_parts(cls, parts: Parts, custom_objects: Mapping[str, Any]) -> Self:
        from keraunos.learners.keras_archive import check_archive

        known = parts.facts["trained"]
        history = [History.from_json(each) if "epochs" in each else each for each in parts.facts["history"]]
        made = cls(model_type=network.model_type_of(parts.facts), history=history)
        if known is not None:
            only = next((each for each in history if isinstance(each, History)), History())
            signature = Signature.from_json(known["signature"])
            archive = parts.files[MODEL_FILE]
            told = {**known, "signature": signature, "trusted": check_archive(archive, custom_objects)}
            made._trained = Trained(**told, archive=archive, history=only)
        return made


class ElephasEstimator(
    Estimator,  # type: ignore[misc]  # pyspark is used untyped
    _Stage,
    HasKerasModelConfig,
    HasKerasOptimizerConfig,
    HasElephasOptimizerConfig,
    HasLoss,
    HasMetrics,
    HasMode,
    HasFrequency,
    HasNumberOfWorkers,
    HasEpochs,
    HasBatchSize,
    HasVerbosity,
    HasValidationSplit,
    HasCategoricalLabels,
    HasNumberOfClasses,
    HasCustomObjects,
    HasColumns,
    HasInferenceBatchSize,
    HasPredictClasses,
    HasFitOptions,
):
    """Trains a Keras model on a DataFrame; `explainParams()` describes every Param.

    Takes the forms of all releases: `ElephasEstimator(sc, model, nb_epoch=..., optimizer=..., ...)`, whose transformer
    predicts classes as doubles, and `ElephasEstimator(keras_model_config=model.to_json(), optimizer_config=...,
    loss=..., ...)`, whose transformer predicts arrays with all of the model's outputs.

    Args:
        arguments: a SparkContext, a compiled Keras model, or both. Training starts from the model's weights, and
            leaves the model as it is.
        options: any of the Params, or `sc` and `model`.
    """

    _OUTSIDE_OF_PARAMS: ClassVar[tuple[str, ...]] = ("custom_objects", "loss", "metrics")

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__()
        self._model: Any = None
        given = _by_name(arguments, options)
        if given.pop("sc", None) is not None or values.predicts_classes():
            given.setdefault("predict_classes", True)
        self.setParams(**given)

    def setParams(self, **params: Any) -> Self:
        """Set any of the Params by name, or the compiled `model`; `None` leaves one unchanged."""
        model = params.pop("model", None)
        if model is not None:
            self._model = keras_model("model")(model)
        return super().setParams(**params)

    def get_keras_model_config(self) -> Any:
        """Returns the model's architecture as JSON."""
        return self._model.to_json() if self._model is not None else super().get_keras_model_config()

    def get_optimizer_config(self) -> Any:
        """Returns the optimizer of each worker's steps."""
        if self._model is None:
            return super().get_optimizer_config()
        optimizer = self._model.optimizer
        return None if optimizer is None else values.optimizer_config(optimizer)

    def get_loss(self) -> Any:
        """Returns the loss."""
        return super().get_loss() if self._model is None else self._model.loss

    def get_model(self) -> Any:
        """Returns the model that was passed, or a new one of the architecture."""
        return self._model if self._model is not None else self._from_architecture()

    def getCustomObjects(self) -> dict[str, Any]:
        """Custom code by name, with the functions that loss and metrics are."""
        own = values.own_functions([super().get_loss(), super().get_metrics()])
        return {**own, **self.get_custom_objects()}

    def get_config(self) -> dict[str, Any]:
        """Returns the Params as plain data, from which the constructor makes the estimator again, without weights."""
        return {
            "keras_model_config": self.get_keras_model_config(),
            "optimizer_config": self.get_optimizer_config(),
            "elephas_optimizer_config": self.get_elephas_optimizer_config(),
            "mode": self.get_mode(),
            "frequency": self.get_frequency(),
            "num_workers": self.get_num_workers(),
            "categorical": self.get_categorical_labels(),
            "loss": values.to_plain(self.get_loss()),
            "metrics": values.to_plain(self.get_metrics()),
            "validation_split": self.get_validation_split(),
            "featuresCol": self.getFeaturesCol(),
            "labelCol": self.getLabelCol(),
            "epochs": self.get_epochs(),
            "batch_size": self.get_batch_size(),
            "verbose": self.get_verbosity(),
            "nb_classes": self.get_nb_classes(),
            "outputCol": self.getOutputCol(),
        }

    def plan_fit(self, dataset: Any, workers: int | None = None) -> FitPlan:
        """Returns the plan of `fit`, for a search; `workers` in place of `num_workers`."""
        plan = self._training(dataset).plan_fit(dataset, workers)
        return replace(plan, finish=lambda result: self._transformer(plan.finish(result)))

    def _fit(self, dataset: Any) -> ElephasTransformer:
        return self._transformer(self._training(dataset).fit(dataset))

    def _training(self, dataset: Any) -> ElephasFitter:
        """Returns everything that was set, as one of Keraunos's estimators."""
        slots = session_of(dataset).slots()
        asked = self.get_num_workers()
        reading = Reading(
            categorical=self.get_categorical_labels(),
            nb_classes=self.get_nb_classes() if self.isSet("nb_classes") else None,
            predict_classes=self.get_predict_classes(),
        )
        return ElephasFitter(
            reading,
            model=self._compiled(),
            featuresCol=self.getFeaturesCol(),
            labelCol=self.getLabelCol(),
            weightCol=self._get("weightCol"),
            epochs=self.get_epochs(),
            batchSize=self.get_batch_size(),
            validationSplit=self.get_validation_split(),
            classWeight=self._get("class_weight"),
            seed=self._get("seed"),
            callbacks=self._get("callbacks"),
            listeners=self._get("listeners"),
            verbose=self.get_verbosity(),
            customObjects=self.getCustomObjects(),
            exchange=plan_of(self.get_mode(), self.get_frequency(), self._server_optimizer()),
            # What was not asked for is not missed where there are fewer slots.
            numWorkers=workers_of(asked if self.isSet("num_workers") else min(asked, slots), None, slots),
        )

    def _compiled(self) -> Any:
        """Returns the model to train."""
        if self._model is None:
            return network.compiled(
                self._from_architecture(),
                super().get_optimizer_config(),
                super().get_loss(),
                self.get_metrics(),
                self.getCustomObjects(),
            )
        for name in ("keras_model_config", "optimizer_config", "loss", "metrics"):
            if self.isSet(name):
                raise JobError(
                    f"`{name}` must be left out with a compiled model, which has its own. Received: both. Compile the "
                    "model with the arguments for training."
                )
        return self._model

    def _from_architecture(self) -> Any:
        config = super().get_keras_model_config()
        if config is None:
            raise ModelError(
                "A model must be handed over before `fit`. Expected: ElephasEstimator(sc, model, ...), or "
                "keras_model_config=model.to_json(). Received: neither."
            )
        return network.model_of(config, self.getCustomObjects())

    def _server_optimizer(self) -> Any:
        config = self.get_elephas_optimizer_config()
        # Keras's own are kept as Keras describes them, Elephas's as Elephas does.
        return network.optimizer_of(config) if isinstance(config, Mapping) and "module" in config else config

    def _transformer(self, served: Any) -> ElephasTransformer:
        made = self._copyValues(ElephasTransformer()._resetUid(self.uid))
        custom = self.getCustomObjects()
        made.set_params(keras_model_config=self.get_keras_model_config(), custom_objects=custom or None)
        fitted: ElephasTransformer = made.holding(served.trained)
        return fitted

    def _to_parts(self) -> Parts:
        from keraunos.learners.keras_archive import to_archive

        if self._get("callbacks"):
            names = [type(each).__name__ for each in self._get("callbacks")]
            raise JobError(
                f"`callbacks` cannot be saved: they are live objects. Expected an estimator without any. Received: "
                f"{names!r}. Use estimator.clear(estimator.callbacks) and set them again after loading."
            )
        stored = {} if self._model is None else {MODEL_FILE: to_archive(self._model, self.getCustomObjects())}
        plain = {name: values.to_plain(self._get(name)) for name in ("loss", "metrics") if self.isSet(name)}
        return Parts(stored, plain)

    @classmethod
    def _from_parts(cls, parts: Parts, custom_objects: Mapping[str, Any]) -> Self:
        stored = parts.files.get(MODEL_FILE)
        model = None if stored is None else KerasFormat().read(stored, custom_objects)
        return cls(model=model, **parts.facts)


def load_ml_estimator(
    file_name: str, custom_objects: Mapping[str, Any] | None = None, from_hadoop: bool = False
) -> ElephasEstimator:
    """Returns the estimator in a file, or a folder, that `save`, of Keraunos or of Elephas, wrote."""
    return ElephasEstimator._from_file(str(file_name), custom_objects, from_hadoop=from_hadoop)


def load_ml_transformer(
    file_name: str, custom_objects: Mapping[str, Any] | None = None, from_hadoop: bool = False
) -> ElephasTransformer:
    """Returns the transformer in a file, or a folder, that `save`, of Keraunos or of Elephas, wrote."""
    return ElephasTransformer._from_file(str(file_name), custom_objects, from_hadoop=from_hadoop)


def _by_name(arguments: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a constructor's call by name: a SparkContext and a model may come without."""
    given = dict(options)
    if "master_network" in given:
        given["model"] = given.pop("master_network")
    rest = list(arguments)
    if rest and isinstance(rest[0], SparkContext | SparkSession):
        given["sc"] = rest.pop(0)
    if len(rest) > 1 or (rest and "model" in given):
        raise JobError(
            "ElephasEstimator takes a SparkContext and a Keras model without a name, and all else by name. Received: "
            f"{[type(each).__name__ for each in arguments]} and {sorted(options)}."
        )
    if rest:
        given["model"] = rest[0]
    return given
