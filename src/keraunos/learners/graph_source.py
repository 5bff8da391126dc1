"""From a live TensorFlow graph to a model source, and trained values back into a live session. Runs on the driver.

Everything that can be wrong with a graph is found here, before any work: a placeholder that nobody feeds, a tensor of
another graph, a name that does not exist, a loss that is not one number.

A graph must have its gradient before it travels, because a graph that was read back has lost the Python code that some
gradients are made by. It is added to the graph that is given, once, as an optimizer's `minimize` would add it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import tensorflow as tf

from keraunos.errors import ModelError
from keraunos.job.model_formats import GRAPH
from keraunos.job.training_job import ModelSource
from keraunos.learners.graph_analysis import closure, pruned, variables_in, written_in
from keraunos.learners.graph_archive import GraphArchive, Value
from keraunos.learners.graph_checks import Names, Parts, can_be_fed, check_parts, shown
from keraunos.parameters import Layout

v1 = tf.compat.v1

TRAIN_OP = "keraunos_train_op"

_gradients: WeakKeyDictionary[Any, dict[Any, list[Any]]] = WeakKeyDictionary()


def graph_source(
    session_or_graph: Any,
    *,
    inputs: Mapping[str, Any],
    targets: Mapping[str, Any] | None = None,
    loss: Any = None,
    train_op: Any = None,
    outputs: Mapping[str, Any] | None = None,
    variables: Sequence[Any] | None = None,
    updates: Sequence[Any] | None = None,
    feeds: Mapping[Any, Any] | None = None,
    metrics: Mapping[str, Any] | None = None,
    gradients: Sequence[Any] | None = None,
    values: Mapping[str, Any] | None = None,
    observed: Mapping[str, Any] | None = None,
    session_config: Any = None,
) -> ModelSource:
    """A graph, with its values, as something that workers can train or serve.

    Tensors, operations and variables may be given as such or by name.

    Args:
        session_or_graph: a Session, whose values are taken; or a Graph, whose initializers are run.
        inputs: from slot name to placeholder, for the features.
        targets: the same for the labels.
        loss: a scalar, the mean over a batch's rows. Without `train_op` its gradient is what workers share.
        train_op: an operation, or several, that take a whole step with the graph's own optimizer.
        outputs: from name to tensor, for predictions.
        variables: those that are exchanged; by default the trainable ones that the loss depends on, or that
            `train_op` changes.
        updates: what runs with each training step; by default the collection UPDATE_OPS, as far as it can be fed.
        feeds: from tensor to its value in training and its value in evaluation and prediction, as a tuple; a value that
            is no tuple serves both.
        metrics: from name to scalar, means over a batch's rows.
        gradients: for each of `variables` the dense tensor that `train_op` takes as its gradient; needed where each
            worker applies the gradient of all workers with `train_op`.
        values: values for variables, by name, in place of the session's or the initializers'; those of variables that
            nothing needs are left out.
        observed: the two tensors that measures compare: `output` and `label` (see `graph_measures`).
        session_config: a ConfigProto for the sessions of workers; what it leaves open, their processes say.
    """
    session, graph = _session_and_graph(session_or_graph)
    names = Names(graph)
    parts = Parts(
        inputs=names.tensors(inputs, "inputs"),
        targets=names.tensors(targets, "targets"),
        loss=None if loss is None else names.tensor(loss, "loss"),
        steps=names.operations(train_op, "train_op"),
        outputs=names.tensors(outputs, "outputs"),
        metrics=names.tensors(metrics, "metrics"),
        feeds=dict(names.feed(each, value) for each, value in (feeds or {}).items()),
        observed=names.tensors(observed, "observed"),
    )
    parts = replace(parts, updates=_updates(graph, names, updates, parts))
    check_parts(parts)
    exchanged = _exchanged(graph, names, parts, variables, gradients)
    needed = _needed(graph, parts, exchanged)
    kept = variables_in(needed.values())
    tables = _tables(graph, needed)
    with _running(session, graph, kept, tables) as running:
        found = _values(running, kept, values or {}, names)
    session_bytes = b"" if session_config is None else session_config.SerializeToString()
    return _source(graph, parts, exchanged, needed, found, tables, session_bytes)


def values_into_session(session: Any, archive: bytes) -> None:
    """Set the exchanged variables in a session, by name, to what an archive holds; its graph stays as it is."""
    read = GraphArchive.from_bytes(archive)
    graph = session.graph
    known = {variable.op.name: variable for variable in _variable_objects(graph)}
    missing = [name for name in read.layout.names if name not in known]
    if missing:
        raise ModelError(
            f"The session's graph must have the variables that were trained. It has no {shown(missing)}. Use the "
            "session of the graph that was given to training."
        )
    waiting = [
        (known[name].initializer, np.asarray(value, known[name].dtype.base_dtype.as_numpy_dtype))
        for name, value in zip(read.layout.names, read.layout.split(read.vector()), strict=True)
    ]
    while waiting:
        # A value takes the place of the one that the variable is initialized with. Variables that share that one are
        # set one after the other.
        now: dict[str, tuple[Any, Value]] = {}
        later = []
        for initializer, value in waiting:
            source = initializer.inputs[1].name
            if source in now:
                later.append((initializer, value))
            else:
                now[source] = (initializer, value)
        session.run([each for each, _ in now.values()], {name: value for name, (_, value) in now.items()})
        waiting = later


def _session_and_graph(given: Any) -> tuple[Any, Any]:
    if isinstance(given, tf.Graph):
        return None, given
    if hasattr(given, "run") and isinstance(getattr(given, "graph", None), tf.Graph):
        return given, given.graph
    raise ModelError(f"The graph must be given as a tf.Session or a tf.Graph. Received: {given!r}.")


def _updates(graph: Any, names: Names, given: Sequence[Any] | None, parts: Parts) -> list[Any]:
    if parts.loss is None and not parts.steps:
        return []
    if given is not None:
        return names.operations(list(given), "updates")
    collected = names.operations(graph.get_collection(v1.GraphKeys.UPDATE_OPS), "updates")
    return [operation for operation in dict.fromkeys(collected) if can_be_fed(operation, parts.fed)]


@dataclass(frozen=True)
class _Exchanged:
    """The trained variables' operations, and their gradients' tensors where these are shared.

    `named` says that the variables were asked for by name, and `applied` that `train_op` takes the gradients.
    """

    variables: list[Any]
    named: bool
    gradients: list[Any] | None = None
    applied: bool = False


def _exchanged(
    graph: Any, names: Names, parts: Parts, variables: Sequence[Any] | None, gradients: Sequence[Any] | None
) -> _Exchanged:
    named = variables is not None
    if variables is not None:
        given = [*dict.fromkeys(names.variable(each) for each in _flat(variables))]
    else:
        given = [*dict.fromkeys(each.op for each in graph.get_collection(v1.GraphKeys.TRAINABLE_VARIABLES))]
    given = _floating(given, named=named)
    if gradients is not None:
        if not parts.steps or not named:
            raise ModelError(
                "`gradients` must come with `train_op`, which takes them, and with `variables`, one for each."
            )
        return _Exchanged(given, named, _given_gradients(names, given, gradients), applied=True)
    if parts.steps:
        changed = written_in(closure([*parts.steps], parts.fed))
        trained = given if named else [each for each in given if each.name in changed]
        return _Exchanged(_some(trained, "`train_op` changes none of the trainable variables."), named)
    if parts.loss is None:
        return _Exchanged(given, named)
    found = _differentiated(graph, parts.loss, given)
    pairs = [(each, tensor) for each, tensor in zip(given, found, strict=True) if tensor is not None]
    trained = _some([each for each, _ in pairs], "The loss depends on none of the trainable variables.")
    return _Exchanged(trained, named, [tensor for _, tensor in pairs])


def _given_gradients(names: Names, variables: list[Any], gradients: Sequence[Any]) -> list[Any]:
    if any(isinstance(each, tf.IndexedSlices) for each in gradients):
        raise ModelError(
            "`gradients` must be dense tensors. Received: tf.IndexedSlices, as embeddings have. Convert them with "
            "tf.convert_to_tensor before apply_gradients, or let a rule apply gradients, such as rule='adam'."
        )
    tensors = [names.tensor(each, "gradients") for each in gradients]
    if len(tensors) != len(variables):
        raise ModelError(
            f"`gradients` must have one tensor for each of the {len(variables)} variables. Received: {len(tensors)}."
        )
    for variable, tensor in zip(variables, tensors, strict=True):
        shape = tf.TensorShape(variable.get_attr("shape"))
        if not tensor.shape.is_compatible_with(shape):
            raise ModelError(
                f"`gradients` must have the shapes of the variables. Expected: {shape} for {variable.name!r}. "
                f"Received: {tensor.name!r} of shape {tensor.shape}."
            )
    return tensors


def _differentiated(graph: Any, loss: Any, variables: Sequence[Any]) -> list[Any]:
    """The dense gradient of the loss for each variable, `None` where it does not depend on one."""
    known = _gradients.setdefault(graph, {})
    key = (loss.name, tuple(each.name for each in variables))
    if key in known:
        return [None if name is None else graph.get_tensor_by_name(name) for name in known[key]]
    if graph.finalized:
        raise ModelError(
            "The graph is finalized, so that the gradient of the loss cannot be added to it. Give it to training "
            "before it is finalized, or give `train_op`."
        )
    with graph.as_default(), v1.name_scope("keraunos"):
        raw = v1.gradients(loss, [each.outputs[0] for each in variables])
        found = [_dense(each, variable) for each, variable in zip(raw, variables, strict=True)]
    known[key] = [None if each is None else each.name for each in found]
    return found


def _dense(gradient: Any, variable: Any) -> Any:
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    rows = tf.TensorShape(variable.get_attr("shape"))[0]
    return v1.unsorted_segment_sum(gradient.values, gradient.indices, rows)


def _needed(graph: Any, parts: Parts, exchanged: _Exchanged) -> dict[str, Any]:
    """Every operation that has to travel, by name."""
    tensors = [*parts.inputs.values(), *parts.targets.values(), *parts.outputs.values(), *parts.metrics.values()]
    tensors += [*([] if parts.loss is None else [parts.loss]), *(exchanged.gradients or ())]
    tensors += [*parts.observed.values(), *(graph.get_tensor_by_name(name) for name in parts.feeds)]
    asked_for = exchanged.variables if exchanged.named else []
    return closure([*(each.op for each in tensors), *parts.steps, *parts.updates, *asked_for])


def _tables(graph: Any, needed: Mapping[str, Any]) -> list[Any]:
    """The initializers of the lookup tables that are needed."""
    collected = graph.get_collection(v1.GraphKeys.TABLE_INITIALIZERS)
    return [each for each in collected if any(tensor.op.name in needed for tensor in each.inputs)]


@contextlib.contextmanager
def _running(session: Any, graph: Any, variables: Sequence[Any], tables: Sequence[Any]) -> Iterator[Any]:
    """The session that was given, or one of our own in which the variables have their initial values."""
    if session is not None:
        yield session
        return
    known = {variable.op.name: variable for variable in _variable_objects(graph)}
    missing = [each.name for each in variables if each.name not in known]
    if missing:
        raise ModelError(
            f"The graph must say how its variables begin. It has no initializer for {shown(missing)}. Give a Session "
            "in which they have values."
        )
    with v1.Session(graph=graph, config=v1.ConfigProto(device_count={"GPU": 0})) as own:
        own.run([*(known[each.name].initializer for each in variables), *tables])
        yield own


def _values(session: Any, variables: Sequence[Any], given: Mapping[str, Any], names: Names) -> dict[str, Value]:
    """The values of variables by the names of their operations."""
    chosen = {names.variable(name).name: value for name, value in given.items()}
    try:
        read = session.run({each.name: _readable(each) for each in variables})
    except tf.errors.FailedPreconditionError as error:
        raise ModelError(
            f"The variables must have values in the session. Received: {error.message.splitlines()[0]} Run "
            "tf.global_variables_initializer() in it first, or restore a checkpoint."
        ) from None
    found = {}
    for name, value in read.items():
        array = np.asarray(value)
        if array.dtype.hasobject:
            raise ModelError(f"The variable {name!r} must hold numbers. Received: strings. Keep them in a tf.constant.")
        if name in chosen:
            replaced = np.asarray(chosen[name], array.dtype)
            if replaced.shape != array.shape:
                raise ModelError(
                    f"`values` must have the variable's shape. Expected: {array.shape} for {name!r}. "
                    f"Received: {replaced.shape}."
                )
            array = replaced
        found[name] = array
    return found


def _readable(variable: Any) -> Any:
    """A tensor that a session can fetch for a variable's value; those that exist are used."""
    handle = variable.outputs[0]
    if variable.type != "VarHandleOp":
        return handle
    reads = [each for each in handle.consumers() if each.type == "ReadVariableOp" and not each.control_inputs]
    if reads:
        return reads[0].outputs[0]
    with variable.graph.as_default():
        return tf.raw_ops.ReadVariableOp(resource=handle, dtype=variable.get_attr("dtype"))


