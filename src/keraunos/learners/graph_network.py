"""A graph archive as a running session: everything a learner does is one call of it. Runs on workers.

The graph is read back, what a learner needs is added around it, and it is finalized: nothing is added while it trains.
Values go in and come out as one flat vector, which the graph itself splits and joins.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

from keraunos.batch import Array
from keraunos.errors import DataError
from keraunos.learners.graph_analysis import closure
from keraunos.learners.graph_apply import application_of
from keraunos.learners.graph_archive import GraphArchive, Value
from keraunos.parameters import Vector

v1 = tf.compat.v1

Call = Callable[..., list[Any]]
Seeds = Callable[[int], Sequence[int]]


def session_config(environment: Mapping[str, str]) -> Any:
    """How a session uses this process's share of the host, as its environment says it."""
    intra = environment.get("TF_NUM_INTRAOP_THREADS") or environment.get("OMP_NUM_THREADS") or "0"
    inter = int(environment.get("TF_NUM_INTEROP_THREADS") or "1")
    config = v1.ConfigProto(allow_soft_placement=True, intra_op_parallelism_threads=int(intra))
    # One thread is the caller's own: to hand an operation over to another costs more than most operations take.
    config.inter_op_parallelism_threads = inter if inter > 1 else -1
    addresses = [each for each in environment.get("CUDA_VISIBLE_DEVICES", "").split(",") if each.strip()]
    config.gpu_options.allow_growth = True
    if addresses:
        # The process sees no other devices than those that Spark gave to its task, and counts them from 0.
        config.gpu_options.visible_device_list = ",".join(str(i) for i in range(len(addresses)))
    return config


class Port:
    """A placeholder, and rows as it takes them."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self._dtype = np.dtype(tensor.dtype.as_numpy_dtype)
        self._shape = None if tensor.shape.rank is None else tuple(tensor.shape.as_list())
        self.rows: int | None = self._shape[0] if self._shape else None

    def fit(self, array: Array) -> Array:
        """The rows in the placeholder's type, and in its shape where their elements can be read so."""
        if array.dtype != self._dtype:
            array = array.astype(self._dtype)
        shape = self._shape
        if shape is None or self._takes(array.shape):
            return array
        wanted = (len(array), *(-1 if size is None else size for size in shape[1:]))
        if shape and wanted.count(-1) <= 1:
            with contextlib.suppress(ValueError):
                array = array.reshape(wanted)
        if not self._takes(array.shape):
            fixed = " Its number of rows is fixed." if self.rows not in (None, len(array)) else ""
            raise DataError(
                f"Rows do not fit the placeholder {self.tensor.name!r}. Expected: shape {self.tensor.shape}. "
                f"Received: {len(array)} rows of shape {array.shape[1:]}.{fixed}"
            )
        return array

    def _takes(self, found: tuple[int, ...]) -> bool:
        shape = self._shape or ()
        return len(found) == len(shape) and all(want in (None, have) for want, have in zip(shape, found, strict=True))


