"""`Paddle()`: a Paddle configuration as a spark.ml Estimator. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any, Self

import keras
import numpy as np
from pyspark.ml import Estimator
from pyspark.ml.util import MLReadable, MLWritable
from pyspark.sql import SparkSession

from keraunos.compat.paddle import data_columns
from keraunos.compat.paddle.data_columns import Sources
from keraunos.compat.paddle.lowering.data_kinds import KINDS, DataKind
from keraunos.compat.paddle.lowering.keras_layers import PaddleLayer, PaddleParameter, Reported, SummedCost
from keraunos.compat.paddle.lowering.network import LoweredNetwork, lower
from keraunos.compat.paddle.model_config import LayerConfig, ModelConfig, TrainerConfig, keras_name
from keraunos.compat.paddle.parameter_files import load_parameters, save_parameters
from keraunos.compat.paddle.updates.plan import needs_samples_per_pass, optimizer_of, plan_of
from keraunos.errors import JobError, one_of
from keraunos.job.columns import Columns
from keraunos.job.model_formats import KERAS
from keraunos.job.schedule import Schedule
from keraunos.job.training_job import ModelSource, TrainingJob
from keraunos.launch.training_result import TrainingResult
from keraunos.ml import conversion
from keraunos.ml.declaration import param, writable_param
from keraunos.ml.fit_plan import FitPlan
from keraunos.ml.heads import Head
from keraunos.ml.keras.signature import signature_of
from keraunos.ml.model import FittedModel, Trained
from keraunos.ml.params import HasPredictionCol, HasProbabilityCol, HasServing, Settings
from keraunos.ml.persistence import Parts, PartsReader, PartsWriter
from keraunos.ml.rendering import ArrayColumns, ClassColumns, NumberColumn, Rendering

# Costs of a prediction that is one probability per class.
_CLASSIFYING = frozenset({"multi-class-cross-entropy", "multi_class_cross_entropy_with_selfnorm"})


def trainer_config(value: Any) -> str:
    """Returns a configuration as text, which is what a Param can hold."""
    if isinstance(value, TrainerConfig):
        return value.to_json()
    if isinstance(value, str):
        try:
            return TrainerConfig.from_json(value).to_json()
        except (ValueError, KeyError, TypeError):
            pass
    raise TypeError(
        f"`config` must be what parse_config(configs, '') gives. Received: {type(value).__name__}. Pass the function "
        "of the configuration through parse_config first."
    )


def _names(name: str, known: tuple[str, ...] | None = None) -> conversion.Converter[Mapping[str, str], dict[str, str]]:
    def convert(value: Mapping[str, str]) -> dict[str, str]:
        plain = isinstance(value, Mapping) and all(isinstance(each, str) for pair in value.items() for each in pair)
        if not plain:
            raise TypeError(f"`{name}` must be a dict from data layer to text. Received: {value!r}.")
        for each in value.values():
            if known is not None and each not in known:
                raise JobError(one_of(name, each, known))
        return dict(value)

    return convert


def _path(value: str) -> str:
    if isinstance(value, str) and value:
        return value
    raise TypeError(f"`initModelPath` must be the path of a folder. Received: {value!r}.")


class HasPaddleColumns(HasServing, HasPredictionCol, HasProbabilityCol):
    """The columns that a configuration's data layers read."""

    inputCols, getInputCols, setInputCols = param(
        "For configurations with more data layers than one for features and one for labels: a dict from data layer to "
        "column. A layer that it leaves out reads the column of its own name.",
        _names("inputCols"),
        empty={},
        read=copy,
    )
    inputTypes, getInputTypes, setInputTypes = param(
        "What a data layer takes, where neither the network nor its column tells: a dict from data layer to one of "
        f"{', '.join(KINDS)}.",
        _names("inputTypes", KINDS),
        empty={},
        read=copy,
    )

    def _given_columns(self) -> tuple[dict[str, str], str]:
        """Returns the columns that were given by layer, and the one for a single layer of features."""
        features = self.getFeaturesCol()
        if isinstance(features, Mapping):
            return {**self.getInputCols(), **{name: str(column) for name, column in features.items()}}, ""
        return self.getInputCols(), str(features)


