"""Analytics Zoo's `TFDataset`: distributed records that feed a TensorFlow graph. Runs on the driver.

A dataset is made by one of the `from_…` functions and used by a `TFOptimizer` or a `TFPredictor`, which find it through
the placeholders in its `tensors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from pyspark import SparkContext

from keraunos.compat.zoo.common.nncontext import init_nncontext
from keraunos.compat.zoo.tfpark.dataset_arguments import check_batches, memory_budget_of, refused
from keraunos.compat.zoo.tfpark.descriptions import described, listed, named_pair
from keraunos.compat.zoo.tfpark.frame_columns import column_metas
from keraunos.compat.zoo.tfpark.image_rows import ImageRows, feature_rows, image_rows
from keraunos.compat.zoo.tfpark.placeholders import placeholders_for
from keraunos.compat.zoo.tfpark.row_sources import ArrayRows, FrameRows, RddRows, RowSource, array_structure, chosen
from keraunos.compat.zoo.tfpark.structure import STRING, TensorMeta, flatten, pack, with_unique_names
from keraunos.compat.zoo.tfpark.tf_data_rows import TfDataRows
from keraunos.compat.zoo.tfpark.tfrecord_rows import TfRecordRows
from keraunos.errors import JobError
from keraunos.job.columns import Columns, Slot
from keraunos.launch.predict import predict_rdd
from keraunos.session.registry import running_session, session_of
from keraunos.session.session import Session

# The default number of rows per prediction; the results do not depend on it.
_PREDICTED_TOGETHER = 128


class TFDataset:
    """Records, what their tensors are, and in what portions they are taken.

    Args:
        rows: where the records come from.
        structure: a nest of `TensorMeta` that describes a record.
        batch_size: rows of a training step over all workers; any number.
        batch_per_thread: rows that each task takes at once in a prediction.
        hard_code_batch_size: set a fixed first dimension of the tensors. Rows that do not fill a batch are omitted from
            training, with a warning; predictions are for all rows.
        validation: records to validate on, of the same structure.
        memory_type: `"DRAM"` keeps rows in memory while they fit; `"DISK_n"` and `"DISK_AND_DRAM"` in mapped files.
        sequential_order: must be false for training, where rows have an order by content.
        shuffle: whether each worker's rows are shuffled before every epoch.
    """

    def __init__(
        self,
        rows: RowSource,
        structure: Any,
        batch_size: int = -1,
        batch_per_thread: int = -1,
        hard_code_batch_size: bool = False,
        validation: RowSource | None = None,
        memory_type: str = "DRAM",
        sequential_order: bool = False,
        shuffle: bool = True,
    ) -> None:
        self.has_batch = check_batches(batch_size, batch_per_thread)
        self.total_core_num = _session().slots()
        self.batch_size = batch_size if self.has_batch else self.total_core_num
        self.batch_per_thread = batch_per_thread if self.has_batch else 1
        self.hard_code_batch_size = bool(hard_code_batch_size)
        self.sequential_order = bool(sequential_order)
        self.shuffle = bool(shuffle)
        self.memory_budget = memory_budget_of(memory_type)
        self.row_source = rows
        self.validation_source = validation
        self.tensor_structure = with_unique_names(structure)
        self.metas: list[TensorMeta] = flatten(self.tensor_structure)

    @classmethod
    def from_rdd(
        cls,
        rdd: Any,
        names: Any = None,
        shapes: Any = None,
        types: Any = None,
        batch_size: int = -1,
        batch_per_thread: int = -1,
        hard_code_batch_size: bool = False,
        val_rdd: Any = None,
        features: Any = None,
        labels: Any = None,
        memory_type: str = "DRAM",
        sequential_order: bool = False,
        shuffle: bool = True,
    ) -> TFDataset:
        """Records of an RDD: lists of arrays, described by `names`, `shapes` and `types`; or (features, labels).

        `features` and `labels` are `(type, shape)`, or a list or dict of such; records then have that nest.
        """
        if features is not None:
            if not (shapes is None and types is None):
                raise JobError(
                    "`features` and `labels` must not be given with `shapes` and `types`, which describe records that "
                    f"are plain lists. Received: shapes={shapes!r}, types={types!r}."
                )
            structure: Any = described(features, labels, names)
        else:
            if labels is not None:
                raise JobError(f"`labels` must come with `features`. Received: labels={labels!r} alone.")
            structure = listed(names, shapes, types)
        return cls(
            RddRows(rdd, structure),
            structure,
            batch_size,
            batch_per_thread,
            hard_code_batch_size,
            None if val_rdd is None else RddRows(val_rdd, structure, "val_rdd"),
            memory_type,
            sequential_order,
            shuffle,
        )

    @classmethod
    def from_ndarrays(
        cls,
        tensors: Any,
        batch_size: int = -1,
        batch_per_thread: int = -1,
        hard_code_batch_size: bool = False,
        val_tensors: Any = None,
        memory_type: str = "DRAM",
        sequential_order: bool = False,
        shuffle: bool = True,
    ) -> TFDataset:
        """Returns the rows of arrays: one, or a nest of them, such as (features, labels)."""
        session = _session()
        structure, arrays = array_structure(tensors, "tensors")
        structure = named_pair(structure)
        validation = None
        if val_tensors is not None:
            other, val_arrays = array_structure(val_tensors, "val_tensors")
            if named_pair(other) != structure:
                raise JobError(
                    f"`val_tensors` must have the structure, types and shapes of `tensors`. Expected: {structure!r}. "
                    f"Received: {named_pair(other)!r}."
                )
            validation = ArrayRows(session, val_arrays)
        return cls(
            ArrayRows(session, arrays),
            structure,
            batch_size,
            batch_per_thread,
            hard_code_batch_size,
            validation,
            memory_type,
            sequential_order,
            shuffle,
        )

    @classmethod
    def from_dataframe(
        cls,
        df: Any,
        feature_cols: Any,
        labels_cols: Any = None,
        batch_size: int = -1,
        batch_per_thread: int = -1,
        hard_code_batch_size: bool = False,
        validation_df: Any = None,
        memory_type: str = "DRAM",
        sequential_order: bool = False,
        shuffle: bool = True,
    ) -> TFDataset:
        """Columns of a DataFrame: one tensor per column; numbers, vectors, arrays of one length, strings."""
        features = column_metas(df, feature_cols, "feature_cols")
        labels = column_metas(df, labels_cols, "labels_cols") if labels_cols else []
        metas = [*features, *labels]
        columns = [meta.name for meta in metas]
        parts = [part[0] if len(part) == 1 else part for part in (features, labels) if part]
        structure = with_unique_names(tuple(parts))
        validation = None
        if validation_df is not None:
            column_metas(validation_df, columns, "validation_df")
            validation = FrameRows(validation_df, columns, metas)
        return cls(
            FrameRows(df, columns, metas),
            structure,
            batch_size,
            batch_per_thread,
            hard_code_batch_size,
            validation,
            memory_type,
            sequential_order,
            shuffle,
        )

    @classmethod
    def from_tfrecord_file(
        cls,
        sc: SparkContext,
        file_path: str,
        batch_size: int = -1,
        batch_per_thread: int = -1,
        hard_code_batch_size: bool = False,
        validation_file_path: str | None = None,
        sequential_order: bool = False,
        shuffle: bool = True,
    ) -> TFDataset:
        """Records of TFRecord files under any Hadoop path, as strings for `tf.io.parse_example` and the like."""
        session = session_of(sc)
        validation = None
        if validation_file_path is not None:
            validation = TfRecordRows(session, validation_file_path, "validation_file_path")
        return cls(
            TfRecordRows(session, file_path),
            [TensorMeta("string", (), "input")],
            batch_size,
            batch_per_thread,
            hard_code_batch_size,
            validation,
            "DRAM",
            sequential_order,
            shuffle,
        )

    @classmethod
    def from_string_rdd(
        cls,
        rdd: Any,
        batch_size: int = -1,
        batch_per_thread: int = -1,
        hard_code_batch_size: bool = False,
        validation_string_rdd: Any = None,
    ) -> TFDataset:
        """Returns one string per record, as the tensor `input`."""
        structure = [TensorMeta("string", (), "input")]
        validation = validation_string_rdd
        return cls(
            RddRows(rdd, structure),
            structure,
            batch_size,
            batch_per_thread,
            hard_code_batch_size,
            None if validation is None else RddRows(validation, structure, "validation_string_rdd"),
        )

    @classmethod
    def from_bytes_rdd(
        cls,
        rdd: Any,
        batch_size: int = -1,
        batch_per_thread: int = -1,
        hard_code_batch_size: bool = False,
        validation_bytes_rdd: Any = None,
    ) -> TFDataset:
        """Bytes for each record, as the tensor `input`."""
        return cls.from_string_rdd(rdd, batch_size, batch_per_thread, hard_code_batch_size, validation_bytes_rdd)

    @classmethod
    def from_tf_data_dataset(
        cls,
        dataset: Any,
        batch_size: int = -1,
        batch_per_thread: int = -1,
        hard_code_batch_size: bool = False,
        validation_dataset: Any = None,
        sequential_order: bool = False,
        shuffle: bool = True,
        remove_checking: bool = False,
        batch_outside: bool = False,
        inter_threads: int | None = None,
        intra_threads: int | None = None,
        auto_shard_files: bool = False,
    ) -> TFDataset:
        """Returns the elements of a `tf.data.Dataset`, whose pipeline runs on the executors.

        It must consist of TensorFlow's operations only, have an end, and give its elements in one order; predictions
        are made by one task. With `batch_outside` its elements are batches, which are taken apart. `remove_checking`
        lets through what is refused otherwise. With `auto_shard_files` each task reads its own files.
        """
        session = _session()
        options: dict[str, Any] = {
            "check": not remove_checking,
            "batched": bool(batch_outside),
            "by_file": bool(auto_shard_files),
            "threads": (inter_threads, intra_threads),
        }
        rows = TfDataRows(session, dataset, **options)
        structure = named_pair(rows.structure)
        validation = None
        if validation_dataset is not None:
            validation = TfDataRows(session, validation_dataset, argument="validation_dataset", **options)
            if named_pair(validation.structure) != structure:
                raise JobError(
                    "`validation_dataset` must have elements of the same structure. Expected: "
                    f"{rows.structure!r}. Received: {validation.structure!r}."
                )
        return cls(
            rows,
            structure,
            batch_size,
            batch_per_thread,
            hard_code_batch_size,
            validation,
            "DRAM",
            sequential_order,
            shuffle,
        )

    @classmethod
    def from_image_set(
        cls,
        image_set: Any,
        image: Any,
        label: Any = None,
        batch_size: int = -1,
        batch_per_thread: int = -1,
        hard_code_batch_size: bool = False,
        validation_image_set: Any = None,
        memory_type: str = "DRAM",
        sequential_order: bool = False,
        shuffle: bool = True,
    ) -> TFDataset:
        """Returns the images of an `ImageSet` that `ImageSetToSample` made records of."""
        rows, structure, validation = image_rows(image_set, image, label, validation_image_set)
        batches = (batch_size, batch_per_thread, hard_code_batch_size)
        return cls(rows, structure, *batches, validation, memory_type, sequential_order, shuffle)

    @classmethod
    def from_text_set(cls, *_: Any, **__: Any) -> NoReturn:
        """Refused: there is no TextSet here."""
        raise refused("from_text_set", "a TextSet", "Tokenize and index the texts in an RDD or with spark.ml")

    @classmethod
    def from_feature_set(
        cls,
        dataset: Any,
        features: Any,
        labels: Any = None,
        batch_size: int = -1,
        batch_per_thread: int = -1,
        hard_code_batch_size: bool = False,
        validation_dataset: Any = None,
    ) -> TFDataset:
        """Returns the `Sample`s of a `FeatureSet`, such as `ImageFeatureToSample` makes."""
        rows, structure, validation = feature_rows(dataset, features, labels, validation_dataset)
        return cls(rows, structure, batch_size, batch_per_thread, hard_code_batch_size, validation, *rows.kept_as)

    @property
    def tensors(self) -> Any:
        """Placeholders for a batch, in the nest of a record; made in the default graph when first asked for."""
        return pack(self.tensor_structure, placeholders_for(self, self.metas, self._first_dimension()))

    @property
    def feature_tensors(self) -> Any:
        """The placeholders of the features of a dataset of (features, labels)."""
        return self._pair("feature_tensors")[0]

    @property
    def label_tensors(self) -> Any:
        """The placeholders of the labels of a dataset of (features, labels)."""
        return self._pair("label_tensors")[1]

    @property
    def output_shapes(self) -> Any:
        """The shapes of the tensors, with the length of a batch first."""
        import tensorflow as tf

        first = self._first_dimension()
        shapes = [tf.TensorShape(None if meta.shape is None else [first, *meta.shape]) for meta in self.metas]
        return pack(self.tensor_structure, shapes)

    @property
    def input_names(self) -> list[str]:
        """The tensors' names."""
        return [meta.name for meta in self.metas]

    @property
    def rdd(self) -> Any:
        """The RDD that the dataset was made from, or its records as one."""
        source = self.row_source
        return source.rdd if isinstance(source, RddRows) else source.records()

    @property
    def val_rdd(self) -> Any:
        """The RDD to validate on, or the records to validate on as one; `None` without any."""
        source = self.validation_source
        return source.rdd if isinstance(source, RddRows) else None if source is None else source.records()

    @property
    def has_labels(self) -> bool:
        """Whether records are (features, labels)."""
        return isinstance(self.tensor_structure, tuple) and len(self.tensor_structure) == 2

    @property
    def workers(self) -> int:
        """How many workers train on the dataset: as many as there are slots, partitions and rows in a batch for."""
        rows = self.batch_size if self.batch_size > 0 else None
        bounds = (self.total_core_num, self.row_source.partitions(), rows)
        most = max(1, min(each for each in bounds if each is not None))
        if self.hard_code_batch_size and rows is not None:
            # Every worker's batch must have the same length.
            return next(count for count in range(most, 0, -1) if rows % count == 0)
        return most

    @property
    def rows_predicted_together(self) -> int:
        """How many rows a task predicts for at once."""
        if self.has_batch:
            return self.batch_per_thread if self.batch_per_thread > 0 else -(-self.batch_size // self.workers)
        return _PREDICTED_TOGETHER if all(meta.fixed for meta in self.metas) else 1

    def features_and_labels(self, inputs: int) -> tuple[Any, Any]:
        """Returns the structures of a model's inputs, of which it has this many, and of its labels."""
        structure = self.tensor_structure
        if self.has_labels:
            return structure[0], structure[1]
        if isinstance(structure, tuple) and len(structure) == 1:
            return structure[0], []
        if isinstance(structure, Mapping):
            return structure, []
        return self.metas[:inputs], self.metas[inputs:]

    def get_num_partitions(self) -> int:
        """Returns how many partitions the training has."""
        return self.workers

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The column or entry for each of the tensors."""
        columns = self.row_source.columns() or tuple(self.input_names)
        return tuple(
            Slot(meta.name, (column,), shape=meta.shape, kind="bytes" if meta.dtype == STRING else "number")
            for meta, column in zip(self.metas, columns, strict=True)
        )

    def columns(self) -> Columns:
        """The structure of the graph's inputs: all tensors, or features and labels if records are such pairs."""
        slots = self.slots
        features = len(flatten(self.tensor_structure[0])) if self.has_labels else len(slots)
        return Columns(features=slots[:features], labels=slots[features:])

    def records_for(self, columns: Columns) -> Any:
        """Returns an RDD of flat records in their order, with an entry for each of the columns."""
        return self._entries_of(self.row_source.records(), columns)

    def training_rows(self, columns: Columns, workers: int) -> Any:
        """Returns the training data for this many workers, with an entry for each of the columns.

        If the columns name one that marks rows to validate on, those are among them.
        """
        if columns.validation is None or self.validation_source is None:
            rows = self.row_source.training(workers)
        else:
            rows = self.row_source.with_validation(workers, self.validation_source, columns)
        return rows if self.row_source.columns() else self._entries_of(rows, columns)

    def _entries_of(self, records: Any, columns: Columns) -> Any:
        entries = [slot.columns[0] for slot in self.slots]
        entries += [] if columns.validation is None else [columns.validation]
        return records if entries == list(columns.names) else chosen(records, list(map(entries.index, columns.names)))

    def predicted(self, columns: Columns, source: Any) -> Any:
        """Returns a model's output for each record: an RDD, or the images with it if the records are images."""
        if isinstance(self.row_source, ImageRows):
            places = list(map([slot.columns[0] for slot in self.slots].index, columns.names))
            return self.row_source.predicted(places, source, columns, self.rows_predicted_together)
        return predict_rdd(self.records_for(columns), source, columns, self.rows_predicted_together)

    def _pair(self, what: str) -> Any:
        if not self.has_labels:
            raise JobError(
                f"`{what}` must be asked of a dataset of (features, labels). Received: one whose records are "
                f"{self.tensor_structure!r}. Use `tensors`."
            )
        return self.tensors

    def _first_dimension(self) -> int | None:
        if not self.hard_code_batch_size:
            return None
        return self.batch_size // self.workers if self.batch_size > 0 and self.has_batch else self.batch_per_thread


def _session() -> Session:
    return running_session() or session_of(init_nncontext())
