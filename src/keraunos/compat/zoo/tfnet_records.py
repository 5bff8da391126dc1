"""A net's predictions for the records of an RDD. Runs on the driver; `plain_records` on executors."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy.typing as npt

from keraunos.compat.zoo.bigdl.util.common import Sample
from keraunos.compat.zoo.frozen_graph import FrozenGraph
from keraunos.errors import DataError
from keraunos.job.columns import Columns, Slot
from keraunos.launch.predict import predict_rdd


def predicted(rdd: Any | None, arrays: Sequence[npt.NDArray[Any]] | None, graph: FrozenGraph, rows: int) -> Any:
    """An RDD of what the graph gives for the records of an RDD, or for the rows of arrays."""
    names = [f"x{number}" for number in range(len(graph.inputs))]
    if rdd is None:
        assert arrays is not None
        rdd = _spread(arrays)
    records = rdd.mapPartitions(functools.partial(plain_records, len(names)), preservesPartitioning=True)
    columns = Columns(features=tuple(Slot(name, (name,)) for name in names))
    return predict_rdd(records, _source(graph, names), columns, batch_rows=rows)


def plain_records(inputs: int, records: Iterator[Any]) -> Iterator[list[Any]]:
    """The inputs of each record, as lists."""
    for record in records:
        entries = record.arrays() if isinstance(record, Sample) else record
        if not isinstance(entries, (list, tuple)):
            entries = [entries]
        if len(entries) < inputs:
            raise DataError(f"A record must have {inputs} inputs. Received: {len(entries)}.")
        yield list(entries[:inputs])


def _spread(arrays: Sequence[npt.NDArray[Any]]) -> Any:
    """Rows of arrays on the driver as an RDD of records."""
    from pyspark import SparkContext

    context = SparkContext.getOrCreate()
    return context.parallelize(list(zip(*arrays, strict=True)), min(len(arrays[0]) or 1, context.defaultParallelism))


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