class HasTraining(Settings):
    """The command line options of Paddle's trainer."""

    config, setConfig = writable_param("The configuration, as parse_config gives it.", trainer_config)
    labelCol, getLabelCol, setLabelCol = param(
        "The column of the data layer that the cost compares with.", conversion.column_name("labelCol"), default="label"
    )
    trainerNum, getTrainerNum, setTrainerNum = param(
        "How many trainers there are: tasks of the cluster, each with batches of its own.",
        conversion.whole_number("trainerNum", at_least=1),
        default=1,
    )
    pServerNum, getPServerNum, setPServerNum = param(
        "How many parameter servers there are: tasks of the cluster, each with its part of the parameters. 0: the "
        "driver has them.",
        conversion.whole_number("pServerNum", at_least=0),
        default=0,
    )
    numPasses, getNumPasses, setNumPasses = param(
        "How often all rows are trained on.", conversion.whole_number("numPasses", at_least=1), default=100
    )
    seed, getSeed, setSeed = param("What random numbers are drawn from.", conversion.whole_number("seed"), default=1)
    initModelPath, getInitModelPath, setInitModelPath = param(
        "A folder of Paddle's parameter files to start from, on any Hadoop file system; instead of init_model_path of "
        "the configuration.",
        _path,
    )
    listeners, getListeners, setListeners = param(
        "Objects that are told on the driver what happens in a fit, such as keraunos.JsonlLog. They never disturb it.",
        conversion.listener_list("listeners"),
        empty=[],
        read=copy,
    )
    verbose, getVerbose, setVerbose = param(
        "Progress: 'auto', 0 for none, 1 for a bar, 2 for a line a pass.",
        conversion.verbosity("verbose"),
        default="auto",
    )

    def getConfig(self) -> TrainerConfig:
        """Returns the configuration."""
        text = self._get("config")
        if text is None:
            raise JobError(
                "Paddle must have a configuration. Received: none. Call setConfig(parse_config(configs, ''))."
            )
        return TrainerConfig.from_json(text)

    def setCluster(self, trainerNum: int | None = None, pServerNum: int | None = None) -> Self:
        """Set how many trainers and parameter servers run as tasks of the cluster."""
        return self.setParams(trainerNum=trainerNum, pServerNum=pServerNum)


class PaddleModel(FittedModel, HasPaddleColumns):
    """A trained Paddle network; `transform` adds a class and its probabilities, or other outputs of the network."""

    format = KERAS

    @property
    def config(self) -> TrainerConfig:
        """The configuration that was trained."""
        return TrainerConfig.from_json(self._facts["config"])

    def parameters(self) -> dict[str, Any]:
        """Returns the values of the network's parameters by their Paddle names, in Paddle's layout."""
        return parameter_values(self.model)

    def saveParameters(self, path: str) -> None:
        """Write the parameters as Paddle's own files, one a parameter, to a folder on any Hadoop file system."""
        save_parameters(path, self.parameters(), spark=SparkSession.builder.getOrCreate())

    @property
    def _facts(self) -> Mapping[str, Any]:
        assert self._trained.head is not None
        return self._trained.head

    def _transform(self, dataset: Any) -> Any:
        model = self.config.model_config
        names = [name for name in data_columns.feature_layers(model) if name in self._facts["kinds"]]
        data_columns.pixels_of(self.getPixels())
        given, alone = self._given_columns()
        columns = data_columns.columns_of(model, names, given, alone, "featuresCol", dataset.schema)
        kinds = {name: DataKind(kind, image and tuple(image)) for name, (kind, image) in self._facts["kinds"].items()}
        layers = layers_of(model)
        ready, inputs = data_columns.readied(
            dataset, Sources(columns, kinds, data_columns.known_numbers(model)), layers
        )
        by_input = {keras_name(name): column for name, column in inputs.items()}
        served = self.copy({self.featuresCol: by_input if len(by_input) > 1 else next(iter(by_input.values()))})
        added = super(PaddleModel, served)._transform(ready)
        return added.drop(*(name for name in ready.columns if name not in dataset.columns))

    def _rendering(self) -> Rendering:
        ports = self._trained.signature.outputs
        shape = ports[0].shape
        if self._facts["classifies"] and len(shape) == 1 and shape[0] is not None:
            return ClassColumns(Head(shape[0], logits=False), self.getPredictionCol(), self.getProbabilityCol(), "")
        if shape in ((), (1,)):
            return NumberColumn(self.getPredictionCol())
        return ArrayColumns((replace(ports[0], dtype="float64"),), (self.getPredictionCol() or None,))


