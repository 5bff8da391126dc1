"""What must come of a fault, in one table. Tighten it when the engine can do more.

A fit that finishes must always be right. What differs is which faults it must survive, and which it may end over with a
clear error: add REFUSED there.
"""

from __future__ import annotations

from chaos.scenarios import DISK, DRIVER, EXECUTOR, PARTITION, SERVER, STALL, WORKER, Scenario

FINISHED = "finished"
REFUSED = "refused"
HANG = "hang"
WRONG = "wrong"

SURVIVES = frozenset({FINISHED})

# By where the parameters live, then by fault. Every plan alike.
EXPECTED: dict[str | int, dict[str, frozenset[str]]] = {
    "driver": {
        WORKER: SURVIVES,
        EXECUTOR: SURVIVES,
        STALL: SURVIVES,
        PARTITION: SURVIVES,
        DRIVER: SURVIVES,
        DISK: SURVIVES,
    },
    "workers": {
        WORKER: SURVIVES,  # a part of the parameters goes with it; the training is launched again
        EXECUTOR: SURVIVES,
        STALL: SURVIVES,
        PARTITION: SURVIVES,
        DRIVER: SURVIVES,
        DISK: SURVIVES,
    },
    1: {
        WORKER: SURVIVES,
        EXECUTOR: SURVIVES,
        SERVER: SURVIVES,
        STALL: SURVIVES,
        PARTITION: SURVIVES,
        DRIVER: SURVIVES,
        DISK: SURVIVES,
    },
}
# Where nobody waits, no two fits have the same weights.
ACCURACY_LOSS = 0.03
SAME_WEIGHTS = 1e-5


def allowed(scenario: Scenario) -> frozenset[str]:
    """The outcomes that are as they should be."""
    table = EXPECTED[scenario.servers]
    found = SURVIVES
    for fault in scenario.faults:
        found |= table[fault.kind]
    return found


def same_weights(scenario: Scenario) -> bool:
    """Whether a fit that finishes must have the weights of the undisturbed one."""
    return scenario.plan in {"allreduce", "averaging", "diloco"}
