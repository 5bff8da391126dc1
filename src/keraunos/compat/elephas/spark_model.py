"""`SparkModel` and its kin: a Keras model that is trained, asked and measured on RDDs. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pyspark import RDD
from pyspark.mllib.linalg import Matrix, Vector

from keraunos.compat.elephas import constructor, model_files, rows, training
from keraunos.compat.elephas.constructor import ConstructorSettings
from keraunos.compat.elephas.mllib.adapter import from_matrix, from_vector
from keraunos.compat.elephas.translate import fit_options, plan_of
from keraunos.compat.run_unchanged import era
from keraunos.errors import DataError, JobError, ModelError, one_of
from keraunos.launch.rule_memory import RuleMemory
from keraunos.session.registry import session_of, started_session
from keraunos.session.session import Session

_MEASURED_TOGETHER = 32


class SparkModel:
    """A compiled Keras model on Spark.

    Takes the arguments of every release: `SparkModel(sc, model, optimizer=None, mode='asynchronous',
    frequency='epoch', num_workers=4)` and `SparkModel(model, mode=..., frequency=..., parameter_server_mode='http',
    num_workers=None, custom_objects=None, batch_size=32, port=4000)`, where the mode is 'synchronous' unless given.

    Args:
        sc: a SparkContext, in programs for Elephas before 0.4.
        model: the compiled Keras model; training starts from its weights, and it has the trained ones afterwards.
        optimizer: what the servers do with an update, as in `elephas.optimizers`, or any optimizer of Keras. Without
            one, updates are averaged or added.
        mode: 'synchronous', 'asynchronous' or 'hogwild'.
        frequency: 'epoch' or 'batch', how often workers share what they learned.
        parameter_server_mode: 'http' or 'socket'; there is one kind of server here, whichever is asked for.
        num_workers: how many tasks train; by default one for each partition of the RDD.
        custom_objects: custom layers and functions of the model that workers cannot import, by name.
        batch_size: rows per step, unless given to `fit`.
        port: the driver's port that the servers listen on; by default any that is free.
        master_optimizer, master_loss, master_metrics: what to compile the model with, in programs of 2016 and 2017;
            with a SparkContext, a model that is not compiled is compiled with 'adam', 'categorical_crossentropy' and
            ['accuracy'] where these are left out.
    """

    _DEFAULT_MODE: ClassVar[str] = "synchronous"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        settings = constructor.settings_of(type(self).__name__, arguments, options, self._DEFAULT_MODE)
        self._settings = settings
        self._plan = plan_of(settings.mode, settings.frequency, settings.optimizer)
        training.check_compiled(settings.model)
        self._memory = RuleMemory()
        self._histories: list[dict[str, list[float]]] = []

    @property
    def master_network(self) -> Any:
        """The Keras model on the driver."""
        return self._settings.model

    @master_network.setter
    def master_network(self, network: Any) -> None:
        training.check_compiled(network)
        self._settings = self._settings.with_model(network)
        self._memory = RuleMemory()

    def get_network(self) -> Any:
        """Returns the Keras model on the driver, as it was asked for in 2015."""
        return self.master_network

    def set_network(self, network: Any) -> None:
        """Take another compiled model."""
        self.master_network = network

    @property
    def training_histories(self) -> list[dict[str, list[float]]]:
        """For each `fit` the loss and the metrics of each epoch, over all workers' rows."""
        return self._histories

    def fit(self, rdd: RDD[Any], **arguments: Any) -> Any:
        """Train on an RDD of (features, label); the history of the training.

        Args:
            rdd: elements (features, label), or with `sample_weight=True` (features, label, weight).
            arguments: `epochs` (10; also `nb_epoch`), `batch_size`, `verbose` (0), `validation_split` (0),
                `validation_data` (arrays or an RDD), `callbacks` (of Keras, run on the driver at the ends of epochs),
                `listeners` (receive the events), `class_weight`, `sample_weight`, `shuffle` (True), `seed` (0), and
                `num_workers` in place of the constructor's.
        """
        return self._fit(rdd, arguments)

    def train(
        self,
        rdd: RDD[Any],
        nb_epoch: int = 10,
        batch_size: int = 32,
        verbose: int = 0,
        validation_split: float = 0.1,
        num_workers: int | None = None,
        **arguments: Any,
    ) -> Any:
        """`fit` as it was called before 0.4, with a tenth of the rows to validate on."""
        named = {
            "epochs": arguments.pop("epochs", nb_epoch),
            "batch_size": batch_size,
            "verbose": verbose,
            "validation_split": 0.0 if "validation_data" in arguments else validation_split,
            "num_workers": num_workers,
        }
        return self.fit(rdd, **named, **arguments)

    def predict(self, data: Any) -> list[Any]:
        """Returns the model's output for each row of an array, or of an RDD of features, in their order."""
        return training.predict(self._network, data, _session(data))

    def predict_classes(self, data: Any) -> list[int]:
        """Returns the class with the largest output for each row, as in releases up to 1.0."""
        import numpy as np

        found = self.predict(data)
        return [int(np.argmax(row)) if np.size(row) > 1 else int(np.ravel(row)[0] > 0.5) for row in found]

    def evaluate(self, x_test: Any, y_test: Any = None, **arguments: Any) -> Any:
        """Returns the loss, with the metrics behind it where the model has some, over arrays or over an RDD.

        Args:
            x_test: features as an array, or an RDD of elements as `fit` takes them.
            y_test: labels, with an array.
            arguments: `batch_size` (32), `sample_weight` (an array, one per row) and `verbose`, as in Keras.
        """
        return self._evaluate(x_test, y_test, arguments, None)

    def save(self, file_name: str, overwrite: bool = False, to_hadoop: bool = False) -> None:
        """Write the model and how it is trained to a `.keras` or `.h5` file, on any file system with `to_hadoop`."""
        model_files.save(self.master_network, self._described(), file_name, overwrite=overwrite, to_hadoop=to_hadoop)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments but the model, as `save` writes them."""
        return self._settings.to_config()

    def _described(self) -> dict[str, Any]:
        return {"class_name": type(self).__name__, "config": self.get_config()}

    @property
    def _network(self) -> training.DriverNetwork:
        return training.DriverNetwork(self.master_network, self._settings.custom_objects)

    def _fit(self, rdd: RDD[Any], arguments: Mapping[str, Any], classes: int | None = None) -> Any:
        if not isinstance(rdd, RDD):
            raise DataError(
                f"`fit` must be given an RDD. Received: {type(rdd).__name__}. Make one with to_simple_rdd(sc, "
                "features, labels); for a DataFrame use ElephasEstimator."
            )
        settings = self._settings
        defaults: dict[str, Any] = {
            "batch_size": settings.batch_size,
            "num_workers": settings.num_workers,
            "epochs": 10,
        }
        if era.predicts_classes() and arguments.get("validation_data") is None:
            defaults["validation_split"] = 0.1  # until 1.0
        options = fit_options(arguments, defaults)
        plan = self._plan
        result = training.train(
            self._network,
            rdd,
            plan,
            options,
            classes=classes,
            ports=None if settings.port is None else (settings.port, settings.port),
            memory=self._memory if plan.rule.is_optimizer else None,
        )
        self._histories.append(dict(result.history))
        return result.history

    def _evaluate(self, features: Any, labels: Any, arguments: Mapping[str, Any], classes: int | None) -> Any:
        known = ("batch_size", "sample_weight", "verbose")
        for name in arguments:
            if name not in known:
                raise JobError(one_of("argument", name, known))
        weights = arguments.get("sample_weight")
        found = training.evaluate(
            self._network,
            features,
            labels,
            _session(features),
            batch_rows=int(arguments.get("batch_size") or _MEASURED_TOGETHER),
            weights=weights if weights is not False else None,
            classes=classes,
        )
        values = [found.pop("loss"), *found.values()]
        return values[0] if len(values) == 1 else values


class AsynchronousSparkModel(SparkModel):
    """A model whose workers do not wait for each other: the mode is 'asynchronous' unless it is 'hogwild'."""

    _DEFAULT_MODE: ClassVar[str] = "asynchronous"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if self._settings.mode == "synchronous":
            raise JobError(
                "`mode` of AsynchronousSparkModel must be 'asynchronous' or 'hogwild'. Received: 'synchronous'. Use "
                "SparkModel."
            )


class SparkMLlibModel(SparkModel):
    """A model that is trained on an RDD of LabeledPoints."""

    def fit(  # type: ignore[override]  # Elephas's own signature
        self,
        labeled_points: RDD[Any],
        epochs: int = 10,
        batch_size: int | None = None,
        verbose: int = 0,
        validation_split: float = 0.1,
        categorical: bool = False,
        nb_classes: int | None = None,
        **arguments: Any,
    ) -> Any:
        """Train on LabeledPoints; with `categorical`, labels are class numbers that the model sees one-hot.

        The number of classes is `nb_classes`, or the width of the model's output.
        """
        named = {
            "epochs": arguments.pop("nb_epoch", epochs),
            "batch_size": batch_size,
            "verbose": verbose,
            "validation_split": 0.0 if "validation_data" in arguments else validation_split,
        }
        classes = rows.classes_of(self.master_network, nb_classes, categorical=categorical)
        return self._fit(labeled_points, {**named, **arguments}, classes)

    def train(  # type: ignore[override]  # as above
        self,
        labeled_points: RDD[Any],
        nb_epoch: int = 10,
        batch_size: int = 32,
        verbose: int = 0,
        validation_split: float = 0.1,
        categorical: bool = False,
        nb_classes: int | None = None,
        **arguments: Any,
    ) -> Any:
        """`fit` as it was called before 0.4."""
        epochs = arguments.pop("epochs", nb_epoch)
        return self.fit(
            labeled_points, epochs, batch_size, verbose, validation_split, categorical, nb_classes, **arguments
        )

    def predict(self, mllib_data: Any) -> Any:
        """The model's output: for a Matrix an array, for a Vector its one row, for an RDD or an array a list."""
        import numpy as np

        if isinstance(mllib_data, Matrix):
            return np.asarray(super().predict(from_matrix(mllib_data)))
        if isinstance(mllib_data, Vector):
            return super().predict(from_vector(mllib_data)[np.newaxis])[0]
        return super().predict(mllib_data)

    def evaluate(
        self, x_test: Any, y_test: Any = None, categorical: bool = False, nb_classes: int | None = None, **kwargs: Any
    ) -> Any:
        """Returns the loss and the metrics over an RDD of LabeledPoints, or over arrays."""
        return self._evaluate(
            x_test, y_test, kwargs, rows.classes_of(self.master_network, nb_classes, categorical=categorical)
        )


def load_spark_model(
    file_name: str, from_hadoop: bool = False, custom_objects: Mapping[str, Any] | None = None
) -> SparkModel:
    """Returns the model in a file that `save`, of Keraunos or of Elephas, wrote."""
    model, described = model_files.load(file_name, from_hadoop=from_hadoop, custom_objects=custom_objects)
    kinds: Sequence[type[SparkModel]] = (SparkModel, AsynchronousSparkModel, SparkMLlibModel)
    by_name = {kind.__name__: kind for kind in kinds}
    if described["class_name"] not in by_name:
        raise ModelError(one_of("class_name", described["class_name"], by_name))
    settings = ConstructorSettings.from_config(described["config"])
    return by_name[described["class_name"]](
        model, **settings, **({"custom_objects": custom_objects} if custom_objects else {})
    )


def _session(data: Any) -> Session:
    return session_of(data) if isinstance(data, RDD) else started_session()
