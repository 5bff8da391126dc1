"""`bigdl.dataset.transformer`: what makes records of arrays. Runs on the driver and on executors."""

from __future__ import annotations

from typing import Any

from keraunos.compat.zoo.bigdl.util.common import Sample

__all__ = ["Sample", "normalizer"]


def normalizer(data: Any, mean: float, std: float) -> Any:
    """Returns the data less their mean, as multiples of the deviation."""
    return (data - mean) / std
