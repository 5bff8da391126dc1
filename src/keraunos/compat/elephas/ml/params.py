"""The Params of Elephas's estimator and transformer, each as a mixin of Elephas's name. Runs on the driver.

Names, setters and defaults are those of Elephas. A value is checked when it is set, and one that was never set and has
no default reads as `None`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from keraunos.compat.elephas import translate
from keraunos.compat.elephas.ml import values
from keraunos.errors import JobError
from keraunos.ml import conversion
from keraunos.ml.params import Columns, HasFeaturesCol, Settings, param

VERBOSITIES = ("auto", 0, 1, 2)

# What a Param is called in other releases, or by keraunos.ml.
_OTHER_NAMES: Mapping[str, str] = {
    "customObjects": "custom_objects",
    "nb_epoch": "epochs",
    "optimizer": "elephas_optimizer_config",
}


class Options(Settings):
    """Params under the names of all releases."""

    def setParams(self, **params: Any) -> Self:
        """Set any of the Params by name; `None` leaves one as it is."""
        named: dict[str, Any] = {}
        for name, value in params.items():
            today = _OTHER_NAMES.get(name, name)
            if today in named:
                raise JobError(f"`{today}` must be given once. Received: {named[today]!r} and {name}={value!r}.")
            named[today] = value
        # Before 0.4 there was one optimizer, the server's, under the name that is the workers' now.
        if values.is_servers(named.get("optimizer_config")) and named.get("elephas_optimizer_config") is None:
            named["elephas_optimizer_config"] = named.pop("optimizer_config")
        return super().setParams(**named)

    def set_params(self, **params: Any) -> Self:
        """Set any of the Params by name; `None` leaves one as it is."""
        return self.setParams(**params)


class HasKerasModelConfig(Options):
    """The model's architecture."""

    keras_model_config = param(
        "keras_model_config", "The model's architecture as JSON, as model.to_json() gives it.", values.model_config
    )

    def set_keras_model_config(self, keras_model_config: Any) -> Self:
        """Set the architecture."""
        return self.setParams(keras_model_config=keras_model_config)

    def get_keras_model_config(self) -> Any:
        """The architecture."""
        return self._get("keras_model_config")


class HasKerasOptimizerConfig(Options):
    """What each worker steps with."""

    optimizer_config = param(
        "optimizer_config",
        "The optimizer that each worker steps with, as keras.optimizers.serialize(optimizer) gives it, or its name.",
        values.optimizer_config,
    )

    def set_optimizer_config(self, optimizer_config: Any) -> Self:
        """Set what each worker steps with."""
        return self.setParams(optimizer_config=optimizer_config)

    def get_optimizer_config(self) -> Any:
        """What each worker steps with."""
        return self._get("optimizer_config")


class HasElephasOptimizerConfig(Options):
    """What the server does with an update."""

    elephas_optimizer_config = param(
        "elephas_optimizer_config",
        "The optimizer that turns workers' updates into new parameters, one of elephas.optimizers or its "
        "configuration; also called `optimizer`. Not set: updates are averaged or added.",
        values.server_config,
    )

    def set_elephas_optimizer_config(self, elephas_optimizer_config: Any) -> Self:
        """Set what the server does with an update."""
        return self.setParams(elephas_optimizer_config=elephas_optimizer_config)

    def get_elephas_optimizer_config(self) -> Any:
        """What the server does with an update."""
        return self._get("elephas_optimizer_config")


class HasLoss(Options):
    """What is minimized."""

    loss = param("loss", "The loss: its name, one of Keras's, or a function of your own.", values.loss)

    def set_loss(self, loss: Any) -> Self:
        """Set the loss."""
        return self.setParams(loss=loss)

    def get_loss(self) -> Any:
        """The loss."""
        return self._get("loss")


class HasMetrics(Options):
    """What is measured."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"metrics": ["acc"]}

    metrics = param(
        "metrics", "What the training measures besides the loss, as Keras's compile takes it.", values.metrics
    )

    def set_metrics(self, metrics: Any) -> Self:
        """Set what is measured."""
        return self.setParams(metrics=metrics)

    def get_metrics(self) -> Any:
        """What is measured."""
        return self._get("metrics")


class HasMode(Options):
    """How workers meet."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"mode": "asynchronous"}

    mode = param(
        "mode",
        "'synchronous': all workers wait for each other; 'asynchronous': each update is applied as it comes, one at a "
        "time; 'hogwild': the same without locks.",
        values.name_of("mode", translate.MODES),
    )

    def set_mode(self, mode: str) -> Self:
        """Set how workers meet."""
        return self.setParams(mode=mode)

    def get_mode(self) -> str:
        """How workers meet."""
        return str(self._get("mode"))


