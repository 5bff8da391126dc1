"""`TFNet`: a TensorFlow graph by itself, or as a layer of a Keras model on TensorFlow. Runs on driver and workers.

The class is a Keras layer, so importing this module settles that Keras runs on TensorFlow in this process; if it was
imported with another backend, an error says so.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.compat.zoo import frozen_graph
from keraunos.compat.zoo.frozen_graph import FrozenGraph
from keraunos.compat.zoo.tensorflow_mode import tensorflow_2
from keraunos.errors import DataError, JobError, ModelError
from keraunos.launch.given_paths import given_path
from keraunos.learners.graph_trust import check_graph
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled
import tensorflow as tf  # noqa: E402 - the same

v1 = tf.compat.v1
Array = npt.NDArray[Any]

_BATCH_ROWS = 128


class _Constants(keras.layers.Layer):  # type: ignore[misc]  # Keras is untyped
    """Large arrays of a graph that are never trained, whatever the layers around them are."""

    @property
    def trainable(self) -> bool:
        """Never."""
        return False

    @trainable.setter
    def trainable(self, value: bool) -> None:
        """A model that sets all of its layers does not mean these."""


@keras.saving.register_keras_serializable(package="keraunos.zoo")
class TFNet(keras.layers.Layer):  # type: ignore[misc]  # Keras is untyped
    """A part of a TensorFlow graph as a layer.

    What flows through it can be differentiated where the graph can. Its variables are weights of the layer: they are
    trained where the net was made with `generate_backward=True`, or after `net.trainable = True`; statistics such as
    those of batch normalisation are constants, and dropout and the like are as the graph was built.
    """

    # Its graph only reads them.
    moves_no_weights = True

    def __init__(
        self,
        path: str | None,
        input_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
        tf_session_config: Any = None,
        *,
        graph: FrozenGraph | None = None,
        trainable: bool = False,
        **options: Any,
    ) -> None:
        """Read a net.

        Args:
            path: a folder that `save` or `export_tf` wrote, or a file with a frozen graph.
            input_names: the tensors that are fed; needed with a file.
            output_names: the tensors that are computed; needed with a file.
            tf_session_config: the configuration of the sessions in which `forward`, `backward` and a `predict` that is
                not distributed run.
            graph: the graph itself, in place of a path.
            trainable: whether the variables are trained.
            options: what any Keras layer takes, such as `name`.
        """
        if graph is None:
            graph, trainable = _read(path, input_names, output_names, trainable)
        super().__init__(trainable=trainable, autocast=False, **options)
        self.supports_jit = False
        self._graph = graph
        self._session_config = tf_session_config
        self._runner: _Runner | None = None
        self._function: Any = None
        self._gradients: dict[str, Array] = {}
        self._weights = _Weights()
        self._constants = _Constants(name="constants", autocast=False)

    @classmethod
    def from_export_folder(cls, folder: str, tf_session_config: Any = None) -> TFNet:
        """Returns the net in a folder that `export_tf` or `save` wrote."""
        return cls(folder, tf_session_config=tf_session_config)

    @classmethod
    def from_session(
        cls,
        sess: Any,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        generate_backward: bool = False,
        allow_non_differentiable_input: bool = True,
        tf_session_config: Any = None,
    ) -> TFNet:
        """Returns the part of a session's graph that leads from `inputs` to `outputs`, with the values it has now."""
        graph = frozen_graph.freeze(sess, inputs, outputs, trainable=True)
        if generate_backward:
            frozen_graph.check_differentiable(graph, every_input=not allow_non_differentiable_input)
        return cls(None, tf_session_config=tf_session_config, graph=graph, trainable=generate_backward)

    @classmethod
    def from_saved_model(
        cls,
        model_path: str,
        tag: str | None = None,
        signature: str | None = None,
        inputs: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
        tf_session_config: Any = None,
        init_op: str | None = None,
    ) -> TFNet:
        """Returns the net of a SavedModel's signature, or between tensors that are named."""
        graph = frozen_graph.read_saved_model(
            model_path, tag, signature, inputs, outputs, init_op=init_op, session_config=tf_session_config
        )
        return cls(None, tf_session_config=tf_session_config, graph=graph)

    @property
    def graph(self) -> FrozenGraph:
        """The graph with its current values."""
        return self._graph.with_values(self._weights.values()) if self._weights.by_name else self._graph

    @property
    def row_of_input(self) -> tuple[tuple[int | None, ...], str] | None:
        """The shape, without the batch, and the type of a row; `None` for several inputs, or an unknown shape."""
        (dtype, shape), *others = self._graph.specs(self._graph.inputs)
        return None if others or not shape.rank else (tuple(shape.as_list()[1:]), str(dtype.name))

    def forward(self, x: Any) -> Any:
        """Returns the outputs for a batch: an array, or a list of arrays."""
        return _one_or_all(self._running().forward(self.graph, _arrays(x, self._graph.inputs, rows=False)))

    def backward(self, x: Any, grad: Any) -> Any:
        """The gradient by the inputs, if `grad` is that by the outputs; `parameters` then has that by the variables.

        Zero if an input has no gradient.
        """
        given = _arrays(grad, self._graph.outputs, "grad", rows=False)
        inputs = _arrays(x, self._graph.inputs, rows=False)
        by_inputs, by_variables = self._running().backward(self.graph, inputs, given)
        self._gradients = by_variables
        return _one_or_all(by_inputs)

    def parameters(self) -> dict[str, dict[str, Array]]:
        """Returns each variable's `weight` and, after `backward`, its `gradWeight`, by the variable's name."""
        values = self.graph.values
        return {
            name: {
                "weight": np.array(values[name]),
                "gradWeight": np.array(self._gradients.get(name, np.zeros_like(values[name]))),
            }
            for name in self._graph.variables
        }

    def save(self, path: str, over_write: bool = False) -> None:
        """Write the net to a folder, which `TFNet(path)` and `from_export_folder` read."""
        if given_path(path).child(frozen_graph.META_FILE).exists() and not over_write:
            raise JobError(f"`path` must hold no net yet, or `over_write` must be True. Received: {path!r}.")
        frozen_graph.write_folder(path, self.graph, trainable=bool(self.trainable))

    def predict(self, x: Any, batch_per_thread: int = -1, distributed: bool = True, mini_batch: bool = False) -> Any:
        """The net's output for each record: an RDD in the order of the records, or an array with `distributed=False`.

        Of a net with several outputs it is a list of arrays for each record, and a list of such lists.

        Args:
            x: an array, or a list of arrays for several inputs, with one row per record; or an RDD of records: arrays,
                lists of arrays, or `Sample`s, of which only the inputs are inspected; or a `TFDataset`.
            batch_per_thread: rows that are computed at once; -1 for as many as suit. A `TFDataset` has its own.
            distributed: whether executors compute it.
            mini_batch: must be False.
        """
        if mini_batch:
            raise JobError(
                "`mini_batch` must be False: a record is one row. Received: True. Flatten the batches first."
            )
        rows = _BATCH_ROWS if batch_per_thread == -1 else batch_per_thread
        if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
            raise JobError(f"`batch_per_thread` must be -1 or at least 1. Received: {batch_per_thread!r}.")
        # Workers, which import this module, need no driver side of Spark.
        from keraunos.compat.zoo import tfnet_records

        if hasattr(x, "row_source"):
            return tfnet_records.predicted(tfnet_records.dataset_rows(x), self.graph, x.rows_predicted_together)
        is_rdd = hasattr(x, "mapPartitions")
        if distributed:
            from keraunos.compat.zoo.sample_records import spread_arrays

            records = x if is_rdd else spread_arrays(_arrays(x, self._graph.inputs))
            return tfnet_records.predicted(records, self.graph, rows)
        if is_rdd:
            raise JobError("An RDD must be predicted with distributed=True. Received: distributed=False.")
        found = list(self._predicted_here(_arrays(x, self._graph.inputs), rows))
        return np.stack(found) if found and len(self._graph.outputs) == 1 else found

    def evaluate(self, dataset: Any, batch_size: int, val_methods: Sequence[Any]) -> list[Any]:
        """The results of validation methods for the net's output, computed on executors: an `EvaluatedResult` for each.

        Args:
            dataset: an RDD of `Sample`s, or of lists of arrays, inputs first, then a label; or a `TFDataset` of pairs
                (features, labels).
            batch_size: rows that are computed at once; a `TFDataset` has its own.
            val_methods: methods of `bigdl.optim.optimizer`.
        """
        from keraunos.compat.zoo import tfnet_records

        if len(self._graph.outputs) != 1:
            raise JobError(f"A net must have one output to be evaluated. Received: {len(self._graph.outputs)}.")
        if hasattr(dataset, "row_source"):
            return tfnet_records.measured(
                tfnet_records.dataset_rows(dataset, labels=True),
                self.graph,
                dataset.rows_predicted_together,
                val_methods,
            )
        return tfnet_records.measured(dataset, self.graph, batch_size, val_methods)

    def predict_image(
        self,
        image_frame: Any,
        output_layer: Any = None,
        share_buffer: bool = False,
        batch_per_partition: int = 4,
        predict_key: str = "predict",
    ) -> Any:
        """Returns the images of an `ImageFrame` or `ImageSet` with the net's outputs; `share_buffer` has no effect."""
        from keraunos.compat.zoo.tfnet_records import predicted_images

        return predicted_images(image_frame, self.graph, batch_per_partition, predict_key, output_layer)

    def build(self, input_shape: Any = None) -> None:
        """Make the layer's weights, which start from the graph's values."""
        del input_shape
        named = self._weights.by_name
        if named:
            return
        graph = self._graph
        for layer, names in ((self, graph.variables), (self._constants, graph.constants)):
            for name, (dtype, shape) in zip(names, graph.specs(names), strict=True):
                named[name] = layer.add_weight(
                    shape=tuple(shape.as_list()),
                    dtype=dtype.name,
                    initializer="zeros",
                    trainable=True,
                    autocast=False,
                    name=name.replace("/", "."),
                )
                if name in graph.values:
                    named[name].assign(graph.values[name])
        self._constants.built = True
        # The weights hold them from here on.
        self._graph = graph.with_values({})
        self.built = True

    def call(self, inputs: Any) -> Any:
        """Returns the outputs for symbolic or eager tensors."""
        if self._function is None:
            with tf.init_scope():
                self._function = self._wrapped()
        given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        if len(given) != len(self._graph.inputs):
            raise ModelError(
                f"The layer {self.name!r} must be given {len(self._graph.inputs)} inputs, for "
                f"{', '.join(map(repr, self._graph.inputs))}. Received: {len(given)}."
            )
        cast = [
            tf.cast(each, dtype) for each, (dtype, _) in zip(given, self._graph.specs(self._graph.inputs), strict=True)
        ]
        names = (*self._graph.variables, *self._graph.constants)
        weights = [tf.convert_to_tensor(self._weights.by_name[name].value) for name in names]
        return _one_or_all(list(self._function(*cast, *weights)))

    def get_config(self) -> dict[str, Any]:
        """Returns the configuration of the layer; its weights are saved like any layer's."""
        config = super().get_config()
        config.pop("autocast", None)
        return {**config, "graph": self._graph.to_json()}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> TFNet:
        """Returns the layer that `get_config` described."""
        options = dict(config)
        graph = FrozenGraph.from_json(options.pop("graph"))
        # The caller who makes the layer from an archive trusts all of its operations.
        check_graph(graph.graph_def(), f"the layer {options.get('name')!r}")
        return cls(None, graph=graph, **options)

    def _wrapped(self) -> Any:
        graph = self._graph
        places = [*graph.inputs, *(f"{name}:0" for name in (*graph.variables, *graph.constants))]
        signature = [tf.TensorSpec(shape, dtype) for dtype, shape in graph.specs(places)]

        def imported(*given: Any) -> list[Any]:
            replaced = dict(zip(places, given, strict=True))
            found: list[Any] = tf.graph_util.import_graph_def(
                graph.graph_def(), input_map=replaced, return_elements=list(graph.outputs), name=""
            )
            return found

        return v1.wrap_function(imported, signature)

    def _running(self) -> _Runner:
        if self._runner is None:
            self._runner = _Runner(self._graph, self._session_config)
        return self._runner

    def _predicted_here(self, arrays: Sequence[Array], rows: int) -> Iterator[Any]:
        graph, runner = self.graph, self._running()
        for start in range(0, len(arrays[0]), rows):
            outputs = runner.forward(graph, [each[start : start + rows] for each in arrays])
            for row in zip(*outputs, strict=True):
                yield _one_or_all(list(row))


