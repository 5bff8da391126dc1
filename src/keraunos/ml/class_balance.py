"""`classWeight="balanced"`: weights that make all classes count alike. Runs on the driver, as one Spark aggregation."""

from __future__ import annotations

import logging
from typing import Any

from pyspark.ml.functions import vector_to_array
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, NumericType

from keraunos.errors import DataError, JobError
from keraunos.job.columns import Slot
from keraunos.launch.spark import quoted
from keraunos.ml.schema import is_vector

logger = logging.getLogger(__name__)

MOST_CLASSES = 1_000_000


def balanced_weights(rows: Any, slot: Slot, indicator: str | None = None) -> dict[int, float]:
    """The number of rows to train on, divided by the number of classes and the rows of the class, for each class.

    Rows that the column `indicator` marks are left out. So are those without a label: the fit that follows names them.
    """
    if indicator is not None:
        rows = rows.filter(~sf.coalesce(sf.col(quoted(indicator)).cast("boolean"), sf.lit(col=False)))
    counted = rows.groupBy(_class_of(rows.schema, slot).alias("class")).count().limit(MOST_CLASSES + 1).collect()
    if len(counted) > MOST_CLASSES:
        raise JobError(
            f"`classWeight='balanced'` is for at most {MOST_CLASSES:,} classes. Received: more in column "
            f"{slot.columns[0]!r}. Use `weightCol` instead."
        )
    counts: dict[int, int] = {}
    for label, count in ((row["class"], int(row["count"])) for row in counted):
        if label is None or label != label:  # noqa: PLR0124 - NaN
            continue
        if label != int(label):
            raise DataError(
                "`classWeight='balanced'` needs labels that are whole numbers, or one-hot rows. "
                f"Received: {label!r} in column {slot.columns[0]!r}."
            )
        counts[int(label)] = counts.get(int(label), 0) + count
    total = sum(counts.values())
    weights = {label: total / (len(counts) * counts[label]) for label in sorted(counts)}
    logger.info("classWeight='balanced' is %r", weights)
    return weights


def _class_of(schema: Any, slot: Slot) -> Any:
    """The class of a row as an expression: a number, or the place of the largest element of a one-hot row."""
    if slot.stacked:
        return _place(sf.array(*(sf.col(quoted(name)).cast("double") for name in slot.columns)))
    (name,) = slot.columns
    column, kind = sf.col(quoted(name)), schema[name].dataType
    if is_vector(kind):
        return _place(vector_to_array(column))
    if not isinstance(kind, ArrayType):
        return column.cast("double")
    if not isinstance(kind.elementType, NumericType):
        raise JobError(
            "`classWeight='balanced'` needs labels that are whole numbers, or one-hot rows. Received: column "
            f"{name!r} of type {kind.simpleString()}. Use `weightCol` instead."
        )
    return _place(column.cast("array<double>"))


def _place(array: Any) -> Any:
    largest = (sf.array_position(array, sf.array_max(array)) - 1).cast("double")
    return sf.when(sf.size(array) == 1, sf.element_at(array, 1)).otherwise(largest)
