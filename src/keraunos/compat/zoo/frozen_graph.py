"""TensorFlow graphs whose variables have become arrays, and the folders they are exported to. Runs on the driver.

A folder holds `frozen_inference_graph.pb`, a graph with its values in it, and `graph_meta.json`, which names its inputs
and outputs and, where it may be trained, those of its constants that were variables: the format of Analytics Zoo's
`export_tf`. In a `FrozenGraph` the values are separate from the graph, so that the owner can change them.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.errors import ModelError
from keraunos.launch.given_paths import given_path
from keraunos.learners.graph_files import check_saved_model, inflated
from keraunos.learners.graph_trust import check_graph, check_reached

GRAPH_FILE, META_FILE = "frozen_inference_graph.pb", "graph_meta.json"

# Constants of at least this many elements are kept as their own arrays rather than in the graph.
_LARGE = 1024
_VARIABLES = {"VariableV2", "Variable", "VarHandleOp"}
_HOLDS_STATE = {*_VARIABLES, "HashTable", "HashTableV2", "MutableHashTable", "MutableHashTableV2", "IteratorV2"}
_NAMES_SHOWN = 5
# What TensorFlow raises for a graph that was damaged.
_NO_GRAPH = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


@dataclass(frozen=True, eq=False)
class FrozenGraph:
    """A graph as a function of its inputs and of arrays.

    Attributes:
        graph: the serialised GraphDef; inputs, variables and constants are placeholders in it.
        inputs: the names of the tensors that are fed.
        outputs: the names of the tensors that are computed.
        variables: the names of the operations of trainable values.
        constants: the same for other large arrays.
        values: the arrays by those names; omitted if they are stored elsewhere.
    """

    graph: bytes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    variables: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    values: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    def graph_def(self) -> Any:
        """Returns the graph as a protobuf."""
        from tensorflow.core.framework import graph_pb2

        return graph_pb2.GraphDef.FromString(self.graph)

    def with_values(self, values: Mapping[str, npt.NDArray[Any]]) -> FrozenGraph:
        """Returns the same graph with other arrays."""
        return replace(self, values=dict(values))

    def closed(self) -> Any:
        """Returns the graph as a protobuf with the arrays in it, which needs nothing but its inputs."""
        from tensorflow.python.framework import tensor_util

        graph = self.graph_def()
        for node in graph.node:
            if node.name in self.values:
                dtype = node.attr["dtype"].type
                node.op = "Const"
                node.ClearField("attr")
                node.attr["dtype"].type = dtype
                node.attr["value"].tensor.CopyFrom(tensor_util.make_tensor_proto(self.values[node.name], dtype))
        return graph

    def specs(self, names: Sequence[str]) -> list[tuple[Any, Any]]:
        """Returns the type and the shape that placeholders have in the graph, by the names of their operations."""
        import tensorflow as tf

        nodes = {node.name: node for node in self.graph_def().node}
        found = []
        for name in names:
            attributes = nodes[name.partition(":")[0]].attr
            shape = tf.TensorShape(attributes["shape"].shape) if "shape" in attributes else tf.TensorShape(None)
            found.append((tf.as_dtype(attributes["dtype"].type), shape))
        return found

    def to_json(self) -> dict[str, Any]:
        """Returns everything but the arrays, as plain data."""
        return {
            "graph": base64.b64encode(zlib.compress(self.graph)).decode("ascii"),
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
            "variables": list(self.variables),
            "constants": list(self.constants),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> FrozenGraph:
        """Returns what `to_json` described; the arrays are left out."""
        try:
            content = base64.b64decode(data["graph"])
            names = ("inputs", "outputs", "variables", "constants")
            inputs, outputs, variables, constants = (tuple(data[each]) for each in names)
        except (LookupError, TypeError, ValueError) as error:
            raise ModelError(
                "A graph in a model's configuration must have its names and its bytes. Received: "
                f"{type(error).__name__}: {error}. Save the model again."
            ) from error
        return cls(inflated(content), inputs, outputs, variables, constants)


def freeze(session: Any, inputs: Sequence[Any], outputs: Sequence[Any], *, trainable: bool) -> FrozenGraph:
    """Returns the part of a session's graph that leads from inputs to outputs, with the session's values.

    With `trainable`, its trainable variables stay variables; all others become constants.
    """
    import tensorflow as tf
    from tensorflow.python.framework import convert_to_constants

    graph = session.graph
    given, wanted = (_tensors(graph, each, name) for each, name in ((inputs, "inputs"), (outputs, "outputs")))
    plain = _with_placeholders(graph.as_graph_def(), {tensor.op.name: tensor for tensor in given})
    plain = _reached(plain, [tensor.op.name for tensor in wanted])
    _check_inputs(plain, given)
    kept = [node.name for node in plain.node if node.op in _VARIABLES]
    if kept:
        try:
            plain = convert_to_constants.convert_variables_to_constants_from_session_graph(
                session, plain, [tensor.op.name for tensor in wanted]
            )
        except tf.errors.FailedPreconditionError as error:
            raise ModelError(
                "The session must have a value for every variable of the graph. Received: a variable without one "
                f"({error.message.splitlines()[0]}). Run the initializer, or restore a checkpoint, first."
            ) from error
    trained = {each.op.name for each in graph.get_collection(tf.compat.v1.GraphKeys.TRAINABLE_VARIABLES)}
    # A SavedModel of TensorFlow 2 does not declare which of its variables are trained.
    variables = [name for name in kept if not trained or name in trained] if trainable else []
    names = (tuple(tensor.name for tensor in given), tuple(tensor.name for tensor in wanted))
    return _opened(plain, *names, variables)


def read_folder(
    folder: str, input_names: Sequence[str] | None = None, output_names: Sequence[str] | None = None
) -> tuple[FrozenGraph, bool]:
    """Returns the graph in a folder that `write_folder`, or Analytics Zoo's `export_tf`, wrote.

    And whether it is trained.
    """
    path = given_path(folder, "folder")
    try:
        meta = json.loads(path.child(META_FILE).read())
        content = path.child(GRAPH_FILE).read()
        _check_meta(meta)
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(
            f"`folder` must hold {GRAPH_FILE!r} and {META_FILE!r}. Received: {str(folder)!r} ({error}). Write it with "
            "export_tf or TFNet.save."
        ) from error
    found = _read(content, input_names or meta["input_names"], output_names or meta["output_names"], meta)
    return found, bool(meta.get("trainable", found.variables))


def read_file(path: str, input_names: Sequence[str] | None, output_names: Sequence[str] | None) -> FrozenGraph:
    """Returns the graph in a file with a frozen GraphDef, between the tensors that are named."""
    if not input_names or not output_names:
        raise ModelError(
            "`input_names` and `output_names` must be given for a file with a graph. Received: "
            f"{input_names!r} and {output_names!r}."
        )
    return _read(given_path(path).read(), input_names, output_names, {})


def read_saved_model(
    path: str,
    tag: str | None = None,
    signature: str | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    *,
    init_op: str | None = None,
    session_config: Any = None,
) -> FrozenGraph:
    """Returns the graph of a SavedModel, between the tensors of a signature or those that are named."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with (
        given_path(path, "model_path").local() as local,
        v1.Session(graph=tf.Graph(), config=session_config) as session,
    ):
        check_saved_model(str(local))
        try:
            meta = v1.saved_model.load(session, [tag or v1.saved_model.tag_constants.SERVING], str(local))
        except (OSError, RuntimeError) as error:
            raise ModelError(
                f"`model_path` must be a SavedModel with the tag {tag or 'serve'!r}. Received: {path!r} ({error})."
            ) from error
        if init_op is not None:
            name = str(getattr(init_op, "name", init_op))
            check_reached(session.graph.as_graph_def(), [name], f"the SavedModel {str(path)!r}")
            session.run(init_op)
        if inputs is None or outputs is None:
            found = _signature(meta, signature, path)
            inputs = inputs or [found.inputs[key].name for key in sorted(found.inputs)]
            outputs = outputs or [found.outputs[key].name for key in sorted(found.outputs)]
        definition = session.graph.as_graph_def()
        ends = [str(getattr(each, "name", each)) for each in outputs]
        check_reached(definition, ends, f"the SavedModel {str(path)!r}")
        return freeze(session, inputs, outputs, trainable=True)