def _variable_objects(graph: Any) -> list[Any]:
    keys = v1.GraphKeys
    collections = (keys.GLOBAL_VARIABLES, keys.LOCAL_VARIABLES, keys.TRAINABLE_VARIABLES)
    return [each for key in collections for each in graph.get_collection(key)]


def _source(
    graph: Any,
    parts: Parts,
    exchanged: _Exchanged,
    needed: dict[str, Any],
    values: dict[str, Value],
    tables: list[Any],
    session: bytes,
) -> ModelSource:
    trained = [each.name for each in exchanged.variables if each.name in values]
    state, optimizer = _moved(parts, trained, values)
    layout = _layout(values, trained, state)
    tensors = None if exchanged.gradients is None else tuple(each.name for each in exchanged.gradients)
    vector = layout.join([values[name].astype(layout.dtype) for name in layout.names])
    archive = GraphArchive(
        graph=_meta_graph(graph, {**needed, **closure(tables)}, parts),
        layout=layout,
        parameters=vector.tobytes(),
        local={name: value for name, value in values.items() if name not in layout.names},
        inputs={name: tensor.name for name, tensor in parts.inputs.items()},
        targets={name: tensor.name for name, tensor in parts.targets.items()},
        loss=None if parts.loss is None else parts.loss.name,
        train_op=TRAIN_OP if parts.steps else None,
        derivatives=tensors,
        gradients=tensors if exchanged.applied else None,
        updates=tuple(each.name for each in parts.updates),
        optimizer=tuple(optimizer),
        outputs={name: tensor.name for name, tensor in parts.outputs.items()},
        metrics={name: tensor.name for name, tensor in parts.metrics.items()},
        feeds=parts.feeds,
        tables=tuple(each.name for each in tables),
        observed={name: tensor.name for name, tensor in parts.observed.items()},
        session=session.hex(),
    )
    placeholders = [*parts.inputs.values(), *parts.targets.values()]
    wide = layout.dtype == "float64" or any(each.dtype.base_dtype == tf.float64 for each in placeholders)
    return ModelSource(archive.to_bytes(), "tensorflow", "float64" if wide else "float32", GRAPH)


