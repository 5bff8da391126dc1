"""The Params that say how long a fit waits for a worker that is away, and what it does then. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from keraunos.job.training_job import LEAST_PATIENCE, WHEN_LOST
from keraunos.ml import conversion
from keraunos.ml.params import Settings, param


class HasAttendance(Settings):
    """Patience with workers, and what follows when it ends."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {
        "workerPatience": 300.0,
        "driverPatience": 300.0,
        "onWorkerLost": "stop",
        "stallReportAfter": 300.0,
    }

    workerPatience = param(
        "workerPatience",
        "For how many seconds a fit waits for a worker that gives no sign of life: one that was lost and has not been "
        "started again, that stands still, or that the network does not reach.",
        conversion.seconds("workerPatience", at_least=LEAST_PATIENCE),
    )
    driverPatience = param(
        "driverPatience",
        "For how many seconds workers wait for a driver that is there but says nothing: a suspended machine, a paused "
        "container, a network that is cut. A driver whose process has ended is noticed within seconds.",
        conversion.seconds("driverPatience", at_least=LEAST_PATIENCE),
    )
    onWorkerLost = param(
        "onWorkerLost",
        "What happens to a fit whose patience with a worker has ended: 'stop' (an error says which worker on which "
        "host) or 'continue' (the others go on without it, and without its rows; a worker that holds a part of the "
        "parameters is never left out).",
        conversion.choice("onWorkerLost", WHEN_LOST),
    )
    stallReportAfter = param(
        "stallReportAfter",
        "After how many seconds in which no worker has got on, although one waits, the driver logs where every worker "
        "is: its round, its last messages and the stacks of its threads. The fit goes on.",
        conversion.seconds("stallReportAfter", at_least=LEAST_PATIENCE),
    )

    def getWorkerPatience(self) -> float:
        """For how many seconds a fit waits for a worker that gives no sign of life."""
        return float(self._get("workerPatience"))

    def setWorkerPatience(self, value: float) -> Self:
        """Set for how many seconds a fit waits for a worker that gives no sign of life."""
        return self.setParams(workerPatience=value)

    def getDriverPatience(self) -> float:
        """For how many seconds workers wait for a driver that is there but says nothing."""
        return float(self._get("driverPatience"))

    def setDriverPatience(self, value: float) -> Self:
        """Set for how many seconds workers wait for a driver that is there but says nothing."""
        return self.setParams(driverPatience=value)

    def getOnWorkerLost(self) -> str:
        """What happens to a fit whose patience with a worker has ended."""
        return str(self._get("onWorkerLost"))

    def setOnWorkerLost(self, value: str) -> Self:
        """Set what happens to a fit whose patience with a worker has ended."""
        return self.setParams(onWorkerLost=value)

    def getStallReportAfter(self) -> float:
        """After how many seconds without progress the driver logs where every worker is."""
        return float(self._get("stallReportAfter"))

    def setStallReportAfter(self, value: float) -> Self:
        """Set after how many seconds without progress the driver logs where every worker is."""
        return self.setParams(stallReportAfter=value)