def write_folder(folder: str, frozen: FrozenGraph, *, trainable: bool) -> None:
    """Write a graph with its values to a folder, where `read_folder` finds it."""
    meta = {
        "input_names": list(frozen.inputs),
        "output_names": list(frozen.outputs),
        "variables": [f"{name}:0" for name in frozen.variables],
        "trainable": trainable,
    }
    with given_path(folder, "folder").written() as path:
        path.mkdir()
        (path / GRAPH_FILE).write_bytes(frozen.closed().SerializeToString())
        (path / META_FILE).write_text(json.dumps(meta), encoding="utf-8")


def export_folder(
    session: Any,
    folder: str,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    *,
    generate_backward: bool = False,
    allow_non_differentiable_input: bool = True,
) -> None:
    """Write the part of a session's graph that leads from inputs to outputs: what `zoo.util.tf.export_tf` does."""
    frozen = freeze(session, inputs, outputs, trainable=generate_backward)
    if generate_backward:
        check_differentiable(frozen, every_input=not allow_non_differentiable_input)
    write_folder(folder, frozen, trainable=generate_backward)


def with_variables(frozen: FrozenGraph, names: Sequence[str]) -> FrozenGraph:
    """Returns the same graph, of whose constants those of the names may be trained."""
    return _opened(frozen.closed(), frozen.inputs, frozen.outputs, names)


