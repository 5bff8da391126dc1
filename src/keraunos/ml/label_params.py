"""The Params that say what a model is compared with: by a fit, and by `evaluate`. Runs on the driver."""

from __future__ import annotations

from copy import deepcopy
from typing import ClassVar

from keraunos.ml import conversion
from keraunos.ml.declaration import param
from keraunos.ml.params import Settings


class HasLabels(Settings):
    """Where labels and the rows' weights come from."""

    _TAKES_NONE: ClassVar[frozenset[str]] = frozenset({"labelCol"})

    labelCol, getLabelCol, setLabelCol = param(
        "What the model should learn to give: a column of numbers, arrays or vectors; a list of columns with one "
        "number each; or, for a model with several outputs, a dict from output name to either, without the outputs "
        "that have no loss. None: the model computes its loss without labels.",
        conversion.optional_columns("labelCol"),
        default="label",
        read=deepcopy,
    )
    weightCol, getWeightCol, setWeightCol = param(
        "A column with the weight of each row in the loss and in weighted metrics. Not set or empty: all rows weigh 1.",
        conversion.column_name("weightCol"),
        read=conversion.if_named,
    )