class Paddle(Estimator, HasPaddleColumns, HasTraining, MLReadable, MLWritable):  # type: ignore[misc]  # pyspark is untyped
    """Trains a Paddle configuration on a DataFrame; `explainParams()` describes every Param."""

    def __init__(self, **params: Any) -> None:
        super().__init__()
        self.setParams(**params)

    def write(self) -> PartsWriter:
        """Returns a writer that saves to any Hadoop path."""
        return PartsWriter(self)

    @classmethod
    def read(cls) -> PartsReader[Self]:
        """Returns a reader of what `write` saved."""
        return PartsReader(cls)

    def plan_fit(self, dataset: Any, workers: int | None = None) -> FitPlan:
        """Returns the plan of `fit`, for a search; `workers` in place of `trainerNum`."""
        config, trainers = self.getConfig(), workers or self.getTrainerNum()
        sources = self._sources(config.model_config, dataset.schema)
        layers = layers_of(config.model_config)
        ready, inputs = data_columns.readied(dataset, sources, layers)
        network = LoweredNetwork(config.model_config, sources.kinds, self.getSeed())
        samples = self._samples_per_pass(config, dataset)
        trainer = compiled(network, config, trainers, samples)
        self._start(trainer, config)
        asked = {id(tensor) for tensor in trainer.inputs}
        pixels = data_columns.pixels_of(self.getPixels())
        slots = [
            replace(slot, name=keras_name(str(slot.name)))
            for slot in data_columns.slots_of(sources, inputs, layers, pixels)
            if id(network.inputs[str(slot.name)]) in asked
        ]
        target = next((slot for slot in reversed(slots) if slot.shape == ()), slots[-1])
        job = TrainingJob(
            model=self._source(trainer),
            columns=Columns(features=tuple(slots), labels=(replace(target, name=None),)),
            schedule=Schedule(epochs=self.getNumPasses(), batch_size=config.opt_config.batch_size, seed=self.getSeed()),
            exchange=plan_of(
                config.opt_config,
                config.model_config.parameters,
                trainers,
                samples_per_pass=samples,
            ),
            workers=trainers,
            servers=self.getPServerNum() or "driver",
        )
        return FitPlan(job, ready, lambda result: self._finished(result, network, trainer))

    def _fit(self, dataset: Any) -> PaddleModel:
        from keraunos.launch import spark as launch

        plan = self.plan_fit(dataset)
        listeners = self.getListeners()
        result = launch.fit(plan.job, plan.rows, listeners=listeners, verbose=self.getVerbose())
        fitted: PaddleModel = plan.finish(result)
        return fitted

    def _sources(self, model: ModelConfig, schema: Any) -> Sources:
        given, alone = self._given_columns()
        labels, others = data_columns.label_layers(model), data_columns.feature_layers(model)
        columns = data_columns.columns_of(model, others, given, alone, "featuresCol", schema)
        columns |= data_columns.columns_of(model, labels, given, self.getLabelCol(), "labelCol", schema)
        return data_columns.sources_of(model, columns, schema, self.getInputTypes())

    def _samples_per_pass(self, config: TrainerConfig, dataset: Any) -> int | None:
        needed = needs_samples_per_pass(config.opt_config, config.model_config.parameters)
        return int(dataset.count()) if needed else None

    def _start(self, trainer: Any, config: TrainerConfig) -> None:
        path = self.getInitModelPath() or config.init_model_path
        if path:
            like = parameter_values(trainer)
            loaded = load_parameters(path, like, spark=SparkSession.builder.getOrCreate())
            write_parameters(trainer, loaded)

    def _source(self, trainer: Any) -> ModelSource:
        from keraunos.learners.keras_archive import live_source

        return live_source(trainer, backend=self.getBackend())

    def _finished(self, result: TrainingResult, network: LoweredNetwork, trainer: Any) -> PaddleModel:
        from keraunos.learners.keras_archive import from_archive, to_archive
        from keraunos.learners.keras_variables import write_vector

        if result.parameters is not None:
            write_vector(trainer, result.parameters)
        else:
            # It has this package's own layers only.
            write_parameters(trainer, parameter_values(from_archive(result.archive)))
        predictor = network.predictor()
        config = self.getConfig()
        costs = [config.model_config.layer(name).type for name in config.model_config.output_layer_names]
        needed = {id(tensor) for tensor in predictor.inputs}
        trained = Trained(
            archive=to_archive(predictor),
            history=result.history,
            signature=signature_of(predictor),
            backend=self.getBackend() or keras.config.backend(),
            floatx=keras.config.floatx(),
            head={
                "config": config.to_json(),
                "kinds": {
                    name: [kind.name, kind.image]
                    for name, kind in network.kinds.items()
                    if id(network.inputs[name]) in needed
                },
                "classifies": costs[0] in _CLASSIFYING,
            },
        )
        fitted = PaddleModel(trained)._resetUid(self.uid)
        return self._copyValues(fitted)  # type: ignore[no-any-return]  # spark.ml's own copying

    def _to_parts(self) -> Parts:
        return Parts()

    @classmethod
    def _from_parts(cls, parts: Parts, custom_objects: Mapping[str, Any]) -> Self:  # noqa: ARG003 - as others do
        return cls()