class Network:
    """One network in one session.

    `inputs` and `targets` are its placeholders by slot, `serving` those inputs that its outputs depend on. `fixed_rows`
    is how many rows it predicts for at once where that is settled, `batch_rows` how many a batch then has, and `by_row`
    says that no output is a single number.

    Args:
        archive: the graph and its values.
        seeds: gives as many seeds as it is asked for, where random operations are to have new ones.
    """

    def __init__(self, archive: GraphArchive, seeds: Seeds | None = None) -> None:
        self._archive = archive
        self._layout = archive.layout
        definition = v1.MetaGraphDef.FromString(archive.graph).graph_def
        if seeds is not None:
            _reseed(definition, seeds)
        self.graph = tf.Graph()
        with self.graph.as_default():
            tf.graph_util.import_graph_def(definition, name="")
            self.inputs = {slot: Port(self._tensor(name)) for slot, name in archive.inputs.items()}
            self.targets = {slot: Port(self._tensor(name)) for slot, name in archive.targets.items()}
            with v1.name_scope("keraunos_learner"):
                self._build(definition)
        self.graph.finalize()
        config = session_config(os.environ)
        config.MergeFromString(bytes.fromhex(archive.session))
        self._session = v1.Session(graph=self.graph, config=config)
        self._set_values()
        self._make_calls()

    def read(self, out: Vector) -> None:
        """The parameters into one vector."""
        np.copyto(out, self._read()[0])

    def write(self, vector: Vector) -> None:
        """Set the parameters from one vector, which is not kept."""
        self._write(self._owned(vector))

    def optimizer_state(self) -> list[Value]:
        """The values of the local variables that a step changes."""
        return [np.array(value) for value in self._read_optimizer()]

    def restore_optimizer(self, state: Sequence[Value]) -> None:
        """Set those variables."""
        self._set_local(dict(zip(self._archive.optimizer, state, strict=True)))

    def step(self, rows: Sequence[Array]) -> list[Any]:
        """Run `train_op` and the updates on a batch; what is measured, the loss first."""
        return self._step(*rows, *self._trained)

    def gradient(self, rows: Sequence[Array], count: int) -> list[Any]:
        """A contribution's values, the gradient and the float state times the rows; and what is measured."""
        return self._gradient(*rows, *self._trained, np.asarray(count, self._layout.dtype))

    def apply(self, reduced: Vector) -> None:
        """Let `train_op` apply a gradient, and set the float state."""
        self._apply(self._owned(reduced))

    def measure(self, rows: Sequence[Array]) -> list[Any]:
        """The loss and the metrics of a batch, as in evaluation, and what measures compare."""
        return self._measure(*rows, *self._served)

    def predict(self, rows: Sequence[Array]) -> list[Any]:
        """The outputs for what `serving` lists."""
        return self._predict(*rows, *self._served)

    def _build(self, definition: Any) -> None:
        """Add everything that will ever be run."""
        archive, layout = self._archive, self._layout
        self._flat = v1.placeholder(layout.dtype, [layout.size], name="flat")
        self._rows = v1.placeholder(layout.dtype, [], name="rows")
        variables = [self._variable(name) for name in layout.names]
        pieces = self._pieces(variables)
        self._joined = self._join([_read(each) for each in variables])
        self._assigned = tf.group(*map(_assign, variables, pieces), name="assigned")
        self._local = {name: self._loader(self._variable(name)) for name in archive.local}
        self._moved = {name: _read(self._variable(name)) for name in archive.optimizer}
        updates = [self.graph.get_operation_by_name(name) for name in archive.updates]
        if archive.derivatives is not None:
            with tf.control_dependencies(updates):
                state = [_read(each) for each in variables[layout.trainable :]]
            self._contribution = self._join([*map(self._tensor, archive.derivatives), *state]) * self._rows
        if archive.gradients is not None:
            self._applied = self._application(definition, variables, pieces)
        # A tensor that is fed cannot be fetched as well.
        fed = [port.tensor for port in self.inputs.values()]
        fed += [port.tensor for port in self.targets.values()]
        self._outputs, self._observed = (
            [tf.identity(each) if any(each is other for other in fed) else each for each in map(self._tensor, names)]
            for names in (archive.outputs.values(), archive.observed.values())
        )
        behind = closure([each.op for each in self._outputs])
        self.serving = {slot: port for slot, port in self.inputs.items() if port.tensor.op.name in behind}
        self.fixed_rows = next((port.rows for port in self.serving.values() if port.rows is not None), None)
        self.by_row = all(each.shape.rank != 0 for each in self._outputs)
        ports = (*self.inputs.values(), *self.targets.values())
        self.batch_rows = next((port.rows for port in ports if port.rows is not None), None)

    def _set_values(self) -> None:
        archive = self._archive
        self._session.run([*archive.tables])
        self._session.run(self._assigned, {self._flat: archive.vector()})
        self._set_local(archive.local)

    def _make_calls(self) -> None:
        archive = self._archive
        ports = [port.tensor for port in (*self.inputs.values(), *self.targets.values())]
        feeds = [self._tensor(name) for name in archive.feeds]
        self._trained = [training for training, _ in archive.feeds.values()]
        self._served = [serving for _, serving in archive.feeds.values()]
        measured = [
            self._tensor(name) for name in (*([archive.loss] if archive.loss else []), *archive.metrics.values())
        ]
        updates = list(archive.updates)
        self._read = self._call([], [self._joined])
        self._write = self._call([self._flat], [], [self._assigned.name])
        self._read_optimizer = self._call([], list(self._moved.values()))
        self._measure = self._call([*ports, *feeds], [*measured, *self._observed])
        self._predict = self._call([*(port.tensor for port in self.serving.values()), *feeds], self._outputs)
        if archive.train_op is not None:
            self._step = self._call([*ports, *feeds], measured, [archive.train_op, *updates])
        if archive.derivatives is not None:
            self._gradient = self._call([*ports, *feeds, self._rows], [self._contribution, *measured], updates)
        if archive.gradients is not None:
            self._apply = self._call([self._flat], [], [self._applied.name])

    def _call(self, feeds: Sequence[Any], fetches: Sequence[Any], targets: Sequence[str] = ()) -> Call:
        """A call of the session whose feeds and fetches are settled beforehand, which `Session.run` does each time."""
        if not fetches and not targets:
            return lambda *_: []
        options = config_pb2.CallableOptions(
            feed=[each.name for each in feeds], fetch=[each.name for each in fetches], target=list(targets)
        )
        made: Call = self._session._make_callable_from_options(options)
        return made

    def _application(self, definition: Any, variables: Sequence[Any], pieces: Sequence[Any]) -> Any:
        """The part of `train_op` that applies gradients, with pieces of the flat vector in their place."""
        archive, layout = self._archive, self._layout
        known = {f"{name}:0": self._variable(name).outputs[0] for name in (*layout.names, *archive.local)}
        known |= {name: tf.constant(training) for name, (training, _) in archive.feeds.items()}
        assert archive.gradients is not None
        assert archive.train_op is not None
        known |= dict(zip(archive.gradients, pieces, strict=False))
        given = {*archive.gradients, *archive.feeds}
        found = application_of(definition, archive.train_op, given, layout.names[: layout.trainable])
        writers = tf.graph_util.import_graph_def(
            found.definition,
            input_map={name: known[name] for name in found.missing},
            return_elements=list(found.writers),
            name="applied",
        )
        state = list(map(_assign, variables[layout.trainable :], pieces[layout.trainable :]))
        return tf.group(*writers, *state, name="applied_all")

    def _pieces(self, variables: Sequence[Any]) -> list[Any]:
        layout = self._layout
        parts = tf.split(self._flat, list(layout.sizes)) if layout.shapes else []
        return [
            tf.cast(tf.reshape(part, shape), variable.get_attr("dtype"))
            for part, shape, variable in zip(parts, layout.shapes, variables, strict=True)
        ]

    def _join(self, tensors: Sequence[Any]) -> Any:
        flat = [tf.reshape(tf.cast(tensor, self._layout.dtype), [-1]) for tensor in tensors]
        return tf.concat(flat, axis=0) if flat else tf.zeros([0], self._layout.dtype)

    def _loader(self, variable: Any) -> tuple[Any, Any]:
        value = v1.placeholder(variable.get_attr("dtype"), name="value")
        return value, _assign(variable, value)

    def _set_local(self, values: Mapping[str, Value]) -> None:
        chosen = [(*self._local[name], value) for name, value in values.items()]
        self._session.run([assign for _, assign, _ in chosen], {place: value for place, _, value in chosen})

    def _owned(self, vector: Vector) -> Vector:
        # TensorFlow may look into the caller's array, and a variable that takes it whole would go on doing so.
        return vector.copy() if len(self._layout.shapes) == 1 else vector

    def _tensor(self, name: str) -> Any:
        return self.graph.get_tensor_by_name(name)

    def _variable(self, name: str) -> Any:
        return self.graph.get_operation_by_name(name)


def _read(variable: Any) -> Any:
    """The value of a variable, of either kind, as it is when everything that must come first has run."""
    tensor = variable.outputs[0]
    if variable.type == "VarHandleOp":
        return tf.raw_ops.ReadVariableOp(resource=tensor, dtype=variable.get_attr("dtype"))
    return tf.identity(tensor)


def _assign(variable: Any, value: Any) -> Any:
    tensor = variable.outputs[0]
    if variable.type == "VarHandleOp":
        return tf.raw_ops.AssignVariableOp(resource=tensor, value=value)
    return v1.assign(tensor, value).op


def _reseed(definition: Any, seeds: Seeds) -> None:
    """Give every random operation a seed of its own; one that had none would draw other numbers in each run."""
    bodies = [definition.node, *(function.node_def for function in definition.library.function)]
    random = [node for body in bodies for node in body if "seed" in node.attr and "seed2" in node.attr]
    for node, seed in zip(random, seeds(len(random)), strict=True):
        node.attr["seed"].i = seed
        node.attr["seed2"].i = 1
