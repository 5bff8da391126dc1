"""The Params that say how long a fit waits for a worker that is away, and what it does then. Runs on the driver."""

from __future__ import annotations

from keraunos.job.training_job import LEAST_PATIENCE, WHEN_LOST
from keraunos.ml import conversion
from keraunos.ml.declaration import param
from keraunos.ml.params import Settings


class HasAttendance(Settings):
    """Patience with workers, and what follows when it ends."""

    workerPatience, getWorkerPatience, setWorkerPatience = param(
        "For how many seconds a fit waits for a worker that gives no sign of life: one that was lost and has not been "
        "started again, that stands still, or that the network does not reach.",
        conversion.seconds("workerPatience", at_least=LEAST_PATIENCE),
        default=300.0,
    )
    driverPatience, getDriverPatience, setDriverPatience = param(
        "For how many seconds workers wait for a driver that is there but says nothing: a suspended machine, a paused "
        "container, a network that is cut. A driver whose process has ended is noticed within seconds.",
        conversion.seconds("driverPatience", at_least=LEAST_PATIENCE),
        default=300.0,
    )
    onWorkerLost, getOnWorkerLost, setOnWorkerLost = param(
        "What happens to a fit whose patience with a worker has ended: 'stop' (an error says which worker on which "
        "host) or 'continue' (the others go on without it, and without its rows; a worker that holds a part of the "
        "parameters is never left out).",
        conversion.choice("onWorkerLost", WHEN_LOST),
        default="stop",
    )
    stallReportAfter, getStallReportAfter, setStallReportAfter = param(
        "After how many seconds in which no worker has got on, although one waits, the driver logs where every worker "
        "is: its round, its last messages and the stacks of its threads. The fit goes on.",
        conversion.seconds("stallReportAfter", at_least=LEAST_PATIENCE),
        default=300.0,
    )