def _moved(parts: Parts, trained: list[str], values: Mapping[str, Value]) -> tuple[list[str], list[str]]:
    """The float state that travels behind the trained variables, and what else a step moves and stays local."""
    taken = set(trained)
    floats = [name for name, value in values.items() if _is_float(value.dtype)]
    if parts.loss is None and not parts.steps:
        return [name for name in floats if name not in taken], []
    updated = written_in(closure(parts.updates, parts.fed))
    state = [name for name in floats if name in updated and name not in taken]
    changed = written_in(closure([*parts.steps, *parts.updates], parts.fed))
    return state, [name for name in values if name in changed and name not in taken and name not in state]


def _layout(values: Mapping[str, Value], trained: list[str], state: list[str]) -> Layout:
    exchanged = [*trained, *state]
    return Layout(
        names=tuple(exchanged),
        shapes=tuple(values[name].shape for name in exchanged),
        trainable=len(trained),
        dtype="float64" if any(values[name].dtype == np.float64 for name in exchanged) else "float32",
    )


def _meta_graph(graph: Any, needed: Mapping[str, Any], parts: Parts) -> bytes:
    """What is needed of the graph, without the constants that variables began with."""
    meta = v1.MetaGraphDef()
    meta.meta_info_def.tensorflow_version = tf.__version__
    meta.graph_def.CopyFrom(graph.as_graph_def())
    pruned(meta.graph_def, needed.keys())
    if parts.steps:
        meta.graph_def.node.add(name=TRAIN_OP, op="NoOp", input=[f"^{each.name}" for each in parts.steps])
    blob: bytes = meta.SerializeToString(deterministic=True)
    return blob


def _floating(variables: list[Any], *, named: bool) -> list[Any]:
    """The floating-point ones, which alone can be exchanged."""
    floating = [each for each in variables if tf.as_dtype(each.get_attr("dtype")).is_floating]
    if named and len(floating) < len(variables):
        other = [each.name for each in variables if each not in floating]
        raise ModelError(
            f"`variables` must be floating-point variables, which alone can be exchanged. Received: {shown(other)}."
        )
    return floating


def _is_float(dtype: Any) -> bool:
    return bool(dtype.kind == "f" or dtype.name == "bfloat16")


def _flat(variables: Iterable[Any]) -> Iterator[Any]:
    for each in variables:
        yield from each if isinstance(each, (list, tuple)) or hasattr(each, "_get_variable_list") else [each]


def _some(variables: list[Any], otherwise: str) -> list[Any]:
    if not variables:
        raise ModelError(f"There is nothing to train. {otherwise} Expected: at least one floating-point variable.")
    return variables
