"""A TensorFlow graph loaded from JSON: its loss, its variables and their values. Runs on the driver.

Nothing here touches the default graph, and nothing turns TensorFlow's 2.x behaviour off.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf import json_format

from keraunos.compat.sparkflow.graph_utils import RETURNED
from keraunos.errors import ModelError
from keraunos.learners.graph_analysis import PLACEHOLDERS, VARIABLES, closure
from keraunos.learners.graph_archive import Value

v1 = tf.compat.v1


def imported(text: str) -> Any:
    """Returns the graph that a JSON text describes, as a `tf.Graph` of its own."""
    if not text:
        raise ModelError(
            "`tensorflowGraph` must be set. Expected: the JSON that graph_utils.build_graph(function) gives. "
            f"Received: {text!r}."
        )
    with tf.Graph().as_default() as graph:
        v1.train.import_meta_graph(parsed(text), clear_devices=True)
    return graph


def parsed(text: str) -> Any:
    """Returns the MetaGraphDef that a JSON text describes."""
    try:
        return json_format.Parse(text, v1.MetaGraphDef())
    except json_format.ParseError as error:
        raise ModelError(
            "`tensorflowGraph` must be a MetaGraphDef in JSON, as graph_utils.build_graph(function) gives it. "
            f"Received: {text[:60]!r}… ({str(error)[:200]})."
        ) from error


def tensor(graph: Any, name: str | None, parameter: str) -> Any:
    """Returns the tensor that a Param names."""
    if name and has_tensor(graph, name):
        return graph.get_tensor_by_name(name)
    operations = [each.name for each in graph.get_operations()]
    placeholders = [each.outputs[0].name for each in graph.get_operations() if each.type in PLACEHOLDERS]
    close = difflib.get_close_matches((name or "").partition(":")[0], operations, n=1)
    hint = f" Did you mean {close[0] + ':0'!r}?" if close else ""
    raise ModelError(
        f"`{parameter}` must name a tensor of the graph. Received: {name!r}, which is not in it.{hint} "
        f"Its placeholders are {', '.join(map(repr, placeholders)) or 'none'}."
    )


def has_tensor(graph: Any, name: str) -> bool:
    """Returns whether the graph has a tensor of that name."""
    try:
        graph.get_tensor_by_name(name)
    except (KeyError, ValueError):
        return False
    return True


def loss_of(graph: Any) -> Any:
    """The minimized tensor: the collected losses with the regularisation, or else the model's return value.

    Several losses are added up, as `tf.losses.get_total_loss` does it. The sum is added to the graph.
    """
    losses = graph.get_collection(v1.GraphKeys.LOSSES) or graph.get_collection(RETURNED)
    if not losses:
        raise ModelError(
            "The graph must have a loss to train on. Expected: one in the collection tf.GraphKeys.LOSSES, where every "
            "function of tf.losses puts its own, or a tensor that the function given to build_graph returns. "
            "Received: neither. Return the loss, or register it with tf.losses.add_loss(loss)."
        )
    for each in losses:
        if each.shape.rank not in (0, None):
            raise ModelError(
                f"A loss must be one number for a batch. Received: {each.name!r} of shape {each.shape}. Reduce it, as "
                "with tf.reduce_mean."
            )
    parts = [*losses, *graph.get_collection(v1.GraphKeys.REGULARIZATION_LOSSES)]
    if len(parts) == 1:
        return parts[0]
    with graph.as_default():
        return v1.add_n(parts, name="sparkflow_total_loss")


def check_fed(loss: Any, given: Mapping[str, str | None], dropout: str | None) -> None:
    """Refuse a loss that needs a placeholder which training has no value for."""
    fed = {name for name in given.values() if name}
    needed = closure([loss.op], fed).values()
    missing = [each.outputs[0].name for each in needed if each.type in PLACEHOLDERS and each.outputs[0].name not in fed]
    if dropout in missing:
        raise ModelError(
            f"`tfDropout` must name a placeholder that knows its value in training. Received: {dropout!r}, which was "
            "made with tf.placeholder. Make it with tf.placeholder_with_default, as in "
            "tf.placeholder_with_default(0.5, shape=[], name='dropout'): training uses that value, prediction drops "
            "nothing."
        )
    if missing:
        names = ", ".join(map(repr, missing))
        told = ", ".join(f"{name}={value!r}" for name, value in given.items())
        raise ModelError(
            f"The loss needs {names}, which nothing feeds. Expected: placeholders named by tfInput and tfLabel, and "
            f"others with a value of their own (tf.placeholder_with_default). Received: {told}."
        )


@contextmanager
def initialized(graph: Any) -> Iterator[Any]:
    """A session in which every variable has its initial value."""
    with _session(graph) as session:
        keys = v1.GraphKeys
        variables = [*graph.get_collection(keys.GLOBAL_VARIABLES), *graph.get_collection(keys.LOCAL_VARIABLES)]
        session.run([each.initializer for each in variables])
        yield session


@contextmanager
def holding(graph: Any, values: Mapping[str, Value]) -> Iterator[Any]:
    """A session in which variables have these values."""
    assignments, feeds = [], {}
    with graph.as_default(), v1.name_scope("sparkflow_values"):
        for name, value in values.items():
            variable = graph.get_operation_by_name(name)
            kind = tf.as_dtype(variable.get_attr("dtype"))
            given = v1.placeholder(kind, tf.TensorShape(variable.get_attr("shape")))
            feeds[given] = np.asarray(value, kind.as_numpy_dtype)
            handle = variable.outputs[0]
            if variable.type == "VarHandleOp":
                assignments.append(tf.raw_ops.AssignVariableOp(resource=handle, value=given))
            else:
                assignments.append(tf.raw_ops.Assign(ref=handle, value=given).op)
    with _session(graph) as session:
        session.run(assignments, feeds)
        yield session


def variables(graph: Any) -> tuple[list[Any], list[Any]]:
    """Returns the operations of the trainable variables, in the order of their collection, and those of all others."""
    trainable = [each.op for each in graph.get_collection(v1.GraphKeys.TRAINABLE_VARIABLES)]
    trainable = list(dict.fromkeys(trainable))
    others = [each for each in graph.get_operations() if each.type in VARIABLES and each not in set(trainable)]
    return trainable, others


def needed_variables(tensors: Iterable[Any], fed: Iterable[str | None]) -> set[str]:
    """Returns the names of the variables that tensors are computed from."""
    found = closure([each.op for each in tensors], {name for name in fed if name})
    return {each.name for each in found.values() if each.type in VARIABLES}


def values_of(session: Any, operations: Iterable[Any]) -> dict[str, Value]:
    """Returns the values of variables, by the names of their operations; one without a value is left out."""
    operations = list(operations)
    graph = session.graph
    with graph.as_default(), v1.name_scope("sparkflow_values"):
        known = session.run([_is_initialized(each) for each in operations])
        read = {each.name: _read(each) for each, has_value in zip(operations, known, strict=True) if has_value}
    found = {name: np.asarray(value) for name, value in session.run(read).items()}
    for name, value in found.items():
        if value.dtype.hasobject:
            raise ModelError(f"The variable {name!r} must hold numbers. Received: strings. Keep them in a tf.constant.")
    return found


def _session(graph: Any) -> Any:
    return v1.Session(graph=graph, config=v1.ConfigProto(device_count={"GPU": 0}))


def _is_initialized(variable: Any) -> Any:
    handle = variable.outputs[0]
    if variable.type == "VarHandleOp":
        return tf.raw_ops.VarIsInitializedOp(resource=handle)
    return tf.raw_ops.IsVariableInitialized(ref=handle)


def _read(variable: Any) -> Any:
    handle = variable.outputs[0]
    if variable.type == "VarHandleOp":
        return tf.raw_ops.ReadVariableOp(resource=handle, dtype=variable.get_attr("dtype"))
    return tf.identity(handle)
