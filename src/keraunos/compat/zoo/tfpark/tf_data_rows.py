"""A `tf.data` pipeline that executors run. `TfDataRows` runs on the driver, the reading on executors.

The pipeline travels as TensorFlow's own description of it. Every task runs it and keeps every n-th element, or, with
`auto_shard_files`, reads only its part of the files; so the pipeline must return the same elements in every task.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any

from pyspark import RDD

from keraunos.compat.zoo.tfpark.row_sources import RowSource
from keraunos.compat.zoo.tfpark.seeded_shuffles import with_seeds
from keraunos.compat.zoo.tfpark.structure import TensorMeta, pack
from keraunos.errors import JobError
from keraunos.session.session import Session

_READ_TOGETHER = 64
_BATCHING = ("BatchDataset", "MapAndBatchDataset")
_PYTHON = ("PyFunc", "PyFuncStateless", "EagerPyFunc")
# The beginning of the names of tables that TensorFlow writes into the pipeline with their contents.
_TRAVELS = "HashTableFromGraphDef/"
_RESOURCES = ("VarHandleOp", "VariableV2", "Variable", "HashTable", "MutableHashTable", "MutableDenseHashTable")


class TfDataRows(RowSource):
    """The elements of a `tf.data.Dataset`."""

    def __init__(
        self,
        session: Session,
        dataset: Any,
        *,
        argument: str = "dataset",
        check: bool = True,
        batched: bool = False,
        by_file: bool = False,
        threads: tuple[int | None, int | None] = (None, None),
    ) -> None:
        import tensorflow as tf

        if not isinstance(dataset, (tf.data.Dataset, tf.compat.v1.data.Dataset)):
            raise JobError(f"`{argument}` must be a tf.data.Dataset. Received: {dataset!r}.")
        self._session = session
        dataset = dataset.unbatch() if batched else dataset
        self._graph = with_seeds(_serialized(dataset))
        if check:
            _check_endless(dataset, argument)
            _check_nodes(self._graph, argument, batched=batched, by_file=by_file)
        self._by_file = by_file
        self._threads = threads
        spec = tf.nest.flatten(dataset.element_spec)
        if any(not isinstance(each, tf.TensorSpec) for each in spec):
            raise JobError(
                f"`{argument}` must have plain tensors as elements. Received: {dataset.element_spec!r}. Convert ragged "
                "and sparse ones with .to_tensor() or tf.sparse.to_dense in a map."
            )
        self._types = [
            (each.dtype.name, each.shape.as_list() if each.shape.rank is not None else None) for each in spec
        ]
        self.structure = pack(
            _plain(dataset.element_spec), [TensorMeta.of(dtype, shape, "tensor") for dtype, shape in self._types]
        )

    def partitions(self) -> None:
        """As many as are wanted."""
        return

    def training(self, workers: int) -> RDD[Any]:
        """Returns one partition per worker."""
        return self._read(workers)

    def records(self) -> RDD[tuple[Any, ...]]:
        """One partition: elements are dealt out one by one, so that only a single task has them in their order."""
        return self._read(1)

    def _read(self, parts: int) -> RDD[Any]:
        task = functools.partial(
            _elements, self._session.broadcast(self._graph), self._types, parts, self._by_file, self._threads
        )
        return self._session.parallelize(range(parts), parts).mapPartitions(task)


def _plain(element_spec: Any) -> Any:
    """Returns the nest of a dataset's elements with unchanged leaves; namedtuples become tuples."""
    if isinstance(element_spec, dict):
        return {key: _plain(each) for key, each in element_spec.items()}
    if isinstance(element_spec, (tuple, list)):
        return tuple(_plain(each) for each in element_spec)
    return element_spec


def _serialized(dataset: Any) -> bytes:
    """TensorFlow's description of the pipeline, functions included."""
    import tensorflow as tf

    options = tf.data.experimental.ExternalStatePolicy
    graph = dataset._as_serialized_graph(external_state_policy=options.IGNORE)
    if tf.executing_eagerly():
        return bytes(graph.numpy())
    with graph.graph.as_default(), tf.compat.v1.Session(graph=graph.graph) as session:
        # Tables travel with what they hold now.
        session.run(tf.compat.v1.tables_initializer())
        return bytes(session.run(graph))


