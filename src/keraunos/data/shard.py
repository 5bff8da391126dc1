"""One worker's rows, read once and then batched epoch after epoch. Runs on workers.

A `ShardBuilder` takes Arrow batches as they arrive and builds a `Shard`: contiguous columns, in memory or in
memory-mapped files, sorted by content, so that the training does not depend on the order of arrival. The order of each
epoch is a pure function of the seed, the epoch, the rank and the rows.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt

from keraunos.batch import Array, Batch, BatchSpec, Front
from keraunos.data.arrow_batches import ArrowColumns, ArrowReader, by_slot
from keraunos.data.encoded_rows import EncodedRows, check_kept
from keraunos.data.id_range import check_ids
from keraunos.data.image_rows import scaled
from keraunos.data.label_range import check_classes
from keraunos.data.one_hot import one_hot_rows
from keraunos.data.row_hash import Hashes, RowHasher, canonical_order
from keraunos.data.row_shape import check_shape
from keraunos.data.row_weights import class_factors, is_validation, row_weights
from keraunos.data.sparse_rows import Block, Positions, as_dense
from keraunos.data.storage import ColumnStore, Spool, StoredColumn
from keraunos.errors import DataError, JobError
from keraunos.job.columns import Columns, Slot
from keraunos.job.schedule import count_batches

# Separate streams, so that an epoch's order, the choice of validation rows and the draws share no random numbers.
_SHUFFLE, _SPLIT, _DRAW = 0, 1, 2


class ShardBuilder:
    """Collects rows from Arrow batches; as a context manager it always frees its files.

    Args:
        columns: what to read from each batch.
        budget: how many bytes of rows to store in memory; beyond it, all rows are written to files.
        spool_dir: the directory of those files; `None` is the system's temporary directory.
        floatx: the type to which float64 and decimals are converted.
        class_weight: the factor on the weights of training rows per class.
        front: layers of the model that run on the features here, once per row; their outputs are stored.
    """

    def __init__(
        self,
        columns: Columns,
        *,
        budget: int,
        spool_dir: str | None,
        floatx: str = "float32",
        class_weight: Mapping[int, float] | None = None,
        front: Front | None = None,
    ) -> None:
        if class_weight and len(columns.labels) != 1:
            raise JobError(
                "`classWeight` needs exactly one label, whose classes it weighs. "
                f"Received: {len(columns.labels)} labels. Use `weightCol` instead."
            )
        if class_weight and (label := columns.labels[0]).kind != "number":
            raise JobError(
                "`classWeight` needs a label that is a class number. "
                f"Received: column {label.columns[0]!r} of kind {label.kind!r}. Use `weightCol` instead."
            )
        self._columns = columns
        self._encoded = None if front is None else EncodedRows(columns.features, front)
        self._kept = columns if self._encoded is None else replace(columns, features=self._encoded.slots)
        self._floatx = floatx
        self._class_weight = dict(class_weight or {})
        self._reader = ArrowReader([*columns.features, *columns.labels], floatx=floatx, allow_nan=columns.allow_nan)
        # A weight is float32 whatever the model's float type, so it is read without conversion.
        self._weight_reader = _scalar_reader(columns.weight)
        self._validation_reader = _scalar_reader(columns.validation)
        self._hasher = RowHasher()
        self._spool = Spool(budget, spool_dir)
        self._slots = [ColumnStore(self._spool) for _ in (*self._kept.features, *columns.labels)]
        self._weights = self._spool.store((), np.float32) if columns.weight is not None else None
        self._factors = self._spool.store((), np.float32) if class_weight else None
        self._validation = self._spool.store((), np.bool_) if columns.validation is not None else None
        self._hashes = self._spool.store((2,), np.uint64)

    @property
    def rows(self) -> int:
        """The rows added so far."""
        return self._hashes.rows

    @property
    def spilled(self) -> bool:
        """Whether the rows have passed the budget and are in files."""
        return self._spool.spilled

    def add(self, batch: ArrowColumns) -> None:
        """Add the rows of a `pyarrow.RecordBatch`. Raises `DataError` if a row is invalid."""
        first_row = self._reader.rows
        blocks = self._reader.read(batch)
        if self._reader.rows == first_row:
            return
        for slot, block in zip((*self._columns.features, *self._columns.labels), blocks, strict=True):
            check_shape(slot, block, first_row)
            check_classes(slot, block, first_row)
            check_ids(slot, block, first_row)
        blocks = [
            one_hot_rows(slot, block) if slot.one_hot else block
            for slot, block in zip((*self._columns.features, *self._columns.labels), blocks, strict=True)
        ]
        if self._encoded is not None:
            count = len(self._columns.features)
            blocks = [*self._encoded.encoded(blocks[:count]), *blocks[count:]]
        check_kept((*self._kept.features, *self._kept.labels), blocks)
        extra = self._add_extra(batch, first_row)
        for store, block in zip(self._slots, blocks, strict=True):
            store.append(block)
        if self._factors is not None:
            label = self._columns.labels[0]
            labels = as_dense(blocks[len(self._kept.features)])
            self._factors.append(class_factors(label.columns[0], labels, self._class_weight, first_row))
        self._hashes.append(self._hasher.hash([*blocks, *extra]))

    def build(self, *, seed: int, rank: int, validation_split: float = 0.0) -> Shard:
        """Returns the shard of all rows added; nothing can be added after it."""
        if self._validation is not None and validation_split:
            raise JobError(
                "Validation rows must be chosen either by `validationIndicatorCol` or by `validationSplit`. "
                f"Received: both, {self._columns.validation!r} and {validation_split!r}. Leave one out."
            )
        hashes = self._hashes.finish()
        order = canonical_order(hashes)
        if self._validation is not None:
            chosen = self._validation.finish()[order]
        else:
            chosen = _chosen_for_validation(len(order), validation_split, _generator(seed, _SPLIT, rank))
        rows = _StoredRows(
            columns=self._kept,
            floatx=self._floatx,
            slots=tuple(store.finish() for store in self._slots) if len(order) else (),
            weights=None if self._weights is None else self._weights.finish(),
            factors=None if self._factors is None else self._factors.finish(),
        )
        return Shard(
            rows,
            training=order[~chosen],
            validation=order[chosen],
            digest=_digest(hashes[order]),
            seed=seed,
            rank=rank,
        )

    def close(self) -> None:
        """Free everything that no shard uses."""
        self._spool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _add_extra(self, batch: ArrowColumns, first_row: int) -> list[Block]:
        extra: list[Block] = []
        if self._weights is not None and self._columns.weight is not None:
            (block,) = self._weight_reader.read(batch)
            weights = row_weights(self._columns.weight, block, first_row)
            self._weights.append(weights)
            extra.append(weights)
        if self._validation is not None and self._columns.validation is not None:
            (block,) = self._validation_reader.read(batch)
            flags = is_validation(self._columns.validation, block)
            self._validation.append(flags)
            extra.append(flags)
        return extra


class Shard:
    """One worker's rows, split into training and validation rows, each sorted by content.

    Made by `ShardBuilder.build`. Closing or garbage-collecting it frees its memory and its mapped files.

    Attributes:
        rows: the number of training rows.
        validation_rows: the number of validation rows.
        digest: a hash of all rows' content, the same for the same rows in any order.
    """

    def __init__(
        self, rows: _StoredRows, *, training: Positions, validation: Positions, digest: str, seed: int, rank: int
    ) -> None:
        self.rows = len(training)
        self.validation_rows = len(validation)
        self.digest = digest
        self._rows: _StoredRows | None = rows
        self._training = training
        self._validation = validation
        self._seed = seed
        self._rank = rank

    @property
    def spec(self) -> BatchSpec:
        """The spec of every batch. Raises an error if the shard has no rows."""
        return BatchSpec.of(self.example(1))

    def example(self, rows: int = 2) -> Batch:
        """Returns a batch of real rows, which are repeated where there are fewer."""
        order = np.concatenate([self._training[:rows], self._validation[:rows]])
        if not len(order):
            raise DataError("This worker has no rows to show an example of. Expected at least 1 row. Received: 0 rows.")
        return self._open().gather(np.resize(order, rows), training=True)

    def batches(
        self, epoch: int, batch_size: int, shuffle: bool = True, *, remainder: str = "keep", draws: int | None = None
    ) -> Iterator[Batch]:
        """Every training row exactly once, as fresh arrays; `remainder` says what becomes of a short last batch.

        With `draws` there are that many batches instead, each a separate random choice among all rows.
        """
        if draws is not None:
            return self._drawn(epoch, _checked(batch_size), draws)
        order = self._training
        if shuffle:
            order = order[_generator(self._seed, _SHUFFLE, self._rank, epoch).permutation(len(order))]
        return self._in_batches(order, _checked(batch_size), remainder, training=True)

    def validation_batches(self, batch_size: int, *, remainder: str = "keep") -> Iterator[Batch]:
        """Returns every validation row exactly once, always in the same order.

        Classes do not weigh here, as in Keras.
        """
        return self._in_batches(self._validation, _checked(batch_size), remainder, training=False)

    def close(self) -> None:
        """Free the rows; the counts and the digest remain."""
        self._rows = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _in_batches(self, order: Positions, batch_size: int, remainder: str, *, training: bool) -> Iterator[Batch]:
        count = count_batches(len(order), batch_size, remainder)
        for number in range(count):
            # All that is left, whether fewer rows than a batch or one more.
            takes_rest = number + 1 == count and remainder != "drop"
            stop = len(order) if takes_rest else (number + 1) * batch_size
            yield self._open().gather(order[number * batch_size : stop], training=training)

    def _drawn(self, epoch: int, batch_size: int, draws: int) -> Iterator[Batch]:
        size = min(batch_size, self.rows)
        random = _generator(self._seed, _DRAW, self._rank, epoch)
        for _ in range(draws if size else 0):
            yield self._open().gather(self._training[random.choice(self.rows, size, replace=False)], training=True)

    def _open(self) -> _StoredRows:
        if self._rows is None:
            raise ValueError("The shard is closed; expected an open one. Read its batches before closing it.")
        return self._rows


@dataclass(frozen=True)
class _StoredRows:
    columns: Columns
    floatx: str
    slots: tuple[StoredColumn, ...]
    weights: Array | None
    factors: Array | None

    def gather(self, rows: Positions, *, training: bool) -> Batch:
        features, labels = self.columns.features, self.columns.labels
        arrays = [
            scaled(slot, stored.take(rows), self.floatx)
            for slot, stored in zip((*features, *labels), self.slots, strict=True)
        ]
        return Batch(
            inputs=by_slot(features, arrays[: len(features)]),
            targets=by_slot(labels, arrays[len(features) :]) if labels else None,
            weights=self._weights(rows, training=training),
            rows=len(rows),
        )

    def _weights(self, rows: Positions, *, training: bool) -> Array | None:
        weights = None if self.weights is None else self.weights[rows]
        if self.factors is None:
            return weights
        factors = self.factors[rows] if training else np.ones(len(rows), dtype=np.float32)
        return factors if weights is None else weights * factors


def _scalar_reader(column: str | None) -> ArrowReader:
    slots = [] if column is None else [Slot(None, (column,))]
    return ArrowReader(slots, floatx="float64", allow_nan=True)


def _chosen_for_validation(rows: int, fraction: float, random: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Returns which rows, in their order by content, are for validation; at least one stays for training."""
    chosen = np.zeros(rows, dtype=np.bool_)
    count = max(0, min(rows - 1, math.floor(rows * fraction)))
    chosen[random.permutation(rows)[:count]] = True
    return chosen


def _generator(seed: int, *key: int) -> np.random.Generator:
    # Spark's seeds may be negative, numpy's may not.
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed % (1 << 64), spawn_key=key)))


def _digest(ordered: Hashes) -> str:
    return hashlib.blake2b(np.ascontiguousarray(ordered).data, digest_size=16).hexdigest()


def _checked(batch_size: int) -> int:
    if batch_size < 1:
        raise JobError(f"`batchSize` must be a whole number of at least 1. Received: {batch_size!r}.")
    return batch_size
