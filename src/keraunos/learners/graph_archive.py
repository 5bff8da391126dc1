"""A TensorFlow graph and its values as bytes. Runs on the driver and on workers; needs no TensorFlow.

An archive is a short header (JSON), a MetaGraph, the parameters as one vector, and the values of the variables that are
not exchanged. The driver can read and replace the vector without knowing anything about graphs.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from keraunos.errors import ModelError
from keraunos.parameters import Layout, Vector

Value = npt.NDArray[Any]

_START = struct.Struct("!4sQ")
_MAGIC = b"KGA1"


@dataclass(frozen=True, eq=False)
class GraphArchive:
    """A graph that can be trained, measured or asked for outputs; which of them, its fields say.

    Attributes:
        graph: the MetaGraph, as serialised bytes; only what the fields below need is in it.
        layout: the exchanged variables by the names of their operations: trained ones first, then float state.
        parameters: their values, one behind the other, as bytes of the layout's type.
        local: the values of all other variables, by the names of their operations; they stay with each worker.
        inputs: from slot name to placeholder, for the features.
        targets: the same for the labels; may be empty.
        loss: the scalar tensor that is made smaller, taken as the mean over a batch's rows.
        train_op: the operation that takes a whole step with the graph's own optimizer.
        derivatives: for each trained variable the dense tensor that holds the gradient of a batch.
        gradients: for each trained variable the tensor that `train_op` takes as its gradient, in whose place the
            gradient of all workers is put.
        updates: operations that run with each training step, such as those that move batch statistics.
        optimizer: the local variables that a step changes, without which a worker could not continue another's work.
        outputs: from name to tensor, for predictions.
        metrics: from name to scalar tensor, taken as means over a batch's rows.
        feeds: from tensor to its value in training and its value in evaluation and prediction.
        tables: operations that fill lookup tables, run once.
        observed: the tensors that measures compare, where there are any: an output and its labels.
        session: what the user says of sessions, as a serialised ConfigProto in hexadecimal digits.
    """

    graph: bytes
    layout: Layout
    parameters: bytes
    local: Mapping[str, Value] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    targets: Mapping[str, str] = field(default_factory=dict)
    loss: str | None = None
    train_op: str | None = None
    derivatives: tuple[str, ...] | None = None
    gradients: tuple[str, ...] | None = None
    updates: tuple[str, ...] = ()
    optimizer: tuple[str, ...] = ()
    outputs: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    feeds: Mapping[str, tuple[Value, Value]] = field(default_factory=dict)
    tables: tuple[str, ...] = ()
    observed: Mapping[str, str] = field(default_factory=dict)
    session: str = ""

    def vector(self) -> Vector:
        """The parameters as one vector of the caller's own."""
        return np.frombuffer(self.parameters, dtype=self.layout.dtype).copy()

    def with_vector(self, vector: Vector) -> GraphArchive:
        """The same graph with other parameters."""
        if vector.shape != (self.layout.size,):
            raise ModelError(
                f"The vector for the graph must have {self.layout.size} elements. Received: shape {vector.shape}."
            )
        return replace(self, parameters=np.ascontiguousarray(vector, dtype=self.layout.dtype).tobytes())

    def values(self) -> dict[str, Value]:
        """Every variable's value by the name of its operation, exchanged ones included."""
        return {**self.local, **dict(zip(self.layout.names, self.layout.split(self.vector()), strict=True))}

    def to_bytes(self) -> bytes:
        """One blob: the header's length, the header, and behind it the graph, the parameters and the other values."""
        values = [*self.local.values(), *(each for pair in self.feeds.values() for each in pair)]
        plain = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in _APART}
        header = {
            **{name: dict(value) if isinstance(value, Mapping) else value for name, value in plain.items()},
            "layout": self.layout.to_json(),
            "local": list(self.local),
            "feeds": list(self.feeds),
            "arrays": [[value.dtype.name, list(value.shape)] for value in values],
            "sizes": [len(self.graph), len(self.parameters)],
        }
        blob = json.dumps(header).encode()
        return b"".join(
            [
                _START.pack(_MAGIC, len(blob)),
                blob,
                self.graph,
                self.parameters,
                *(np.ascontiguousarray(value).tobytes() for value in values),
            ]
        )

    @classmethod
    def from_bytes(cls, blob: bytes) -> GraphArchive:
        """The archive that `to_bytes` wrote."""
        header, body = _opened(blob)
        graph_size, size = header.pop("sizes")
        arrays = _Arrays(body[graph_size + size :], header.pop("arrays"))
        local = {name: arrays.take() for name in header.pop("local")}
        feeds = {name: (arrays.take(), arrays.take()) for name in header.pop("feeds")}
        layout = Layout.from_json(header.pop("layout"))
        rest: dict[str, Any] = {name: tuple(each) if isinstance(each, list) else each for name, each in header.items()}
        return cls(
            graph=bytes(body[:graph_size]),
            layout=layout,
            parameters=bytes(body[graph_size : graph_size + size]),
            local=local,
            feeds=feeds,
            **rest,
        )


_APART = ("graph", "layout", "parameters", "local", "feeds")


class _Arrays:
    """Arrays that lie one behind the other, taken in their order."""

    def __init__(self, body: memoryview, kinds: Sequence[Any]) -> None:
        self._body = body
        self._kinds = iter(kinds)

    def take(self) -> Value:
        name, shape = next(self._kinds)
        dtype = np.dtype(getattr(ml_dtypes, name, name))
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        taken, self._body = self._body[:size], self._body[size:]
        return np.frombuffer(taken, dtype=dtype).reshape(shape).copy()


def _opened(blob: bytes) -> tuple[dict[str, Any], memoryview]:
    view = memoryview(blob)
    if len(view) < _START.size or _START.unpack_from(view)[0] != _MAGIC:
        raise ModelError(
            "The model's bytes are no archive of a TensorFlow graph. Expected: what `graph_source` made. "
            f"Received: {len(view)} bytes that begin with {bytes(view[:8])!r}."
        )
    length = _START.unpack_from(view)[1]
    header: dict[str, Any] = json.loads(bytes(view[_START.size : _START.size + length]))
    return header, view[_START.size + length :]