class HasFrequency(Options):
    """How often workers share."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"frequency": "epoch"}

    frequency = param(
        "frequency",
        "How often workers share what they learned: 'epoch' or 'batch'.",
        values.name_of("frequency", translate.FREQUENCIES),
    )

    def set_frequency(self, frequency: str) -> Self:
        """Set how often workers share."""
        return self.setParams(frequency=frequency)

    def get_frequency(self) -> str:
        """How often workers share."""
        return str(self._get("frequency"))


class HasNumberOfClasses(Options):
    """How many classes there are."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"nb_classes": 10}

    nb_classes = param(
        "nb_classes",
        "How many classes labels are spread over with `categorical`. Not set: as many as the model has outputs.",
        conversion.whole_number("nb_classes", at_least=1),
    )

    def set_nb_classes(self, nb_classes: int) -> Self:
        """Set how many classes there are."""
        return self.setParams(nb_classes=nb_classes)

    def get_nb_classes(self) -> int:
        """How many classes there are."""
        return int(self._get("nb_classes"))


class HasCategoricalLabels(Options):
    """Whether labels are class numbers."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"categorical": True}

    categorical = param(
        "categorical",
        "Whether labels that are single numbers are class numbers, which the model sees one-hot where it has an output "
        "for each class. Labels that are arrays are taken as they are.",
        conversion.boolean("categorical"),
    )

    def set_categorical_labels(self, categorical: bool) -> Self:
        """Set whether labels are class numbers."""
        return self.setParams(categorical=categorical)

    def get_categorical_labels(self) -> bool:
        """Whether labels are class numbers."""
        return bool(self._get("categorical"))


class HasEpochs(Options):
    """How long a fit trains."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"epochs": 10}

    epochs = param(
        "epochs",
        "How often the training passes over all rows; also called `nb_epoch`.",
        conversion.whole_number("epochs", at_least=1),
    )

    def set_epochs(self, epochs: int) -> Self:
        """Set how often the training passes over all rows."""
        return self.setParams(epochs=epochs)

    def get_epochs(self) -> int:
        """How often the training passes over all rows."""
        return int(self._get("epochs"))

    def set_nb_epoch(self, nb_epoch: int) -> Self:
        """Set how often the training passes over all rows, as before 0.4."""
        return self.set_epochs(nb_epoch)

    def get_nb_epoch(self) -> int:
        """How often the training passes over all rows, as before 0.4."""
        return self.get_epochs()


class HasBatchSize(Options):
    """What a step is."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"batch_size": 32}

    batch_size = param("batch_size", "Rows per worker per step.", conversion.whole_number("batch_size", at_least=1))

    def set_batch_size(self, batch_size: int) -> Self:
        """Set the rows per worker per step."""
        return self.setParams(batch_size=batch_size)

    def get_batch_size(self) -> int:
        """Rows per worker per step."""
        return int(self._get("batch_size"))


class HasVerbosity(Options):
    """What a fit shows."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"verbose": 0}

    verbose = param(
        "verbose",
        "What a fit shows: 0 nothing, 1 a progress bar, 2 a line for each epoch, 'auto' what suits the terminal.",
        conversion.choice("verbose", VERBOSITIES),
    )

    def set_verbosity(self, verbose: int | str) -> Self:
        """Set what a fit shows."""
        return self.setParams(verbose=verbose)

    def get_verbosity(self) -> int | str:
        """What a fit shows."""
        value: int | str = self._get("verbose")
        return value


class HasValidationSplit(Options):
    """Which rows are held out."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"validation_split": 0.1}

    validation_split = param(
        "validation_split",
        "The fraction of the rows, chosen at random, to validate on instead of training on them.",
        conversion.fraction("validation_split"),
    )

    def set_validation_split(self, validation_split: float) -> Self:
        """Set the fraction of the rows to validate on."""
        return self.setParams(validation_split=validation_split)

    def get_validation_split(self) -> float:
        """The fraction of the rows to validate on."""
        return float(self._get("validation_split"))


class HasNumberOfWorkers(Options):
    """How many train together."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_workers": 8}

    num_workers = param(
        "num_workers",
        "How many Spark tasks train together, at most as many as Spark can run at once.",
        conversion.whole_number("num_workers", at_least=1),
    )

    def set_num_workers(self, num_workers: int) -> Self:
        """Set how many Spark tasks train together."""
        return self.setParams(num_workers=num_workers)

    def get_num_workers(self) -> int:
        """How many Spark tasks train together."""
        return int(self._get("num_workers"))


