"""What was named in a TensorFlow graph, found or refused. Runs on the driver.

Works on a live graph's own objects; TensorFlow itself is not imported here.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from keraunos.errors import ModelError
from keraunos.learners.graph_analysis import PLACEHOLDERS, PYTHON, VARIABLES, closure
from keraunos.learners.graph_archive import Value


@dataclass(frozen=True)
class Parts:
    """The parts of a graph that training and serving need: tensors, and operations for `steps` and `updates`."""

    inputs: Mapping[str, Any]
    targets: Mapping[str, Any]
    loss: Any = None
    steps: Sequence[Any] = ()
    outputs: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    updates: Sequence[Any] = ()
    feeds: Mapping[str, tuple[Value, Value]] = field(default_factory=dict)
    observed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def served(self) -> set[str]:
        """The tensors that have a value in predictions."""
        return {tensor.name for tensor in self.inputs.values()} | set(self.feeds)

    @property
    def fed(self) -> set[str]:
        """The tensors that have a value in training."""
        return self.served | {tensor.name for tensor in self.targets.values()}


class Names:
    """A graph's tensors, operations and variables, by themselves or by name."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph

    def tensor(self, given: Any, role: str) -> Any:
        """The tensor that was given; an operation's name stands for its first output."""
        wanted = f"{given}:0" if isinstance(given, str) and ":" not in given else given
        return self._element(wanted, given, role, allow_operation=False)

    def tensors(self, given: Mapping[str, Any] | None, role: str) -> dict[str, Any]:
        """The tensors that were given by name of a slot, an output or a metric."""
        return {str(name): self.tensor(each, f"{role}[{name!r}]") for name, each in (given or {}).items()}

    def operations(self, given: Any, role: str) -> list[Any]:
        """The operation, or all of several, that were given; a tensor stands for the operation that makes it."""
        if given is None:
            return []
        if isinstance(given, Mapping):
            given = list(given.values())
        if isinstance(given, (list, tuple)):
            return [operation for each in given for operation in self.operations(each, role)]
        element = self._element(given, given, role)
        return [getattr(element, "op", element)]

    def variable(self, given: Any) -> Any:
        """The operation of the variable that was given."""
        if isinstance(given, str):
            found = self._element(given.partition(":")[0], given, "variables")
        else:
            found = self._element(getattr(given, "op", given), given, "variables")
        operation = getattr(found, "op", found)
        if operation.type not in VARIABLES:
            # A variable of TensorFlow 1 is also known by the tensor that reads it.
            sources = [tensor.op for tensor in operation.inputs if tensor.op.type in VARIABLES]
            if len(sources) != 1:
                raise ModelError(
                    f"`variables` must be variables of the graph. Received: {given!r}, which is the output of an "
                    f"operation of type {operation.type!r}."
                )
            operation = sources[0]
        return operation

    def feed(self, given: Any, value: Any) -> tuple[str, tuple[Value, Value]]:
        """The name of a tensor and its two values, as arrays of its type."""
        tensor = self.tensor(given, "feeds")
        pair = value if isinstance(value, tuple) else (value, value)
        kind = tensor.dtype.as_numpy_dtype
        if len(pair) != 2 or np.dtype(kind).hasobject:
            raise ModelError(
                f"`feeds` must give {tensor.name!r} a number or an array, or a pair of them: the value in training and "
                f"the value in evaluation and prediction. Received: {value!r}."
            )
        try:
            arrays = tuple(np.asarray(each, dtype=kind) for each in pair)
        except (TypeError, ValueError) as error:
            raise ModelError(
                f"`feeds` has a value for {tensor.name!r} that is no {tensor.dtype.name}: {error}."
            ) from None
        for array in arrays:
            if not tensor.shape.is_compatible_with(array.shape):
                raise ModelError(
                    f"`feeds` must give {tensor.name!r} values of its shape. Expected: {tensor.shape}. "
                    f"Received: shape {array.shape}."
                )
        return tensor.name, (arrays[0], arrays[1])

    def _element(self, wanted: Any, given: Any, role: str, *, allow_operation: bool = True) -> Any:
        try:
            return self._graph.as_graph_element(wanted, allow_tensor=True, allow_operation=allow_operation)
        except (KeyError, TypeError, ValueError):
            pass
        kind = "a tensor or an operation" if allow_operation else "a tensor"
        if isinstance(given, str):
            known = [operation.name for operation in self._graph.get_operations()]
            close = difflib.get_close_matches(given.partition(":")[0], known, n=1)
            hint = f" Did you mean {close[0] + ':0'!r}?" if close else ""
            raise ModelError(f"`{role}` must name {kind} of the graph. Received: {given!r}, which is not in it.{hint}")
        if getattr(given, "graph", self._graph) is not self._graph:
            raise ModelError(
                f"`{role}` must be {kind} of the graph that is trained. Received: {getattr(given, 'name', given)!r}, "
                "which belongs to another graph. Build all parts of the model in one graph."
            )
        raise ModelError(f"`{role}` must be {kind} of the graph, or its name. Received: {given!r}.")


