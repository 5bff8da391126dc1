"""Validation rows that come as a DataFrame of their own, put beside those to train on. Runs on the driver.

A fit reads one table. A column that no user sees marks the rows to validate on, as `validationIndicatorCol` does.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as sf
from pyspark.sql.types import DataType

from keraunos.errors import ColumnError
from keraunos.job.columns import Columns
from keraunos.launch.spark import quoted
from keraunos.ml.schema import column_spec, is_vector
from keraunos.session.registry import session_of

INDICATOR = "__keraunos_validation"


def check_validation_schema(training: Any, validation: Any, columns: Columns, *, case_sensitive: bool) -> None:
    """Raise where a column that is read is missing in the schema of `validationData`, or of another type there."""
    _spellings(training, validation, columns, case_sensitive=case_sensitive)


def with_validation(training: Any, validation: Any, columns: Columns, workers: int, *, case_sensitive: bool) -> Any:
    """One DataFrame of what is read of both, with the mark of the rows to validate on.

    It is laid out for as many workers, each of which gets rows of both. One partition for one worker stays as it is.
    """
    spellings = _spellings(training.schema, validation.schema, columns, case_sensitive=case_sensitive)
    read = [sf.col(quoted(name)) for name in spellings]
    marked = [sf.col(quoted(theirs)).alias(name) for name, theirs in spellings.items()]
    both = training.select(*read, sf.lit(col=False).alias(INDICATOR)).union(
        validation.select(*marked, sf.lit(col=True).alias(INDICATOR))
    )
    if workers == 1 and session_of(training).partitions_of(training) == 1:
        return both.coalesce(1)
    # As many partitions as workers may be there by chance, and each of them would be of one kind only.
    return both.repartition(workers)


def _spellings(training: Any, validation: Any, columns: Columns, *, case_sensitive: bool) -> dict[str, str]:
    """For each column that is read how `validationData` spells it."""
    fields = {field.name: field for field in training.fields}
    return {
        name: _counterpart(fields[name], validation, case_sensitive=case_sensitive)
        for name in columns.names
        if name != INDICATOR
    }


def _counterpart(field: Any, validation: Any, *, case_sensitive: bool) -> str:
    found = [each for each in validation.fields if each.name == field.name]
    if not found and not case_sensitive:
        found = [each for each in validation.fields if each.name.lower() == field.name.lower()]
    if not found:
        names = ", ".join(repr(each.name) for each in validation.fields)
        raise ColumnError(
            f"`validationData` must have every column that the fit reads. Expected {field.name!r}. Received: {names}."
        )
    theirs = found[0]
    if not _same(field.dataType, theirs.dataType):
        raise ColumnError(
            f"Column {field.name!r} must have one type in both DataFrames. Expected "
            f"{field.dataType.simpleString()}, as in the training rows. Received: {theirs.dataType.simpleString()} in "
            "`validationData`. Cast one of them."
        )
    _check_lengths(field, theirs)
    return str(theirs.name)


def _check_lengths(field: Any, theirs: Any) -> None:
    if not is_vector(field.dataType):
        return
    ours, other = column_spec(field, "featuresCol").shape, column_spec(theirs, "validationData").shape
    if None not in (*ours, *other) and ours != other:
        raise ColumnError(
            f"Column {field.name!r} must have one length in both DataFrames. Expected {ours}, as in the training rows. "
            f"Received: {other} in `validationData`."
        )


def _same(one: DataType, other: DataType) -> bool:
    return type(one) is type(other) and one.simpleString() == other.simpleString()