def part_of(frozen: FrozenGraph, operations: Sequence[str]) -> FrozenGraph:
    """Returns the part that ends with the first results of those operations, with the inputs that it needs."""
    plain = frozen.graph_def()
    reached = _reached(plain, _known(plain, operations))
    inside = {node.name for node in reached.node}
    inputs = tuple(name for name in frozen.inputs if name.partition(":")[0] in inside)
    if not inputs:
        raise ModelError(f"The outputs must depend on an input. Received: {_shown(operations)}, which need none.")
    return FrozenGraph(
        reached.SerializeToString(),
        inputs,
        tuple(name if ":" in name else f"{name}:0" for name in operations),
        tuple(name for name in frozen.variables if name in inside),
        tuple(name for name in frozen.constants if name in inside),
        {name: value for name, value in frozen.values.items() if name in inside},
    )


def leading_to(frozen: FrozenGraph, operations: Sequence[str]) -> set[str]:
    """Returns the names of the operations that those operations need, and theirs."""
    plain = frozen.graph_def()
    return {node.name for node in _reached(plain, _known(plain, operations)).node}


def _known(plain: Any, operations: Sequence[str]) -> list[str]:
    found = [name.partition(":")[0] for name in operations]
    missing = sorted(set(found) - {node.name for node in plain.node})
    if missing or not found:
        raise ModelError(
            f"An operation of the graph must be named. Received: {_shown(missing) or 'none'}, which it does not have."
        )
    return found


def check_differentiable(frozen: FrozenGraph, *, every_input: bool) -> None:
    """Raise an error if the graph has no gradient by any variable or input or, with `every_input`, by each input."""
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        tf.graph_util.import_graph_def(frozen.graph_def(), name="")
        found = gradients_of(graph, frozen)
        lacking = [name for name, each in zip(frozen.inputs, found, strict=False) if each is None]
    if all(each is None for each in found) or (every_input and lacking):
        raise ModelError(
            f"The outputs must have a gradient by {'every input' if every_input else 'something'}. Received: none by "
            f"{_shown(lacking)}. Export with generate_backward=False, or with allow_non_differentiable_input=True."
        )