def check_parts(parts: Parts) -> None:
    """Refuse what cannot be fed, cannot travel, or is not one number."""
    for role, tensor in [
        *((f"inputs[{name!r}]", each) for name, each in parts.inputs.items()),
        *((f"targets[{name!r}]", each) for name, each in parts.targets.items()),
    ]:
        if tensor.dtype.name == "resource" or tensor.dtype._is_ref_dtype:
            raise ModelError(f"`{role}` must be a placeholder. Received: {tensor.name!r}, a variable.")
    if parts.loss is not None:
        _check_scalar("loss", parts.loss)
    for name, tensor in parts.metrics.items():
        _check_scalar(f"metrics[{name!r}]", tensor)
    trained = {"loss": [] if parts.loss is None else [parts.loss.op], "train_op": parts.steps, "updates": parts.updates}
    measured = {f"metrics[{name!r}]": [tensor.op] for name, tensor in parts.metrics.items()}
    measured |= {
        f"observed[{name!r}]": [tensor.op] for name, tensor in parts.observed.items() if tensor.name not in parts.fed
    }
    for role, operations in {**trained, **measured}.items():
        _check_reachable(role, operations, parts, parts.fed)
    for name, tensor in parts.outputs.items():
        if tensor.name not in parts.served:
            _check_reachable(f"outputs[{name!r}]", [tensor.op], parts, parts.served)


def can_be_fed(operation: Any, fed: Collection[str]) -> bool:
    """Whether every placeholder that an operation needs has a value."""
    return not _unfed(closure([operation], fed).values(), fed)


def shown(names: Iterable[str]) -> str:
    """Names for an error's message."""
    return ", ".join(map(repr, names)) or "none"


def _check_scalar(role: str, tensor: Any) -> None:
    if tensor.shape.rank not in (0, None):
        raise ModelError(
            f"`{role}` must be a scalar: one number for a batch. Received: {tensor.name!r} of shape {tensor.shape}. "
            "Reduce it, as with tf.reduce_mean."
        )
    if not tensor.dtype.base_dtype.is_floating:
        raise ModelError(
            f"`{role}` must be a floating-point number. Received: {tensor.name!r} of type {tensor.dtype.name}. "
            "Convert it, as with tf.cast."
        )


def _check_reachable(role: str, operations: Iterable[Any], parts: Parts, fed: Collection[str]) -> None:
    needed = closure(operations, fed).values()
    missing = _unfed(needed, fed)
    targets = {tensor.name for tensor in parts.targets.values()}
    if set(missing) & targets:
        raise ModelError(
            f"`{role}` must not depend on labels, which predictions do not have. Received: a tensor that needs "
            f"{shown(name for name in missing if name in targets)}."
        )
    if missing:
        raise ModelError(
            f"`{role}` needs {shown(missing)}, which nothing feeds. Expected: every placeholder in `inputs`, `targets` "
            f"or `feeds`. Received: {shown(sorted(fed))}. Add it to one of them."
        )
    for operation in needed:
        if operation.type in PYTHON:
            raise ModelError(
                f"`{role}` depends on {operation.name!r}, a Python function (tf.py_func), which cannot travel to "
                "workers. Write it with TensorFlow's operations, or apply it to the rows before training."
            )
        if (
            operation.type == "IteratorGetNext"
            or "Dequeue" in operation.type
            or operation.type.startswith("ReaderRead")
        ):
            raise ModelError(
                f"`{role}` reads rows from {operation.name!r} ({operation.type}), a source of the graph's own. "
                "Expected: rows that come from Spark through placeholders. Put its outputs into `inputs` and `targets`."
            )


def _unfed(operations: Iterable[Any], fed: Collection[str]) -> list[str]:
    names = [operation.outputs[0].name for operation in operations if operation.type in PLACEHOLDERS]
    return sorted(name for name in names if name not in fed)
