"""The Params of Elephas's estimator and transformer, each as a mixin of Elephas's name. Runs on the driver.

Names, setters and defaults are those of Elephas. A value is checked when it is set, and one that was never set and has
no default reads as `None`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from copy import copy
from typing import Any, Self

from keraunos.compat.elephas import translate
from keraunos.compat.elephas.ml import values
from keraunos.errors import JobError
from keraunos.ml import conversion
from keraunos.ml.conversion import Columns
from keraunos.ml.declaration import bare_param, param, readable_param
from keraunos.ml.keras.conversion import callback_list
from keraunos.ml.params import HasFeaturesCol, Settings

# What a Param is called in other releases, or by keraunos.ml.
_OTHER_NAMES: Mapping[str, str] = {
    "customObjects": "custom_objects",
    "nb_epoch": "epochs",
    "optimizer": "elephas_optimizer_config",
}


class Options(Settings):
    """Params under the names of all releases."""

    @classmethod
    def _setter_argument(cls, name: str) -> str:
        return name

    def setParams(self, **params: Any) -> Self:
        """Set any of the Params by name; `None` leaves one unchanged."""
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
        """Set any of the Params by name; `None` leaves one unchanged."""
        return self.setParams(**params)


class HasKerasModelConfig(Options):
    """The model's architecture."""

    keras_model_config, get_keras_model_config, set_keras_model_config = param(
        "The model's architecture as JSON, as model.to_json() gives it.", values.model_config
    )


class HasKerasOptimizerConfig(Options):
    """The optimizer of each worker's steps."""

    optimizer_config, get_optimizer_config, set_optimizer_config = param(
        "The optimizer that each worker steps with, as keras.optimizers.serialize(optimizer) gives it, or its name.",
        values.optimizer_config,
    )


class HasElephasOptimizerConfig(Options):
    """The server's optimizer for updates."""

    elephas_optimizer_config, get_elephas_optimizer_config, set_elephas_optimizer_config = param(
        "The optimizer that turns workers' updates into new parameters, one of elephas.optimizers or its "
        "configuration; also called `optimizer`. Not set: updates are averaged or added.",
        values.server_config,
    )


class HasLoss(Options):
    """The loss."""

    loss, get_loss, set_loss = param("The loss: its name, one of Keras's, or a function of your own.", values.loss)


class HasMetrics(Options):
    """The metrics."""

    metrics, get_metrics, set_metrics = param(
        "What the training measures besides the loss, as Keras's compile takes it.", values.metrics, default=["acc"]
    )


class HasMode(Options):
    """How workers meet."""

    mode, get_mode, set_mode = param(
        "'synchronous': all workers wait for each other; 'asynchronous': each update is applied as it comes, one at a "
        "time; 'hogwild': the same without locks.",
        values.name_of("mode", translate.MODES),
        default="asynchronous",
    )


class HasFrequency(Options):
    """How often workers share."""

    frequency, get_frequency, set_frequency = param(
        "How often workers share what they learned: 'epoch' or 'batch'.",
        values.name_of("frequency", translate.FREQUENCIES),
        default="epoch",
    )


class HasNumberOfClasses(Options):
    """How many classes there are."""

    nb_classes, get_nb_classes, set_nb_classes = param(
        "How many classes labels are spread over with `categorical`. Not set: as many as the model has outputs.",
        conversion.whole_number("nb_classes", at_least=1),
        default=10,
    )


class HasCategoricalLabels(Options):
    """Whether labels are class numbers."""

    categorical, get_categorical_labels, set_categorical_labels = param(
        "Whether labels that are single numbers are class numbers, which the model sees one-hot where it has an output "
        "for each class. Labels that are arrays are taken as they are.",
        conversion.boolean("categorical"),
        default=True,
    )


