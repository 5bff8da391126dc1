"""Analytics Zoo's `TFPredictor`: the outputs of a graph for every record of a dataset. Runs on the driver."""

from __future__ import annotations

from typing import Any

from pyspark import RDD

from keraunos.compat.zoo.tfpark.placeholders import dataset_of, placeholders_of, slots_in
from keraunos.compat.zoo.tfpark.structure import flatten
from keraunos.compat.zoo.tfpark.tf_dataset import TFDataset
from keraunos.compat.zoo.tfpark.trained_graph import paired
from keraunos.errors import JobError, ModelError
from keraunos.job.columns import Columns
from keraunos.launch.predict import predict_rdd


class TFPredictor:
    """Outputs of a session's graph, with the values that the session has when `predict` is called.

    Args:
        sess: a session with initialised or restored variables.
        outputs: a tensor, or a list of them, each with one entry a record.
        inputs: placeholders for the dataset's tensors, where the outputs were not built from them; with `dataset`.
        dataset: the records, where they are not to be found from the outputs.
    """

    def __init__(self, sess: Any, outputs: Any, inputs: Any = None, dataset: TFDataset | None = None) -> None:
        tensors = flatten(outputs)
        if not tensors or not all(hasattr(tensor, "graph") and hasattr(tensor, "op") for tensor in tensors):
            raise ModelError(f"`outputs` must be tensors of a TensorFlow graph. Received: {outputs!r}.")
        if inputs is not None and dataset is None:
            raise JobError("`inputs` must come with `dataset`, which feeds them. Received: no dataset.")
        self._session = sess
        self._outputs = tensors
        if inputs is None:
            self._dataset = dataset_of(tensors, "The outputs")
            if dataset is not None and dataset is not self._dataset:
                raise JobError("`dataset` must be the one that the outputs depend on. Received: another one.")
            self._fed = slots_in(tensors[0].graph, self._dataset)
        else:
            assert dataset is not None
            self._dataset, self._fed = dataset, paired(inputs, dataset)

    @classmethod
    def from_outputs(cls, sess: Any, outputs: Any) -> TFPredictor:
        """A predictor of tensors that were built from a dataset's tensors."""
        return cls(sess, outputs)

    def predict(self) -> RDD[Any]:
        """An RDD with what the graph gives for each record, in the records' order.

        Its elements are arrays, or lists of arrays where there are several outputs. Nothing is computed before it is
        used, and then with the values that the session has now.
        """
        from keraunos.learners.graph_source import graph_source

        used = {placeholder.name for placeholder in placeholders_of(self._outputs)}
        needed = {name: tensor for name, tensor in self._fed.items() if tensor.name in used}
        named = {f"output_{at}": tensor for at, tensor in enumerate(self._outputs)}
        source = graph_source(self._session, inputs=needed, outputs=named)
        slots = (*self._dataset.columns().features, *self._dataset.columns().labels)
        columns = Columns(
            # A record has an entry for each tensor; those that the outputs do not need stand where nobody looks.
            features=tuple(slot for slot in slots if slot.name in needed),
            labels=tuple(slot for slot in slots if slot.name not in needed),
        )
        return predict_rdd(self._records(columns), source, columns, self._dataset.rows_predicted_together)

    def _records(self, columns: Columns) -> RDD[Any]:
        """Flat records with the entries in the order of the columns."""
        records = self._dataset.row_source.records()
        given = self._dataset.input_names
        order = [given.index(str(slot.name)) for slot in (*columns.features, *columns.labels)]
        return records if order == sorted(order) else records.map(_Reordered(order))


class _Reordered:
    """A record's entries in another order; runs on executors."""

    def __init__(self, order: list[int]) -> None:
        self._order = order

    def __call__(self, record: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(record[place] for place in self._order)
