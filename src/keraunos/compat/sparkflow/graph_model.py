"""A graph with values: what a fit makes, what is saved, and what predictions are made from. Runs on the driver.

It is kept whole, the graph as the JSON that the user has, so that other tensors can be asked for later. What goes to
the workers is cut down to what a prediction needs.
"""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keraunos.errors import ModelError
from keraunos.job.training_job import ModelSource
from keraunos.learners.archive_parts import arrays_in
from keraunos.learners.graph_archive import Value
from keraunos.learners.graph_files import inflated
from keraunos.learners.graph_trust import check_graph, check_reached
from keraunos.ml.signature import Port
from keraunos.trust import trusted_operations, trusting

GRAPH_FILE = "graph.json.gz"
VALUES_FILE = "values.npz"


@dataclass(frozen=True, eq=False)
class GraphModel:
    """A MetaGraphDef in JSON and the values of its variables by name: the trainable ones first, in their order.

    `allowed` is `None` for a graph that a program built, which may do anything. One of a file may compute, and do what
    was trusted when it was read: `allowed` has the names.
    """

    graph: str
    values: Mapping[str, Value]
    allowed: tuple[str, ...] | None = None

    @classmethod
    def of_weights(cls, graph: str, weights: Sequence[Any]) -> GraphModel:
        """A graph with a list of values: those of the trainable variables, or of all, in the order of `values`."""
        from keraunos.compat.sparkflow import metagraph

        live = metagraph.imported(graph)
        trainable, others = metagraph.variables(live)
        if len(weights) not in (len(trainable), len(trainable) + len(others)):
            raise ModelError(
                f"`modelWeights` must have a value for each of the graph's {len(trainable)} trainable variables, or "
                f"for all {len(trainable) + len(others)}. Received: {len(weights)}."
            )
        with metagraph.initialized(live) as session:
            values = metagraph.values_of(session, [*trainable, *others])
        for name, value in zip(values, weights, strict=False):
            array = np.asarray(value, values[name].dtype)
            if array.shape != values[name].shape:
                raise ModelError(
                    f"`modelWeights` must have the shapes of the variables. Expected: {values[name].shape} for "
                    f"{name!r}. Received: {array.shape}."
                )
            values[name] = array
        return cls(graph, values)

    def source(self, tf_input: str, tf_output: str, dropout: str | None, keeps: bool) -> tuple[ModelSource, Port, Port]:
        """Returns the model for prediction on workers, with its inputs and outputs."""
        from keraunos.compat.sparkflow import metagraph
        from keraunos.learners.graph_source import graph_source

        live = metagraph.imported(self.graph)
        if self.allowed is not None:
            with trusting(*self.allowed):
                check_reached(live.as_graph_def(), [tf_output], "the saved graph", fed={_operation(tf_input)})
        given = metagraph.tensor(live, tf_input, "tfInput")
        output = metagraph.tensor(live, tf_output, "tfOutput")
        feeds = {} if dropout is None else {metagraph.tensor(live, dropout, "tfDropout"): 1.0 if keeps else 0.0}
        needed = metagraph.needed_variables([output], [tf_input, dropout])
        missing = sorted(needed - self.values.keys())
        if missing:
            raise ModelError(
                f"`tfOutput` must depend on variables that the model has values for. Received: {tf_output!r}, which "
                f"needs {', '.join(map(repr, missing))}."
            )
        values = {name: value for name, value in self.values.items() if name in needed}
        with metagraph.holding(live, values) as session:
            made = graph_source(session, inputs={"input": given}, outputs={"output": output}, feeds=feeds)
        return made, port_of("input", given), port_of("output", output)

    def to_files(self) -> dict[str, bytes]:
        """Returns the files that `from_files` reads back; nothing is pickled."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as folder:
            for name, value in self.values.items():
                with folder.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, _storable(value), allow_pickle=False)
        return {GRAPH_FILE: graph_to_bytes(self.graph), VALUES_FILE: buffer.getvalue()}

    @classmethod
    def from_files(cls, files: Mapping[str, bytes]) -> GraphModel:
        """Returns the model that `to_files` wrote."""
        from keraunos.compat.sparkflow import metagraph

        graph = graph_from_bytes(files[GRAPH_FILE])
        check_graph(metagraph.parsed(graph).graph_def, "the saved graph", saving=True)
        return cls(graph, arrays_in(files[VALUES_FILE]), trusted_operations())


def graph_to_bytes(text: str) -> bytes:
    """Returns a graph's JSON as the content of its file."""
    return gzip.compress(text.encode(), mtime=0)


def graph_from_bytes(content: bytes) -> str:
    """Returns the JSON in the content of its file."""
    return inflated(content, gzip=True).decode()


def _operation(tensor: str) -> str:
    return tensor.partition(":")[0]


def port_of(name: str, tensor: Any) -> Port:
    """Returns a tensor's shape without the rows, and its type; a shape that is not known is one of any length."""
    shape = (None,) if tensor.shape.rank is None else tuple(tensor.shape.as_list()[1:])
    return Port(name, shape, tensor.dtype.base_dtype.name)


def _storable(value: Value) -> Value:
    # numpy has no name on disk for bfloat16, whose values single precision holds exactly.
    return value.astype(np.float32) if value.dtype.name == "bfloat16" else value
