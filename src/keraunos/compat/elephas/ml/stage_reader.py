"""Reads stages from folders that Keraunos or Elephas's estimator wrote. Runs on the driver."""

from __future__ import annotations

from typing import Any

from pyspark.ml.util import DefaultParamsReader

from keraunos.ml.persistence import PartsReader, loading_session

_ELEPHAS = "elephas.ml_model."


class StageReader(PartsReader[Any]):
    """Reads folders of Keraunos, and those that Elephas's estimator wrote with spark.ml."""

    def load(self, path: str) -> Any:
        """Returns the stage at the path."""
        metadata = DefaultParamsReader.loadMetadata(str(path), loading_session(self))
        if metadata["class"] != f"{_ELEPHAS}{self.cls.__name__}":
            return super().load(path)
        stage: Any = self.cls()
        stage._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(stage, metadata)
        return stage
