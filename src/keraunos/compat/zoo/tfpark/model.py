"""Analytics Zoo's `KerasModel`: a Keras model that is fitted, measured and asked on Spark. Runs on the driver."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from keraunos.compat.zoo.bigdl.optim.triggers import MaxEpoch
from keraunos.compat.zoo.tfpark.keras_graphs import is_in_graph, trained_keras_graph
from keraunos.compat.zoo.tfpark.result_names import Results, result_name
from keraunos.compat.zoo.tfpark.tf_dataset import TFDataset
from keraunos.compat.zoo.tfpark.tf_optimizer import TFOptimizer
from keraunos.compat.zoo.tfpark.tf_predictor import TFPredictor
from keraunos.compat.zoo.tfpark.trained import Trainable
from keraunos.compat.zoo.tfpark.trained_keras import TrainedKeras
from keraunos.errors import JobError
from keraunos.launch.evaluate import evaluate_rdd
from keraunos.launch.given_paths import GivenPath, given_path
from keraunos.launch.session_trust import session_trust
from keraunos.trust import trusting

_BATCH_ROWS = 32


class KerasModel:
    """A Keras model on Spark.

    Args:
        model: a compiled model, of Keras 2 in a TensorFlow graph or of Keras 3.
        model_dir: where checkpoints are written; any Hadoop path.
        optimizer: an optim method to train with in place of the optimizer that the model was compiled with.
    """

    def __init__(self, model: Any, model_dir: str | None = None, optimizer: Any = None) -> None:
        self.model = model
        self.model_dir = model_dir
        self.optimizer = optimizer
        self.metric_tensors: dict[str, Any] = {}

    def add_metric(self, tensor: Any, name: str) -> None:
        """Measure a scalar of a Keras 2 model's graph, a mean over a batch's rows, in fits on Spark."""
        self.metric_tensors[name] = tensor

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        validation_data: Any = None,
        distributed: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Train for some epochs, on Spark if `x` is a `TFDataset` or `distributed` is true, and otherwise here.

        Rows to validate on are part of a `TFDataset`. What else Keras's `fit` takes goes to it when it trains here;
        a fit on Spark takes `session_config`, for the sessions of a Keras 2 model's workers.
        """
        if not isinstance(x, TFDataset) and not distributed:
            return self.model.fit(x, y, batch_size=batch_size, epochs=epochs, validation_data=validation_data, **kwargs)
        session_config = kwargs.pop("session_config", None)
        if kwargs:
            raise JobError(
                f"`{next(iter(kwargs))}` must be left out of a fit on Spark. Received: {kwargs!r}. Use TFOptimizer, "
                "which has triggers and summaries, or fit without `distributed`."
            )
        if isinstance(x, TFDataset):
            _check_alone(y=y, batch_size=batch_size, validation_data=validation_data)
            _check_batch(x, "batch_size", "fit")
            dataset = x
        else:
            dataset = TFDataset.from_ndarrays((x, y), batch_size=batch_size or _BATCH_ROWS, val_tensors=validation_data)
        optimizer = TFOptimizer.from_keras(
            self.model,
            dataset,
            session_config,
            model_dir=self.model_dir,
            metrics=self.metric_tensors or None,
            optimizer=self.optimizer,
        )
        optimizer.optimize(MaxEpoch(epochs))
        return optimizer.history

    def evaluate(
        self, x: Any = None, y: Any = None, batch_per_thread: int | None = None, distributed: bool = False
    ) -> Results:
        """Returns the loss and the metrics by name, and by place, over all rows.

        On Spark the metrics that BigDL has validation methods for go by both names, as in `acc Top1Accuracy`.
        """
        if not isinstance(x, TFDataset) and not distributed:
            found = self.model.evaluate(x, y, batch_size=batch_per_thread or _BATCH_ROWS, verbose=0)
            values = found if isinstance(found, (list, tuple)) else [found]
            named = zip(self.metrics_names, values, strict=False)
            return Results({name: float(value) for name, value in named})
        if isinstance(x, TFDataset):
            _check_alone(y=y, batch_per_thread=batch_per_thread)
            _check_batch(x, "batch_per_thread", "evaluate")
        dataset = x if isinstance(x, TFDataset) else _served((x, y), batch_per_thread)
        trained = self._measured(dataset)
        columns = trained.columns()
        found = evaluate_rdd(dataset.records_for(columns), trained.source(), columns, dataset.rows_predicted_together)
        return Results({result_name(name): value for name, value in found.items()})

    def predict(self, x: Any, batch_per_thread: int | None = None, distributed: bool = False) -> Any:
        """Returns the model's outputs: an RDD for a `TFDataset`, arrays for arrays."""
        if isinstance(x, TFDataset):
            _check_alone(batch_per_thread=batch_per_thread)
            _check_batch(x, "batch_per_thread", "predict")
            return TFPredictor.from_keras(self.model, x).predict()
        if not distributed:
            return self.model.predict(x, batch_size=batch_per_thread or _BATCH_ROWS)
        rows = TFPredictor.from_keras(self.model, _served(x, batch_per_thread)).predict().collect()
        if rows and isinstance(rows[0], list):
            return [np.stack(each) for each in zip(*rows, strict=True)]
        return np.stack(rows)

    def train_on_batch(self, *arguments: Any, **named: Any) -> Any:
        """Keras's own."""
        return self.model.train_on_batch(*arguments, **named)

    def test_on_batch(self, *arguments: Any, **named: Any) -> Any:
        """Keras's own."""
        return self.model.test_on_batch(*arguments, **named)

    def predict_on_batch(self, x: Any) -> Any:
        """Keras's own."""
        return self.model.predict_on_batch(x)

    @property
    def metrics_names(self) -> Sequence[str]:
        """The names of the loss and the metrics."""
        names: Sequence[str] = self.model.metrics_names
        return names

    def get_weights(self) -> list[Any]:
        """Returns the model's weights."""
        return list(self.model.get_weights())

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Set the model's weights."""
        self.model.set_weights(weights)

    def save_weights(self, filepath: str, overwrite: bool = True, save_format: str | None = None) -> None:
        """Write the model's weights to a file, as Keras does; `save_format` is for Keras 2."""
        options = {} if save_format is None else {"save_format": save_format}
        write = functools.partial(self.model.save_weights, **options)
        _save(write, given_path(filepath, "filepath"), overwrite=overwrite)

    def load_weights(self, filepath: str, by_name: bool = False) -> None:
        """Read the model's weights from a file, as Keras does; `by_name` is for Keras 2."""
        options = {"by_name": True} if by_name else {}
        file = given_path(filepath, "filepath")
        # A checkpoint of TensorFlow's is several files, and the path is how their names begin.
        with file.local() if file.exists() else file.local_prefix() as path:
            self.model.load_weights(str(path), **options)

    def save_model(self, path: str, overwrite: bool = True) -> None:
        """Write the model to a file, as Keras does."""
        _save(self.model.save, given_path(path), overwrite=overwrite)

    @staticmethod
    def load_model(path: str) -> KerasModel:
        """Returns the model in a file: read by Keras 2 in a program for TensorFlow 1.x, and otherwise by Keras 3."""
        import tensorflow as tf

        from keraunos.learners.keras_files import check_keras_2_file, read_file

        with given_path(path).local() as file, trusting(*session_trust()):
            if tf.executing_eagerly():
                return KerasModel(read_file(file))
            check_keras_2_file(file)
            import tf_keras

            return KerasModel(tf_keras.models.load_model(str(file)))

    def _measured(self, dataset: TFDataset) -> Trainable:
        if is_in_graph(self.model):
            return trained_keras_graph(self.model, dataset, own_optimizer=False, metrics=None, trains=False)
        return TrainedKeras(self.model, dataset, applies_itself=True, trains=False)


