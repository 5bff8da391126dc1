"""Fitted models whose outputs become columns as they are. Runs on the driver."""

from __future__ import annotations

from keraunos.ml.model import FittedModel, distinct
from keraunos.ml.params import HasPredictionCols
from keraunos.ml.rendering import ArrayColumns, output_names


class GivesArrays(FittedModel, HasPredictionCols):
    """A fitted model that adds one column for each output, with the output's own dimensions."""

    def _rendering(self) -> ArrayColumns:
        ports = self._trained.signature.outputs
        columns = output_names(ports, self.getPredictionCol())
        distinct([column for column in columns if column])
        return ArrayColumns(ports, columns)