def _check_endless(dataset: Any, argument: str) -> None:
    import tensorflow as tf

    size = dataset.cardinality()
    if tf.executing_eagerly():
        endless = int(size) == tf.data.INFINITE_CARDINALITY
    else:
        with tf.compat.v1.Session(graph=size.graph) as session:
            endless = int(session.run(size)) == tf.data.INFINITE_CARDINALITY
    if endless:
        raise JobError(
            f"`{argument}` must have an end: an epoch is its elements once. Received: a dataset without one. Leave out "
            ".repeat(); the end trigger says how many epochs there are."
        )


def _check_nodes(graph: bytes, argument: str, *, batched: bool, by_file: bool) -> None:
    """Refuse what executors could not run, or what would not be the same in each of them."""
    from tensorflow.core.framework import graph_pb2

    parsed = graph_pb2.GraphDef.FromString(graph)
    nodes = [*parsed.node, *(node for function in parsed.library.function for node in function.node_def)]
    for node in nodes:
        if node.op in _PYTHON:
            raise JobError(
                f"`{argument}` must consist of TensorFlow's own operations. Received: one with a Python function "
                "(from_generator, py_function, numpy_function), which lives in the driver's process only. Make an RDD "
                "of its elements and use TFDataset.from_rdd."
            )
        if node.op.startswith(_RESOURCES) and not node.name.startswith(_TRAVELS):
            raise JobError(
                f"`{argument}` must not depend on variables or mutable tables, which live in the driver's process "
                f"only. Received: {node.op} ({node.name!r}). Do that part in the graph that is trained."
            )
        if not batched and any(name in node.op for name in _BATCHING):
            raise JobError(
                f"`{argument}` must have single records as elements. Received: {node.op}. Leave out .batch(…), pass "
                "batch_outside=True to have its batches taken apart, or remove_checking=True where a batch is a record."
            )
    if not by_file:
        _check_order(parsed, nodes, argument)


def _check_order(graph: Any, nodes: list[Any], argument: str) -> None:
    """Refuse a shuffle without a seed: tasks that deal out different orders would lose records and repeat others."""
    from tensorflow.python.framework import tensor_util

    constants = {node.name: node for node in graph.node if node.op == "Const"}
    for node in nodes:
        if not node.op.startswith("Shuffle"):
            continue
        seeds = [
            int(tensor_util.MakeNdarray(constants[name.partition(":")[0]].attr["value"].tensor))
            for name in node.input[2:4]
            if name.partition(":")[0] in constants
        ]
        if not any(seeds):
            raise JobError(
                f"`{argument}` must give its elements in one order to every task. Received: .shuffle(…) without a "
                "seed. Leave it out, because a TFDataset shuffles its rows before every epoch; or give it a seed; or "
                "pass auto_shard_files=True, with which each task reads files of its own."
            )


def _elements(
    graph: Any,
    types: list[tuple[str, list[int | None] | None]],
    parts: int,
    by_file: bool,
    threads: tuple[int | None, int | None],
    indices: Iterable[int],
) -> Iterator[tuple[Any, ...]]:
    """Yields the elements that belong to one task."""
    import tensorflow as tf
    from tensorflow.python.data.experimental.ops import distribute
    from tensorflow.python.data.ops import dataset_ops

    inter, intra = threads
    configuration = tf.compat.v1.ConfigProto(
        inter_op_parallelism_threads=inter or 0, intra_op_parallelism_threads=intra or 0
    )
    specs = tuple(tf.TensorSpec(shape, dtype) for dtype, shape in types)
    for part in indices:
        # A separate graph and session work with and without TensorFlow's eager mode in the process.
        with tf.Graph().as_default(), tf.compat.v1.Session(config=configuration) as session:
            # Fed, and no constant: TensorFlow would compute the dataset beforehand, and cannot keep one.
            description = tf.compat.v1.placeholder(tf.string, [])
            dataset = dataset_ops._VariantDataset(tf.raw_ops.DatasetFromGraph(graph_def=description), specs)
            dataset = distribute._AutoShardDataset(dataset, parts, part) if by_file else dataset.shard(parts, part)
            together = all(spec.shape.is_fully_defined() for spec in specs)
            dataset = dataset.batch(_READ_TOGETHER) if together else dataset
            following = tf.compat.v1.data.make_initializable_iterator(dataset)
            session.run(following.initializer, {description: graph.value})
            element = following.get_next()
            while True:
                try:
                    read = session.run(element)
                except tf.errors.OutOfRangeError:
                    break
                if together:
                    yield from zip(*read, strict=True)
                else:
                    yield tuple(read)
