"""Analytics Zoo's `TFPredictor`: the outputs of a model for every record of a dataset. Runs on the driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keraunos.compat.zoo.tfpark.keras_graphs import fed_features, is_in_graph, session_of
from keraunos.compat.zoo.tfpark.placeholders import dataset_of, placeholders_of, slots_in
from keraunos.compat.zoo.tfpark.structure import flatten
from keraunos.compat.zoo.tfpark.tf_dataset import TFDataset
from keraunos.compat.zoo.tfpark.trained_graph import paired
from keraunos.compat.zoo.tfpark.trained_keras import feature_slots, source_of
from keraunos.errors import JobError, ModelError
from keraunos.job.columns import Columns, Slot
from keraunos.job.training_job import ModelSource
from keraunos.launch.predict import predict_rdd


class TFPredictor:
    """Outputs of a session's graph, with the values that the session has when `predict` is called.

    Args:
        sess: a session with initialised or restored variables.
        outputs: a tensor, or a list of them, each with one entry per record.
        inputs: placeholders for the dataset's tensors, if the outputs were not built from them; with `dataset`.
        dataset: the records, if they are not to be found from the outputs.
    """

    def __init__(self, sess: Any, outputs: Any, inputs: Any = None, dataset: TFDataset | None = None) -> None:
        tensors = flatten(outputs)
        if not tensors or not all(hasattr(tensor, "graph") and hasattr(tensor, "op") for tensor in tensors):
            raise ModelError(f"`outputs` must be tensors of a TensorFlow graph. Received: {outputs!r}.")
        if inputs is not None and dataset is None:
            raise JobError("`inputs` must come with `dataset`, which feeds them. Received: no dataset.")
        if inputs is not None and dataset is not None:
            self._serve_graph(sess, tensors, dataset, paired(inputs, dataset))
            return
        found = dataset_of(tensors, "The outputs")
        if dataset is not None and dataset is not found:
            raise JobError("`dataset` must be the one that the outputs depend on. Received: another one.")
        self._serve_graph(sess, tensors, found, slots_in(tensors[0].graph, found))

    @classmethod
    def from_outputs(cls, sess: Any, outputs: Any) -> TFPredictor:
        """Returns a predictor of tensors that were built from a dataset's tensors."""
        return cls(sess, outputs)

    @classmethod
    def from_keras(cls, keras_model: Any, dataset: TFDataset) -> TFPredictor:
        """Returns a predictor of a Keras model: of Keras 2 in a TensorFlow graph, or of Keras 3."""
        made = cls.__new__(cls)
        if is_in_graph(keras_model):
            fed = fed_features(keras_model, dataset)
            made._serve_graph(session_of(keras_model), list(keras_model.outputs), dataset, fed)
        else:
            made._serve(dataset, feature_slots(keras_model, dataset), lambda: source_of(keras_model))
        return made

    def predict(self) -> Any:
        """Returns an RDD with the model's output for each record, in the records' order.

        Its elements are arrays, or lists of arrays where there are several outputs. Of an `ImageSet` it is the images,
        whose `get_predict` has them. Nothing is computed before it is used, and then with the values that the model
        has now.
        """
        return self._dataset.predicted(Columns(features=self._slots), self._source())

    def predict_rows(self, together: int | None = None) -> Any:
        """Returns the same RDD, of the records of images too; with this many rows at once, if given."""
        dataset, columns = self._dataset, Columns(features=self._slots)
        rows = together or dataset.rows_predicted_together
        return predict_rdd(dataset.records_for(columns), self._source(), columns, rows)

    def _serve(self, dataset: TFDataset, slots: Sequence[Slot], source: Callable[[], ModelSource]) -> None:
        self._dataset = dataset
        self._slots = tuple(slots)
        self._source = source

    def _serve_graph(self, session: Any, outputs: list[Any], dataset: TFDataset, fed: Mapping[str, Any]) -> None:
        used = {placeholder.name for placeholder in placeholders_of(outputs)}
        needed = {name: tensor for name, tensor in fed.items() if tensor.name in used}
        named = {f"output_{at}": tensor for at, tensor in enumerate(outputs)}

        def source() -> ModelSource:
            from keraunos.learners.graph_source import graph_source

            return graph_source(session, inputs=needed, outputs=named)

        self._serve(dataset, [slot for slot in dataset.slots if slot.name in needed], source)
