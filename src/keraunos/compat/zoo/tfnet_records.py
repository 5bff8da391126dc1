"""A net's predictions for records. Runs on the driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keraunos.compat.zoo.frozen_graph import FrozenGraph
from keraunos.compat.zoo.sample_records import spread_records
from keraunos.job.columns import Columns, Slot
from keraunos.launch.predict import predict_rdd


def predicted(rdd: Any, graph: FrozenGraph, rows: int) -> Any:
    """An RDD of what the graph gives for the records of an RDD."""
    names = [f"x{number}" for number in range(len(graph.inputs))]
    columns = Columns(features=tuple(Slot(name, (name,)) for name in names))
    return predict_rdd(spread_records(rdd, len(names)), _source(graph, names), columns, batch_rows=rows)


def _source(graph: FrozenGraph, names: Sequence[str]) -> Any:
    import tensorflow as tf

    from keraunos.learners.graph_source import graph_source

    with tf.Graph().as_default() as closed:
        tf.graph_util.import_graph_def(graph.closed(), name="")
        return graph_source(
            closed,
            inputs=dict(zip(names, graph.inputs, strict=True)),
            outputs={f"y{number}": name for number, name in enumerate(graph.outputs)},
        )
