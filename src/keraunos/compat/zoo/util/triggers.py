"""`zoo.util.triggers`: BigDL's triggers under Analytics Zoo's names. Runs on the driver."""

from __future__ import annotations

from keraunos.compat.zoo.bigdl.optim.triggers import (
    EveryEpoch,
    MaxIteration,
    MaxScore,
    MinLoss,
    SeveralIteration,
    Trigger,
    TriggerAnd,
    TriggerOr,
)
from keraunos.compat.zoo.bigdl.optim.triggers import MaxEpoch as _MaxEpoch

__all__ = [
    "EveryEpoch",
    "MaxEpoch",
    "MaxIteration",
    "MaxScore",
    "MinLoss",
    "SeveralIteration",
    "TriggerAnd",
    "TriggerOr",
    "ZooTrigger",
]

ZooTrigger = Trigger


class MaxEpoch(_MaxEpoch):
    """From the end of the `max`-th epoch on."""

    def __init__(self, max: int) -> None:  # noqa: A002 - Analytics Zoo's name
        super().__init__(max)