class HasCustomObjects(Options):
    """Code of the model's own."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"custom_objects": {}}

    custom_objects = param(
        "custom_objects",
        "Custom layers, activations, losses or metrics of the model, as a dict from name to class or function.",
        conversion.custom_objects("custom_objects"),
    )

    def set_custom_objects(self, custom_objects: Mapping[str, Any]) -> Self:
        """Set the custom classes and functions of the model, by name."""
        return self.setParams(custom_objects=custom_objects)

    def get_custom_objects(self) -> dict[str, Any]:
        """The custom classes and functions of the model, by name."""
        return dict(self._get("custom_objects"))

    def getCustomObjects(self) -> dict[str, Any]:
        """The same, as the writer of spark.ml's folders asks for it."""
        return self.get_custom_objects()


class HasInferenceBatchSize(Options):
    """In what portions a model predicts."""

    inference_batch_size = param(
        "inference_batch_size",
        "Rows that `transform` gives to the model at once. Not set: 1024.",
        conversion.whole_number("inference_batch_size", at_least=1),
    )

    def set_inference_batch_size(self, inference_batch_size: int) -> Self:
        """Set the rows that `transform` gives to the model at once."""
        return self.setParams(inference_batch_size=inference_batch_size)

    def get_inference_batch_size(self) -> int | None:
        """Rows that `transform` gives to the model at once."""
        value = self._get("inference_batch_size")
        return None if value is None else int(value)


class HasPredictClasses(Options):
    """What a classifier's prediction is."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"predict_classes": False}

    predict_classes = param(
        "predict_classes",
        "Whether a classifier predicts the class, as a double, or all of the model's outputs, as an array. An "
        "estimator that was made with a SparkContext, as before 0.4, predicts the class.",
        conversion.boolean("predict_classes"),
    )

    def set_predict_classes(self, predict_classes: bool) -> Self:
        """Set whether a classifier predicts the class."""
        return self.setParams(predict_classes=predict_classes)

    def get_predict_classes(self) -> bool:
        """Whether a classifier predicts the class."""
        return bool(self._get("predict_classes"))


class HasColumns(Options, HasFeaturesCol):
    """Which columns are read, and which is added."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"labelCol": "label", "outputCol": "prediction"}

    labelCol = param(
        "labelCol",
        "What the model should learn to give: a column of numbers, arrays or vectors; for a model with several "
        "outputs, a dict from output name to column.",
        conversion.columns("labelCol"),
    )
    outputCol = param(
        "outputCol",
        "The column that `transform` adds. A model with several outputs fills <outputCol>_<output name> for each, or "
        "what a dict from output name to column says.",
        conversion.output_columns("outputCol"),
    )

    def getLabelCol(self) -> Columns:
        """The column that the model learns."""
        value: Columns = self._get("labelCol")
        return value

    def getOutputCol(self) -> str | dict[str, str]:
        """The column that `transform` adds."""
        value: str | dict[str, str] = self._get("outputCol")
        return value

    def setFeaturesCol(self, value: Columns) -> Self:
        """Set the column that the model reads; better given to the constructor."""
        return self._set_late("featuresCol", value)

    def setLabelCol(self, value: Columns) -> Self:
        """Set the column that the model learns; better given to the constructor."""
        return self._set_late("labelCol", value)

    def setOutputCol(self, value: str | Mapping[str, str]) -> Self:
        """Set the column that `transform` adds; better given to the constructor."""
        return self._set_late("outputCol", value)

    def _set_late(self, name: str, value: Any) -> Self:
        setter = f"set{name[0].upper()}{name[1:]}"
        warnings.warn(
            f"{setter} is deprecated: give {name}={value!r} to {type(self).__name__}, or to set_params.",
            DeprecationWarning,
            stacklevel=3,
        )
        return self.setParams(**{name: value})


class HasFitOptions(Options):
    """What Elephas's estimator lacked and Keras's `fit` has."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"seed": 0}

    callbacks = param(
        "callbacks",
        "Keras callbacks with hooks of the training or of its epochs, such as EarlyStopping. They run on the driver.",
        conversion.callback_list("callbacks"),
    )
    class_weight = param(
        "class_weight",
        "A dict from class number to the factor on the weight of its rows, to balance rare classes.",
        conversion.class_weights("class_weight"),
    )
    weightCol = param(
        "weightCol",
        "A column with the weight of each row in the loss and in weighted metrics. Not set: all rows weigh 1.",
        conversion.column_name("weightCol"),
    )
    seed = param(
        "seed",
        "The random seed of the rows' order, of the validation split and of random layers such as dropout.",
        conversion.whole_number("seed"),
    )
