"""`zoo.pipeline.api.keras.models`: `Sequential` and `Model`, trained by BigDL's optim methods. Runs on the driver.

Both are thin: `model` is the Keras model inside, for everything that Keras does and that is not here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from keraunos.batch import Array
from keraunos.compat.zoo.bigdl.optim.methods import OptimMethod, RateFollower
from keraunos.compat.zoo.bigdl.optim.summaries import Summary, TrainSummary, ValidationSummary
from keraunos.compat.zoo.bigdl.optim.triggers import EveryEpoch, MaxEpoch, TrainingState
from keraunos.compat.zoo.feature.image_predictions import predict_image
from keraunos.compat.zoo.pipeline.api.keras import training
from keraunos.compat.zoo.pipeline.api.keras.training import Clipping, KerasHooks, Records, split, with_held_out
from keraunos.compat.zoo.tensorflow_mode import in_tensorflow_2, tensorflow_2
from keraunos.compat.zoo.tfpark.training_hooks import Plan
from keraunos.errors import JobError, ModelError
from keraunos.job.columns import Columns
from keraunos.launch import local, spark
from keraunos.launch.evaluate import evaluate_rdd
from keraunos.launch.given_paths import GivenPath, given_path
from keraunos.launch.predict import predict_rdd
from keraunos.launch.session_trust import session_trust
from keraunos.learners.keras_archive import from_archive, live_source, to_archive
from keraunos.learners.keras_variables import write_vector
from keraunos.learners.registry import import_keras_on
from keraunos.parameters import Layout, Vector
from keraunos.session.registry import session_of
from keraunos.trust import trusting

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled

from keraunos.compat.zoo.pipeline.api.keras import graph_surgery  # noqa: E402 - the same
from keraunos.compat.zoo.pipeline.api.keras.layer_making import noted_shape  # noqa: E402 - the same
from keraunos.compat.zoo.pipeline.api.keras.objectives import loss_of  # noqa: E402 - the same
from keraunos.compat.zoo.pipeline.api.keras.weight_files import write_weights  # noqa: E402 - the same


class KerasNet:
    """Base class of `Sequential` and `Model`; `model` is the Keras model."""

    model: Any

    def __init__(self) -> None:
        self._method: OptimMethod | None = None
        self._clipping = Clipping()
        self._train_summary: TrainSummary | None = None
        self._val_summary: ValidationSummary | None = None
        self._checkpoint: tuple[GivenPath, bool] | None = None
        self._state = TrainingState()

    @in_tensorflow_2
    def __call__(self, inputs: Any) -> Any:
        """Returns the model as a layer of another."""
        return self.model(inputs)

    @property
    def layers(self) -> list[Any]:
        """The Keras layers."""
        return list(self.model.layers)

    def flattened_layers(self, include_container: bool = False) -> list[Any]:
        """Returns the Keras layers, those of models inside this one among them; the models themselves if asked."""
        return list(graph_surgery.flattened(self.model, containers=include_container))

    def get_layer(self, name: str) -> Any:
        """Returns the layer of that name."""
        return graph_surgery.named_layers(self.model, name)[0]

    def freeze(self, names: str | Sequence[str] | None = None) -> Self:
        """Exclude all layers, or those of the names, from training."""
        graph_surgery.freeze([self.model] if names is None else graph_surgery.named_layers(self.model, names))
        return self

    def freeze_up_to(self, names: str | Sequence[str]) -> Self:
        """Exclude the layers of the names, and all layers before them, from training."""
        graph_surgery.freeze(graph_surgery.leading_to(self.model, names))
        return self

    def unfreeze(self, names: str | Sequence[str] | None = None) -> Self:
        """Train all layers, or those of the names, again. A `TFNet` that was never trained must be named."""
        graph_surgery.unfreeze(self.model, names)
        return self

    @in_tensorflow_2
    def new_graph(self, outputs: str | Sequence[str]) -> Model:
        """Returns the model that ends with the layers of those names; it shares its layers with this one."""
        found = _of(Model, graph_surgery.cut(self.model, outputs))
        assert isinstance(found, Model)
        return found

    def to_keras(self) -> Self:
        """Returns the model, which is one of layers already."""
        return self

    def get_input_shape(self) -> Any:
        """Returns the shape of the input, or a list of those of all, with `None` for the rows."""
        return _shapes(self.model.inputs)

    def get_output_shape(self) -> Any:
        """Returns the shape of the output, or a list of those of all, with `None` for the rows."""
        return _shapes(self.model.outputs)

    def set_evaluate_status(self) -> Self:
        """Returns the model: `forward` computes as in predictions anyway."""
        return self

    @in_tensorflow_2
    def compile(self, optimizer: Any, loss: Any, metrics: Sequence[Any] | None = None) -> None:
        """Say how to train.

        Args:
            optimizer: one of BigDL's optim methods, or a name: adagrad, adadelta, adam, adamax, rmsprop, sgd.
            loss: one of `objectives`, a loss of Keras, or a name.
            metrics: validation methods of `metrics` or of BigDL, metrics of Keras, or names.
        """
        self._method = training.method_of(optimizer)
        # The servers step by the optim method; Keras wants an optimizer to call the model compiled.
        measures = [training.metric_of(each, self.model) for each in metrics or ()]
        self.model.compile("sgd", loss_of(loss), metrics=[each for each in measures if each is not None])

    @in_tensorflow_2
    def fit(
        self,
        x: Any,
        y: Any = None,
        batch_size: int = 32,
        nb_epoch: int = 10,
        validation_split: float = 0,
        validation_data: Any = None,
        distributed: bool = True,
    ) -> None:
        """Train, each step on `batch_size` rows over all workers.

        Args:
            x: arrays of features, or an RDD of `Sample`s or of lists of arrays, inputs first, then labels.
            y: labels, with arrays.
            batch_size: rows per step, over all workers.
            nb_epoch: how often every row is used.
            validation_split: the share of rows, at the end of the arrays, to validate on.
            validation_data: other records to validate on, as (x, y) or as an RDD.
            distributed: whether Spark's executors train; otherwise one process on this machine does.
        """
        method = self._compiled()
        entries = len(self.model.inputs) + len(self.model.outputs)
        records, validation = split(Records(x, y), validation_split, validation_data, entries)
        for each in (records, validation):
            if each is not None:
                each.classes = training.classes_of(self.model, self.model.loss)
        held_out = None if validation is None else validation.brought(entries)
        plan = self._plan(nb_epoch)
        rule = training.rule_for(method, self._clipping)
        hooks = KerasHooks(plan, self._state, {"": method}, RateFollower.of(method), validates=held_out is not None)
        data = with_held_out(records.spread(entries), held_out) if distributed else None
        job = training.job_for(
            self.model,
            method,
            rule,
            {**plan.schedule(self._state), "seed": self._state.neval - 1},
            batch_size=batch_size,
            workers=1 if data is None else _workers(data, batch_size),
            validates=held_out is not None,
        )
        if data is None:
            result = local.fit(job, [records.table(job.columns, held_out)], hooks=[hooks])
        else:
            result = spark.fit(job, data, hooks=[hooks])
        self.model.set_weights(from_archive(result.archive, trusted=job.model.trusted).get_weights())
        self._state = hooks.state

    @in_tensorflow_2
    def evaluate(self, x: Any, y: Any = None, batch_size: int = 32) -> list[float]:
        """Returns the loss, then the metrics, over records.

        Executors measure those of an RDD, the driver its arrays.
        """
        self._compiled()
        records = Records(x, y)
        records.classes = training.classes_of(self.model, self.model.loss)
        columns = training.columns_of(self.model)
        if records.rdd is not None:
            source = live_source(self.model, backend="tensorflow")
            found = evaluate_rdd(records.spread(len(columns.names)), source, columns, batch_size)
        else:
            count, arrays = len(columns.features), records.brought(len(columns.names))
            found = self.model.evaluate(
                _one(arrays[:count]), _one(arrays[count:]), batch_size=batch_size, verbose=0, return_dict=True
            )
        return [float(found["loss"]), *(float(value) for name, value in found.items() if name != "loss")]

    @in_tensorflow_2
    def predict(self, x: Any, batch_per_thread: int = 128, distributed: bool = True) -> Any:
        """The outputs for each record: an RDD in the order of the records, or an array with `distributed=False`."""
        records = Records(x, None)
        if not distributed:
            found: Array = self.model.predict(
                _one(records.brought(len(self.model.inputs))), batch_size=batch_per_thread, verbose=0
            )
            return found
        columns = Columns(features=training.columns_of(self.model).features)
        source = live_source(self.model, backend="tensorflow")
        return predict_rdd(records.spread(len(self.model.inputs)), source, columns, batch_rows=batch_per_thread)

    @in_tensorflow_2
    def predict_image(
        self,
        image_frame: Any,
        output_layer: Any = None,
        share_buffer: bool = False,
        batch_per_partition: int = 4,
        predict_key: str = "predict",
    ) -> Any:
        """Returns the images of an `ImageFrame` or `ImageSet` with the outputs; `share_buffer` has no effect."""
        columns = Columns(features=training.columns_of(self.model).features)
        source = live_source(self.model, backend="tensorflow")
        options: dict[str, Any] = {"rows": batch_per_partition, "key": predict_key, "output_layer": output_layer}
        return predict_image(image_frame, source, columns, **options)

    def predict_classes(
        self, x: Any, batch_per_thread: int = 128, zero_based_label: bool = True, distributed: bool = True
    ) -> Any:
        """Returns the class with the largest output for each record, counted from 0, or from 1."""
        first = 0 if zero_based_label else 1
        predicted = self.predict(x, batch_per_thread, distributed)
        if not distributed:
            return np.argmax(predicted, axis=-1) + first
        return predicted.map(lambda each: int(np.argmax(each)) + first)

    @in_tensorflow_2
    def forward(self, x: Any) -> Any:
        """Returns the outputs for a batch, as when predicting."""
        return self.model.predict_on_batch(x)

    def set_tensorboard(self, log_dir: str, app_name: str) -> None:
        """Note what happens in training and validation in `log_dir/app_name`."""
        self._train_summary = TrainSummary(log_dir, app_name)
        self._val_summary = ValidationSummary(log_dir, app_name)

    def get_train_summary(self, tag: str) -> npt.NDArray[np.float64]:
        """Returns the training summary of a tag: rows of step, value and time."""
        return _read(self._train_summary, tag)

    def get_validation_summary(self, tag: str) -> npt.NDArray[np.float64]:
        """The validation summary of a metric's name, or of BigDL's tag for it: rows of step, value and time."""
        noted = (_read(self._val_summary, name) for name in (tag, *training.TAGS.get(tag, ())))
        return next((rows for rows in noted if len(rows)), np.zeros((0, 3)))

    def set_checkpoint(self, path: str, over_write: bool = True) -> None:
        """Save the model in a folder after every epoch: as `model.keras`, or with the number of steps in its name."""
        self._checkpoint = (given_path(path), bool(over_write))

    def set_constant_gradient_clipping(self, min: float, max: float) -> None:  # noqa: A002 - Analytics Zoo's names
        """Cut each element of the gradient to a range."""
        self._clipping = Clipping((min, max), self._clipping.norm)

    def set_gradient_clipping_by_l2_norm(self, clip_norm: float) -> None:
        """Scale a gradient whose norm over all variables is larger down to this norm."""
        self._clipping = Clipping(self._clipping.constant, clip_norm)

    def clear_gradient_clipping(self) -> None:
        """Clip no more."""
        self._clipping = Clipping()

    @in_tensorflow_2
    def get_weights(self) -> list[Array]:
        """Returns the values of all variables."""
        return list(self.model.get_weights())

    @in_tensorflow_2
    def set_weights(self, weights: Sequence[Array]) -> None:
        """Set the values of all variables."""
        self.model.set_weights(weights)

    @in_tensorflow_2
    def summary(self, line_length: int = 120, positions: Sequence[float] = (0.33, 0.55, 0.67, 1.0)) -> None:
        """Print the layers, in lines of that length, whose columns end at those parts of it."""
        self.model.summary(line_length=line_length, positions=list(positions))

    @in_tensorflow_2
    def save(self, path: str, over_write: bool = False) -> None:
        """Write the model as a `.keras` file."""
        file = given_path(path)
        if file.exists() and not over_write:
            raise JobError(f"`path` must not exist yet, or `over_write` must be True. Received: {str(path)!r}.")
        file.replace(to_archive(self.model))

    def saveModel(self, modelPath: str, weightPath: str | None = None, over_write: bool = False) -> None:
        """Write the model to a file, and its weights to another besides, where one is named."""
        self.save(modelPath, over_write)
        if weightPath is not None:
            write_weights(weightPath, self.get_weights(), over_write=over_write)

    @staticmethod
    @in_tensorflow_2
    def load(path: str) -> KerasNet:
        """Returns the model that `save` wrote."""
        with trusting(*session_trust()):
            model = from_archive(given_path(path).read())
        return net_around(model)

    def _compiled(self) -> OptimMethod:
        if self._method is None:
            raise ModelError(
                "The model must be compiled. Received: no optimizer. Call `compile(optimizer, loss)` first."
            )
        if not self.model.built:
            raise ModelError(
                "The model must know the shape of its input. Received: layers without one. Give the first layer "
                "`input_shape`."
            )
        return self._method

    def _plan(self, nb_epoch: int) -> Plan:
        plan = Plan(
            MaxEpoch(self._state.epoch - 1 + nb_epoch),
            EveryEpoch(),
            train_summary=self._train_summary,
            val_summary=self._val_summary,
        )
        if self._checkpoint is not None:
            plan.save = self._write_checkpoint
        return plan

    def _write_checkpoint(self, state: TrainingState, layout: Layout, vector: Vector) -> None:
        assert self._checkpoint is not None
        folder, over_write = self._checkpoint
        write_vector(self.model, vector)
        name = "model.keras" if over_write else f"model.{state.neval - 1}.keras"
        folder.child(name).replace(to_archive(self.model))


class Sequential(KerasNet):
    """A sequence of layers; the first has an `input_shape`, or is a `TFNet`."""

    def __init__(self, layers: Sequence[Any] = (), name: str | None = None) -> None:
        super().__init__()
        with tensorflow_2():
            self.model = keras.Sequential(name=name)
        for layer in layers:
            self.add(layer)

    @in_tensorflow_2
    def add(self, layer: Any) -> Self:
        """Put a layer, or a whole model, behind the others."""
        inner = layer.model if isinstance(layer, KerasNet) else layer
        if not self.model.layers:
            self._begin(layer, inner)
        elif isinstance(self.model, keras.Sequential):
            self.model.add(inner)
        else:
            outputs = self.model.outputs
            self.model = keras.Model(self.model.inputs, inner(outputs if len(outputs) > 1 else outputs[0]))
        return self

    def _begin(self, layer: Any, inner: Any) -> None:
        shape = None if isinstance(layer, KerasNet) else noted_shape(layer)
        if isinstance(shape, list):
            inputs = [keras.Input(each) for each in shape]
            self.model = keras.Model(inputs, inner(inputs))
        elif isinstance(inner, keras.Model) and inner.built and len(inner.inputs) > 1:
            self.model = inner
        else:
            known = getattr(layer, "row_of_input", None)
            if shape is not None:
                self.model.add(keras.Input(shape))
            elif known is not None and not isinstance(layer, KerasNet):
                self.model.add(keras.Input(known[0], dtype=known[1]))
            self.model.add(inner)


class Model(KerasNet):
    """A graph of layers between `Input`s and outputs."""

    def __init__(self, input: Any, output: Any, name: str | None = None) -> None:  # noqa: A002 - Keras 1's name
        super().__init__()
        with tensorflow_2():
            self.model = keras.Model(_plain(input), _plain(output), name=name)


def net_around(model: Any) -> KerasNet:
    """Returns a Keras model as a `Sequential` or a `Model`."""
    return _of(Sequential if isinstance(model, keras.Sequential) else Model, model)


def _plain(tensors: Any) -> Any:
    """Returns a list of one tensor is that tensor."""
    return tensors[0] if isinstance(tensors, (list, tuple)) and len(tensors) == 1 else tensors


def _of(kind: type[KerasNet], model: Any) -> KerasNet:
    made = kind.__new__(kind)
    KerasNet.__init__(made)
    made.model = model
    return made


def _workers(rdd: Any, batch_size: int) -> int:
    return max(1, min(int(rdd.getNumPartitions()), session_of(rdd).slots(), batch_size))


def _one(arrays: Sequence[Array]) -> Any:
    return arrays[0] if len(arrays) == 1 else list(arrays)


def _shapes(tensors: Sequence[Any]) -> Any:
    shapes = [tuple(tensor.shape) for tensor in tensors]
    return shapes[0] if len(shapes) == 1 else shapes


def _read(summary: Summary | None, tag: str) -> npt.NDArray[np.float64]:
    if summary is None:
        raise JobError("`set_tensorboard` must be called before training. Received: no summary.")
    return summary.read_scalar(tag)