class HasEpochs(Options):
    """How long a fit trains."""

    epochs, get_epochs, set_epochs = param(
        "How often the training passes over all rows; also called `nb_epoch`.",
        conversion.whole_number("epochs", at_least=1),
        default=10,
    )

    def set_nb_epoch(self, nb_epoch: int) -> Self:
        """Set how often the training passes over all rows, as before 0.4."""
        return self.set_epochs(nb_epoch)

    def get_nb_epoch(self) -> int:
        """How often the training passes over all rows, as before 0.4."""
        return self.get_epochs()


class HasBatchSize(Options):
    """The size of a step."""

    batch_size, get_batch_size, set_batch_size = param(
        "Rows per worker per step.", conversion.whole_number("batch_size", at_least=1), default=32
    )


class HasVerbosity(Options):
    """The display of a fit."""

    verbose, get_verbosity, set_verbosity = param(
        "What a fit shows: 0 nothing, 1 a progress bar, 2 a line for each epoch, 'auto' what suits the terminal.",
        conversion.verbosity("verbose"),
        default=0,
    )


class HasValidationSplit(Options):
    """Which rows are held out."""

    validation_split, get_validation_split, set_validation_split = param(
        "The fraction of the rows, chosen at random, to validate on instead of training on them.",
        conversion.fraction("validation_split"),
        default=0.1,
    )


class HasNumberOfWorkers(Options):
    """How many train together."""

    num_workers, get_num_workers, set_num_workers = param(
        "How many Spark tasks train together, at most as many as Spark can run at once.",
        conversion.whole_number("num_workers", at_least=1),
        default=8,
    )


class HasCustomObjects(Options):
    """Code of the model's own."""

    custom_objects, get_custom_objects, set_custom_objects = param(
        "Custom layers, activations, losses or metrics of the model, as a dict from name to class or function.",
        conversion.custom_objects("custom_objects"),
        default={},
        read=copy,
    )

    def getCustomObjects(self) -> dict[str, Any]:
        """Returns the same, as the writer of spark.ml's folders asks for it."""
        return self.get_custom_objects()


class HasInferenceBatchSize(Options):
    """In what portions a model predicts."""

    inference_batch_size, get_inference_batch_size, set_inference_batch_size = param(
        "Rows that `transform` gives to the model at once. Not set: 1024.",
        conversion.whole_number("inference_batch_size", at_least=1),
    )


class HasPredictClasses(Options):
    """The form of a classifier's prediction."""

    predict_classes, get_predict_classes, set_predict_classes = param(
        "Whether a classifier predicts the class, as a double, or all of the model's outputs, as an array. An "
        "estimator that was made with a SparkContext, as before 0.4, predicts the class.",
        conversion.boolean("predict_classes"),
        default=False,
    )


class HasColumns(Options, HasFeaturesCol):
    """Which columns are read, and which is added."""

    labelCol, getLabelCol = readable_param(
        "What the model should learn to give: a column of numbers, arrays or vectors; for a model with several "
        "outputs, a dict from output name to column.",
        conversion.columns("labelCol"),
        default="label",
    )
    outputCol, getOutputCol = readable_param(
        "The column that `transform` adds. A model with several outputs fills <outputCol>_<output name> for each, or "
        "what a dict from output name to column says.",
        conversion.output_columns("outputCol"),
        default="prediction",
    )

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
    """Arguments of Keras's `fit` that Elephas's estimator lacked."""

    callbacks = bare_param(
        "Keras callbacks with hooks of the training or of its epochs, such as EarlyStopping. They run on the driver.",
        callback_list("callbacks"),
    )
    listeners = bare_param(
        "Objects that are told on the driver what happens in a fit, such as keraunos.JsonlLog. They never disturb it.",
        conversion.listener_list("listeners"),
    )
    class_weight = bare_param(
        "A dict from class number to the factor on the weight of its rows, to balance rare classes.",
        conversion.class_weights("class_weight"),
    )
    weightCol = bare_param(
        "A column with the weight of each row in the loss and in weighted metrics. Not set: all rows weigh 1.",
        conversion.column_name("weightCol"),
    )
    seed = bare_param(
        "The random seed of the rows' order, of the validation split and of random layers such as dropout.",
        conversion.whole_number("seed"),
        default=0,
    )