class _Weights:
    """Weights by their names in the graph; no dict, whose entries Keras would count as the layer's own."""

    def __init__(self) -> None:
        self.by_name: dict[str, Any] = {}

    def values(self) -> dict[str, Array]:
        """Returns their values."""
        with tensorflow_2():
            return {name: keras.ops.convert_to_numpy(each.value) for name, each in self.by_name.items()}


class _Runner:
    """A session that runs a graph; it is closed when this object is garbage-collected."""

    def __init__(self, graph: FrozenGraph, config: Any) -> None:
        self._graph = tf.Graph()
        with self._graph.as_default():
            tf.graph_util.import_graph_def(graph.graph_def(), name="")
        self._session = v1.Session(graph=self._graph, config=config)
        weakref.finalize(self, self._session.close)
        self._backward: tuple[list[Any], list[Any]] | None = None

    def forward(self, graph: FrozenGraph, inputs: Sequence[Array]) -> list[Array]:
        """Returns the outputs."""
        found: list[Array] = self._session.run(list(graph.outputs), self._feeds(graph, inputs))
        return found

    def backward(
        self, graph: FrozenGraph, inputs: Sequence[Array], weights: Sequence[Array]
    ) -> tuple[list[Array], dict[str, Array]]:
        """Returns the gradients by the inputs, and by the variables."""
        if self._backward is None:
            with self._graph.as_default():
                outputs = [self._graph.get_tensor_by_name(name) for name in graph.outputs]
                given = [v1.placeholder(each.dtype, each.shape) for each in outputs]
                self._backward = given, frozen_graph.gradients_of(self._graph, graph, given)
        given, found = self._backward
        feeds = self._feeds(graph, inputs) | dict(zip(given, weights, strict=True))
        computed = iter(self._session.run([each for each in found if each is not None], feeds))
        like = [*inputs, *(graph.values[name] for name in graph.variables)]
        every = [
            np.zeros(np.shape(each)) if gradient is None else next(computed)
            for gradient, each in zip(found, like, strict=True)
        ]
        return every[: len(inputs)], dict(zip(graph.variables, every[len(inputs) :], strict=True))

    def _feeds(self, graph: FrozenGraph, inputs: Sequence[Array]) -> dict[Any, Any]:
        values = {f"{name}:0": value for name, value in graph.values.items()}
        return dict(zip(graph.inputs, inputs, strict=True)) | values


