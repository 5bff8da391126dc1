"""From a fitted model's Params and a schema to what `evaluate` runs. Runs on the driver, before any task."""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import NumericType

from keraunos.job.columns import Columns, ColumnsArgument, Slot
from keraunos.ml import fitting
from keraunos.ml.live_models import LiveModels
from keraunos.ml.preparation import labels_in
from keraunos.ml.schema import scalar_column
from keraunos.ml.signature import Signature


def measured_columns(
    live: LiveModels,
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
    """The columns that a model is measured on; refuses what it cannot be compared with."""
    live.check_measurable(model, labelled=label is not None)
    slots, specs = labels_in(schema, label, case_sensitive=case_sensitive, pixels=None)
    labels = live.checked_labels(model, slots, specs, signature)
    fitting.check_weights(label, weight)
    if not labels:
        live.check_unlabelled(model)
    if weight is not None:
        weight = scalar_column(
            schema, weight, "weightCol", NumericType, "a column of numbers", case_sensitive=case_sensitive
        )
    return Columns(features, labels, weight, None, allow_nan)
