"""What must come of a fault, in one table. Tighten it when the engine can do more.

A fit that finishes must always be right. What differs is which faults it must survive, and which it may end over with a
clear error: add REFUSED there, and what the error must say.
"""

from __future__ import annotations

import re

from chaos.scenarios import (
    DISK,
    DRIVER,
    DRIVER_PAUSED,
    EXECUTOR,
    EXECUTOR_PAUSED,
    INTERRUPT,
    JOB_PAUSED,
    PARTITION,
    SERVER,
    WORKER,
    WORKER_PAUSED,
    Fault,
    Scenario,
)
from tests.clusters.fit_spec import CHECKPOINT, LOAD, TRAIN

FINISHED = "finished"
REFUSED = "refused"
INTERRUPTED = "interrupted"
HANG = "hang"
WRONG = "wrong"

SURVIVES = frozenset({FINISHED})
ENDS = frozenset({REFUSED})
MAY_END = SURVIVES | ENDS
BREAKS_OFF = frozenset({INTERRUPTED})

# By where the parameters live, then by fault. Every plan alike.
EXPECTED: dict[str | int, dict[str, frozenset[str]]] = {
    "driver": {
        WORKER: SURVIVES,
        EXECUTOR: SURVIVES,
        PARTITION: SURVIVES,
        DRIVER: SURVIVES,
        DISK: SURVIVES,
        INTERRUPT: BREAKS_OFF,
        WORKER_PAUSED: SURVIVES,
        EXECUTOR_PAUSED: SURVIVES,
        DRIVER_PAUSED: SURVIVES,
        JOB_PAUSED: SURVIVES,
    },
    "workers": {
        WORKER: SURVIVES,  # a part of the parameters goes with it; the training is launched again
        EXECUTOR: SURVIVES,
        PARTITION: SURVIVES,
        DRIVER: SURVIVES,
        DISK: SURVIVES,
        INTERRUPT: BREAKS_OFF,
        WORKER_PAUSED: SURVIVES,
        EXECUTOR_PAUSED: SURVIVES,
        DRIVER_PAUSED: SURVIVES,
        JOB_PAUSED: SURVIVES,
    },
    1: {
        WORKER: SURVIVES,
        EXECUTOR: SURVIVES,
        SERVER: SURVIVES,
        PARTITION: SURVIVES,
        DRIVER: SURVIVES,
        DISK: SURVIVES,
        INTERRUPT: BREAKS_OFF,
        WORKER_PAUSED: SURVIVES,
        EXECUTOR_PAUSED: SURVIVES,
        DRIVER_PAUSED: SURVIVES,
        JOB_PAUSED: SURVIVES,
    },
}
# The same for pauses that are longer than patience.
BEYOND: dict[str | int, dict[str, frozenset[str]]] = {
    "driver": {
        WORKER_PAUSED: MAY_END,  # onWorkerLost='stop'
        EXECUTOR_PAUSED: SURVIVES,  # its Python processes go on, and so do their heartbeats
        DRIVER_PAUSED: MAY_END,
        JOB_PAUSED: SURVIVES,  # time in which a process stood still itself does not count
    },
    "workers": {
        WORKER_PAUSED: SURVIVES,  # a part of the parameters is lost; the training is launched again
        EXECUTOR_PAUSED: SURVIVES,
        DRIVER_PAUSED: MAY_END,
        JOB_PAUSED: SURVIVES,
    },
    1: {
        WORKER_PAUSED: MAY_END,
        EXECUTOR_PAUSED: SURVIVES,
        DRIVER_PAUSED: MAY_END,
        JOB_PAUSED: SURVIVES,
    },
}
# When a fit waits for a worker that is silent; at other stages it may not be needed any more, or not be known yet.
_WAITED_FOR = frozenset({LOAD, TRAIN, CHECKPOINT})
# What an error must say: who was silent, and which Param says for how long it is waited for.
NAMES_THE_SILENT = {
    WORKER_PAUSED: r"Worker {rank} on \S+ failed: nothing was heard from it for .* workerPatience",
    DRIVER_PAUSED: r"from the driver at .* \(driverPatience\)",
}
# Where nobody waits, no two fits have the same weights, and a rank that was away trains on alone at the end, on its own
# rows: an elastic fit is then 0.03 less accurate, killed or only paused alike, give or take 0.005 on 360 rows.
ACCURACY_LOSS = 0.045
SAME_WEIGHTS = 1e-5


def allowed(scenario: Scenario) -> frozenset[str]:
    """The outcomes that are as they should be."""
    found = [_allowed(scenario, fault) for fault in scenario.faults]
    if BREAKS_OFF in found:
        return BREAKS_OFF
    if ENDS in found:
        return ENDS
    return frozenset().union(SURVIVES, *found)


def _allowed(scenario: Scenario, fault: Fault) -> frozenset[str]:
    if not fault.beyond:
        return EXPECTED[scenario.servers][fault.kind]
    found = BEYOND[scenario.servers][fault.kind]
    waited_for = fault.stage in _WAITED_FOR and same_weights(scenario)
    return ENDS if fault.kind == WORKER_PAUSED and found == MAY_END and waited_for else found


def names_the_silent(scenario: Scenario, message: str, rank: int | None) -> bool:
    """Whether an error says who was silent, where one of the faults is a pause that may end a fit."""
    for fault in scenario.faults:
        pattern = NAMES_THE_SILENT.get(fault.kind) if fault.beyond else None
        if pattern is not None and not re.search(pattern.replace("{rank}", str(rank)), message):
            return False
    return True


def same_weights(scenario: Scenario) -> bool:
    """Whether a fit that finishes must have the weights of the undisturbed one."""
    return scenario.plan in {"allreduce", "averaging", "diloco"}
