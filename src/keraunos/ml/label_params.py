"""The Params that say what a model is compared with: by a fit, and by `evaluate`. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from keraunos.ml import conversion
from keraunos.ml.params import Columns, Settings, param


class HasLabels(Settings):
    """Where labels and the rows' weights come from."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"labelCol": "label"}
    _TAKES_NONE: ClassVar[frozenset[str]] = frozenset({"labelCol"})

    labelCol = param(
        "labelCol",
        "What the model should learn to give: a column of numbers, arrays or vectors; a list of columns with one "
        "number each; or, for a model with several outputs, a dict from output name to either, without the outputs "
        "that have no loss. None: the model computes its loss without labels.",
        conversion.columns("labelCol", optional=True),
    )
    weightCol = param(
        "weightCol",
        "A column with the weight of each row in the loss and in weighted metrics. Not set or empty: all rows weigh 1.",
        conversion.column_name("weightCol"),
    )

    def getLabelCol(self) -> Columns | None:
        """The column, list of columns or dict that the model learns; `None` for a model without labels."""
        value: Columns | None = conversion.columns("labelCol", optional=True)(self._get("labelCol"))
        return value

    def setLabelCol(self, value: Columns | None) -> Self:
        """Set the column, list of columns or dict that the model learns; `None` for a model without labels."""
        return self.setParams(labelCol=value)

    def getWeightCol(self) -> str | None:
        """The column of the rows' weights."""
        return str(self._get("weightCol") or "") or None

    def setWeightCol(self, value: str) -> Self:
        """Set the column of the rows' weights."""
        return self.setParams(weightCol=value)
