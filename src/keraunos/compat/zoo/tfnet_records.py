"""A net's predictions for records, and what they are worth. Runs on the driver, and measures on executors."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from keraunos.compat.zoo.bigdl.optim.validation import State, ValidationMethod, validation_method
from keraunos.compat.zoo.bigdl.util.common import EvaluatedResult
from keraunos.compat.zoo.feature.image_predictions import predict_image
from keraunos.compat.zoo.frozen_graph import FrozenGraph
from keraunos.compat.zoo.sample_records import spread_records
from keraunos.errors import JobError
from keraunos.job.columns import Columns, Slot
from keraunos.launch.predict import predict_rdd


def predicted(rdd: Any, graph: FrozenGraph, rows: int) -> Any:
    """Returns an RDD of what the graph returns for the records of an RDD."""
    names, columns = _fed(graph)
    return predict_rdd(spread_records(rdd, len(names)), _source(graph, names), columns, batch_rows=rows)


def predicted_images(images: Any, graph: FrozenGraph, rows: int, key: str, output_layer: Any) -> Any:
    """Images with what the graph returns for their samples."""
    names, columns = _fed(graph)
    return predict_image(images, _source(graph, names), columns, rows=rows, key=key, output_layer=output_layer)


def dataset_rows(dataset: Any, *, labels: bool = False) -> Any:
    """An RDD of the features of a `TFDataset`'s records, in their order, with the labels behind them if asked."""
    columns = dataset.columns()
    if labels and not columns.labels:
        raise JobError("The TFDataset must be one of pairs (features, labels). Received: one without labels.")
    return dataset.records_for(columns if labels else Columns(features=columns.features))


def measured(rdd: Any, graph: FrozenGraph, rows: int, methods: Sequence[Any]) -> list[EvaluatedResult]:
    """The result of each method for the graph's only output, for records of an RDD whose last array is the label."""
    wanted = [validation_method(each) for each in methods]
    entries = len(graph.inputs) + 1
    records = spread_records(rdd, entries)
    pairs = predicted(records, graph, rows).zip(records.map(_last))
    states = pairs.mapPartitions(functools.partial(_states, wanted, rows)).collect()
    counted = sum(count for count, _ in states)
    merged = [method.merge([found[at] for _, found in states]) for at, method in enumerate(wanted)]
    return [
        EvaluatedResult(method.result(state), counted, method.name)
        for method, state in zip(wanted, merged, strict=True)
    ]


def _fed(graph: FrozenGraph) -> tuple[list[str], Columns]:
    """Returns names for the graph's inputs, and the columns of records that fill them."""
    names = [f"x{number}" for number in range(len(graph.inputs))]
    kinds = ["bytes" if dtype.name == "string" else "number" for dtype, _ in graph.specs(graph.inputs)]
    return names, Columns(
        features=tuple(Slot(name, (name,), kind=kind) for name, kind in zip(names, kinds, strict=True))
    )


def _last(record: Sequence[Any]) -> Any:
    return record[-1]


def _states(
    methods: Sequence[ValidationMethod], rows: int, pairs: Iterator[tuple[Any, Any]]
) -> Iterator[tuple[int, list[State]]]:
    while batch := list(islice(pairs, rows)):
        outputs, labels = (np.stack([np.asarray(pair[at]) for pair in batch]) for at in (0, 1))
        yield len(batch), [method.state(outputs, labels) for method in methods]


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
