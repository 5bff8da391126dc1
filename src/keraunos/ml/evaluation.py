"""From a fitted model's Params and a schema to what `evaluate` runs. Runs on the driver, before any task."""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import NumericType

from keraunos.errors import ModelError
from keraunos.job.columns import Columns, ColumnsArgument, Slot
from keraunos.ml import fitting
from keraunos.ml.existing import symbolic_inputs
from keraunos.ml.preparation import labels_in
from keraunos.ml.schema import scalar_column
from keraunos.ml.signature import Signature


def measured_columns(
    model: Any,
    schema: Any,
    signature: Signature,
    features: tuple[Slot, ...],
    *,
    label: ColumnsArgument | None,
    weight: str | None,
    case_sensitive: bool,
    allow_nan: bool = False,
) -> Columns:
    """The columns that a compiled model is measured on; refuses what it cannot be compared with."""
    from keraunos.learners.keras_archive import check_trainable
    from keraunos.learners.metric_states import check_mergeable

    if not model.compiled:
        raise ModelError(
            f"The model {model.name!r} must be compiled to be evaluated: its loss and metrics say what is measured. "
            "Received: a model that was never compiled. Call `model.compile(loss=..., metrics=...)` before `of`."
        )
    check_trainable(model, labelled=label is not None)
    check_mergeable(model)
    slots, specs = labels_in(schema, label, case_sensitive=case_sensitive, pixels=None)
    labels = fitting.checked_labels(model, slots, specs, signature)
    fitting.check_weights(label, weight)
    if not labels:
        fitting.check_unlabelled(model, lambda: symbolic_inputs(model))
    if weight is not None:
        weight = scalar_column(
            schema, weight, "weightCol", NumericType, "a column of numbers", case_sensitive=case_sensitive
        )
    return Columns(features, labels, weight, None, allow_nan)