def keras_models(
    config: TrainerConfig, kinds: Mapping[str, str] | None = None, *, trainers: int = 1, seed: int = 1
) -> tuple[Any, Any]:
    """The Keras models of a configuration: the one to train, compiled, and the one that predicts; they share weights.

    `kinds` gives the types of data layers that do not follow from the network, as in Paddle's data providers.
    """
    network = lower(config.model_config, {name: DataKind(kind) for name, kind in (kinds or {}).items()}, seed)
    return compiled(network, config, trainers, None), network.predictor()


def compiled(network: LoweredNetwork, config: TrainerConfig, trainers: int, samples_per_pass: int | None) -> Any:
    """Returns the model to train, with Paddle's own way to step."""
    trainer = network.trainer()
    names = ["cost", *network.evaluators]
    trainer.compile(
        optimizer=optimizer_of(
            config.opt_config, config.model_config.parameters, trainers, samples_per_pass=samples_per_pass
        ),
        loss=SummedCost(),
        metrics=[Reported(at, name) for at, name in enumerate(names)],
    )
    return trainer


def layers_of(model: ModelConfig) -> dict[str, LayerConfig]:
    """Returns the data layers by name."""
    return {layer.name: layer for layer in model.layers if layer.type == "data"}


def parameter_values(model: Any) -> dict[str, Any]:
    """Returns the parameters of a lowered model by their Paddle names."""
    return {name: np.array(keras.ops.convert_to_numpy(each.value)) for name, each in _parameters(model).items()}


def write_parameters(model: Any, values: Mapping[str, Any]) -> None:
    """Set the parameters of a lowered model by their Paddle names."""
    for name, variable in _parameters(model).items():
        variable.assign(values[name])


def _parameters(model: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for layer in model.layers:
        if isinstance(layer, PaddleLayer | PaddleParameter):
            found |= layer.variables_by_parameter()
    return found