def gradients_of(graph: Any, frozen: FrozenGraph, weights: Sequence[Any] | None = None) -> list[Any]:
    """Returns the gradients by each input and each variable, or `None`, of the outputs weighed by `weights`."""
    import tensorflow as tf

    outputs = [graph.get_tensor_by_name(name) for name in frozen.outputs]
    places = [*frozen.inputs, *(f"{name}:0" for name in frozen.variables)]
    floats = [each.dtype.is_floating for each in outputs]
    chosen = [each for each, is_float in zip(outputs, floats, strict=True) if is_float]
    given = None if weights is None else [each for each, ok in zip(weights, floats, strict=True) if ok]
    if not chosen:
        return [None] * len(places)
    try:
        found = tf.gradients(chosen, [graph.get_tensor_by_name(name) for name in places], grad_ys=given)
    except (LookupError, TypeError, ValueError) as error:
        raise ModelError(
            f"The graph cannot be differentiated. Expected: operations that have a gradient. Received: {error} Use it "
            "for predictions only."
        ) from error
    return [None if each is None else tf.convert_to_tensor(each) for each in found]


def _check_meta(meta: Any) -> None:
    """Raises `ValueError` if a folder's metadata of its graph contains something else than names."""
    if not isinstance(meta, dict):
        raise ValueError(f"{META_FILE!r} must hold a JSON object")  # noqa: TRY004 - the caller's error for any file
    for key in ("input_names", "output_names", "variables"):
        names = meta.get(key, [] if key == "variables" else None)
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            raise ValueError(f"{key!r} in {META_FILE!r} must be a list of names, not {str(names)[:100]}")


def _read(content: bytes, inputs: Sequence[str], outputs: Sequence[str], meta: Mapping[str, Any]) -> FrozenGraph:
    import tensorflow as tf
    from google.protobuf.message import DecodeError

    try:
        plain = tf.compat.v1.GraphDef.FromString(content)
    except DecodeError as error:
        raise ModelError("The file must hold a GraphDef. Received: bytes that are none.") from error
    check_graph(plain, "the frozen graph")
    variables = [name.partition(":")[0] for name in meta.get("variables") or ()]
    try:
        with tf.Graph().as_default() as graph:
            tf.graph_util.import_graph_def(plain, name="")
            given, wanted = (_tensors(graph, each, name) for each, name in ((inputs, "inputs"), (outputs, "outputs")))
        plain = _with_placeholders(plain, {tensor.op.name: tensor for tensor in given})
        plain = _reached(plain, [tensor.op.name for tensor in wanted])
        _check_inputs(plain, given)
        return _opened(plain, tuple(each.name for each in given), tuple(each.name for each in wanted), variables)
    except ModelError:
        raise
    except (*_NO_GRAPH, tf.errors.OpError) as error:
        raise ModelError(
            f"The file must hold a graph that TensorFlow can read. Received: {type(error).__name__}: "
            f"{str(error)[:200]}. Export it again."
        ) from error


def _opened(plain: Any, inputs: tuple[str, ...], outputs: tuple[str, ...], variables: Sequence[str]) -> FrozenGraph:
    """Take the variables, and the large constants, out of a graph whose values are all constants."""
    import tensorflow as tf
    from tensorflow.python.framework import tensor_util

    state = [f"{node.name} ({node.op})" for node in plain.node if node.op in _HOLDS_STATE]
    if state:
        raise ModelError(
            f"The graph must hold nothing but variables between its inputs and outputs. Received: {_shown(state)}. "
            "Look words up, and read data, before the graph."
        )
    values: dict[str, npt.NDArray[Any]] = {}
    wanted = set(variables)
    fed = {name.partition(":")[0] for name in (*inputs, *outputs)}
    for node in plain.node:
        node.device = ""
        # It names neighbours that may be gone.
        node.attr.pop("_class", None)
        if node.op != "Const" or node.name in fed:
            continue
        dtype = tf.as_dtype(node.attr["dtype"].type)
        if dtype.is_floating and (node.name in wanted or _elements(node) >= _LARGE):
            values[node.name] = tensor_util.MakeNdarray(node.attr["value"].tensor)
            _become_placeholder(node, dtype, values[node.name].shape)
    trained = tuple(name for name in variables if name in values)
    others = tuple(name for name in values if name not in wanted)
    return FrozenGraph(plain.SerializeToString(), inputs, outputs, trained, others, values)