def _read(
    path: str | None, input_names: Sequence[str] | None, output_names: Sequence[str] | None, trainable: bool
) -> tuple[FrozenGraph, bool]:
    if path is None:
        raise JobError("`path` must be a folder that export_tf wrote, or a file with a frozen graph. Received: None.")
    given = given_path(path)
    if given.exists() and not given.is_folder():
        return frozen_graph.read_file(path, input_names, output_names), trainable
    graph, was_trainable = frozen_graph.read_folder(path, input_names, output_names)
    return graph, trainable or was_trainable


def _arrays(given: Any, names: Sequence[str], argument: str = "x", *, rows: bool = True) -> list[Array]:
    """Returns an array for each of some tensors, with one row per record unless the tensors may be anything."""
    each_given = list(given) if isinstance(given, (list, tuple)) and len(names) > 1 else [given]
    if len(each_given) != len(names):
        raise DataError(
            f"`{argument}` must be {len(names)} arrays, for {', '.join(map(repr, names))}. Received: {len(each_given)}."
        )
    found = [np.asarray(each) for each in each_given]
    if any((rows and each.ndim == 0) or each.dtype == object for each in found):
        raise DataError(f"`{argument}` must be arrays with a row a record. Received: {given!r}.")
    return found


def _one_or_all(each: list[Any]) -> Any:
    return each[0] if len(each) == 1 else each