def _served(tensors: Any, batch_per_thread: int | None) -> TFDataset:
    return TFDataset.from_ndarrays(tensors, batch_per_thread=batch_per_thread or _BATCH_ROWS)


def _check_batch(dataset: TFDataset, argument: str, use: str) -> None:
    """Refuse a dataset that was made without any batch, in Analytics Zoo's words."""
    if not dataset.has_batch:
        raise JobError(
            f"The {argument} of TFDataset must be specified when used in KerasModel {use}. Expected: a number of rows. "
            f"Received: neither batch_size nor batch_per_thread. Give `{argument}` when the dataset is made."
        )


def _save(write: Callable[..., Any], file: GivenPath, *, overwrite: bool) -> None:
    """Let Keras write a file, or several."""
    if not overwrite and file.local_path is not None:
        # Keras asks the user before it replaces a file.
        write(str(file.local_path), overwrite=False)
        return
    if not overwrite and file.exists():
        raise JobError(f"There is a file {file.text!r} already. Save with overwrite=True to replace it.")
    with file.written() as path:
        write(str(path))


def _check_alone(**arguments: Any) -> None:
    """Raises an error for arguments that the dataset already has."""
    for name, value in arguments.items():
        if value is not None:
            raise JobError(
                f"`{name}` must be left out if `x` is a TFDataset. Received: {value!r}. Give it when the dataset is "
                "made."
            )