def _with_placeholders(plain: Any, tensors: Mapping[str, Any]) -> Any:
    """Returns the graph with the operations of those tensors replaced by placeholders."""
    for node in plain.node:
        tensor = tensors.get(node.name)
        if tensor is not None and node.op != "Placeholder":
            if tensor.value_index or len(tensor.op.outputs) > 1:
                raise ModelError(
                    "An input must be a placeholder, or the one result of an operation. Received: "
                    f"{tensor.name!r} of {tensor.op.type!r}."
                )
            shape = None if tensor.shape.rank is None else tuple(tensor.shape.as_list())
            _become_placeholder(node, tensor.dtype, shape)
    return plain


def _become_placeholder(node: Any, dtype: Any, shape: Sequence[int | None] | None) -> None:
    import tensorflow as tf

    node.op = "Placeholder"
    del node.input[:]
    node.ClearField("attr")
    node.attr["dtype"].type = dtype.as_datatype_enum
    node.attr["shape"].shape.CopyFrom(tf.TensorShape(shape).as_proto())


def _reached(plain: Any, ends: Sequence[str]) -> Any:
    """Returns the part of a graph that the ends depend on."""
    nodes = {node.name: node for node in plain.node}
    found: set[str] = set()
    waiting = list(ends)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [each.removeprefix("^").partition(":")[0] for each in nodes[name].input]
    kept = type(plain)()
    kept.versions.CopyFrom(plain.versions)
    kept.library.CopyFrom(plain.library)
    kept.node.extend(node for node in plain.node if node.name in found)
    return kept


def _check_inputs(plain: Any, given: Sequence[Any]) -> None:
    names = {tensor.op.name for tensor in given}
    inside = {node.name for node in plain.node}
    unused = [tensor.name for tensor in given if tensor.op.name not in inside]
    if unused:
        raise ModelError(f"The outputs must depend on every input. Received: {_shown(unused)}, which they do not need.")
    missing = [node.name for node in plain.node if node.op == "Placeholder" and node.name not in names]
    if missing:
        raise ModelError(
            f"Every placeholder that the outputs need must be an input. Received: no input for {_shown(missing)}. Name "
            "it among the inputs, or build the graph for inference without it."
        )


def _tensors(graph: Any, given: Any, argument: str) -> list[Any]:
    each_given = [given] if isinstance(given, str) or hasattr(given, "op") else list(given)
    if not each_given:
        raise ModelError(f"`{argument}` must name at least one tensor. Received: {given!r}.")
    found = []
    for each in each_given:
        name = each if isinstance(each, str) else getattr(each, "name", None)
        try:
            tensor = graph.get_tensor_by_name(name if ":" in str(name) else f"{name}:0")
        except (KeyError, ValueError, TypeError) as error:
            raise ModelError(
                f"`{argument}` must be tensors of the graph. Received: {each!r}, which it does not have."
            ) from error
        if not isinstance(each, str) and getattr(each, "graph", graph) is not graph:
            raise ModelError(f"`{argument}` must be tensors of the session's graph. Received: {each!r} of another.")
        found.append(tensor)
    return found


def _signature(meta: Any, signature: str | None, path: Any) -> Any:
    name = signature or "serving_default"
    known: Callable[[], list[str]] = lambda: sorted(meta.signature_def)  # noqa: E731 - only for the message
    if name not in meta.signature_def:
        raise ModelError(
            f"`signature` must be one of the SavedModel's: {', '.join(map(repr, known()))}. Received: {name!r} of "
            f"{path!r}. Or name `inputs` and `outputs`."
        )
    return meta.signature_def[name]


def _elements(node: Any) -> int:
    return int(np.prod([each.size for each in node.attr["value"].tensor.tensor_shape.dim], dtype=np.int64))


def _shown(names: Sequence[str]) -> str:
    more = len(names) - _NAMES_SHOWN
    return ", ".join(map(repr, names[:_NAMES_SHOWN])) + (f" and {more} more" if more > 0 else "")
