"""What is tried: a plan, a place for the parameters, and what goes wrong when. Drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

WORKERS = 2
# Rounds are short, so that there are many of them to disturb; where workers do not wait, epochs are short, too, and the
# driver hears of them late.
PLANS: dict[str, dict[str, Any]] = {
    "allreduce": {"epochs": 40},
    "averaging": {"epochs": 80, "every": 10},
    "diloco": {"epochs": 80, "every": 20},
    "downpour": {"epochs": 240},
    "bounded": {"epochs": 240},
    "elastic": {"epochs": 240},
    "hogwild": {"epochs": 240},
}
SYNCHRONOUS = ("allreduce", "averaging", "diloco")
PLACEMENTS: tuple[str | int, ...] = ("driver", "workers", 1)
BATCH_SIZE = 8

WORKER = "worker killed"
EXECUTOR = "executor killed"
SERVER = "server killed"
DRIVER = "driver killed"
STALL = "worker stalled"
PARTITION = "host cut off"
DISK = "disk full"
KILLS = (WORKER, EXECUTOR, SERVER, DRIVER)


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong.

    Attributes:
        kind: what.
        rank: to whom, or to another rank where this one is through; the server's slice for `SERVER`.
        epoch: it happens when this epoch of the fit has ended,
        delay: so many seconds later,
        seconds: and lasts so long, where it does not last.
    """

    kind: str
    rank: int
    epoch: int
    delay: float
    seconds: float = 0.0


@dataclass(frozen=True)
class Scenario:
    """One run; `shuffled` says whether the rows come out of a shuffle."""

    number: int
    plan: str
    servers: str | int
    shuffled: bool
    faults: tuple[Fault, ...]

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of its faults."""
        return frozenset(fault.kind for fault in self.faults)

    @property
    def params(self) -> dict[str, Any]:
        """The estimator's Params."""
        return {**params_of(self.plan), "servers": self.servers}


def params_of(plan: str) -> dict[str, Any]:
    """The Params of a plan, wherever its parameters live."""
    return {"exchange": plan, "batchSize": BATCH_SIZE, **PLANS[plan]}


def draw(count: int, seed: int, kinds: Sequence[str]) -> list[Scenario]:
    """So many scenarios with faults of these kinds; the first ones are the same however many are drawn.

    Every plan, placement and kind of fault comes about as often as any other.
    """
    chance = random.Random(seed)
    pairs = _endless(chance, [(plan, servers) for plan in PLANS for servers in PLACEMENTS])
    firsts = _endless(chance, list(kinds))
    scenarios = []
    for number in range(count):
        plan, servers = next(pairs)
        possible = [kind for kind in kinds if kind != SERVER or servers == 1]
        first = next(firsts)
        chosen = [first if first in possible else chance.choice(possible)]
        # The driver goes last: whoever is then started has no memory of what was to happen.
        if chance.random() < 0.4 and chosen[0] != DRIVER:
            chosen.append(chance.choice(possible))
        faults = tuple(sorted((_fault(chance, kind, plan) for kind in chosen), key=lambda each: each.epoch))
        ordered = tuple(sorted(faults, key=lambda each: each.kind == DRIVER))
        scenarios.append(Scenario(number, plan, servers, chance.random() < 0.5, ordered))
    return scenarios


def _endless(chance: random.Random, items: list[Any]) -> Any:
    """All items in a random order, again and again."""
    while True:
        yield from chance.sample(items, len(items))


def _fault(chance: random.Random, kind: str, plan: str) -> Fault:
    rank = 0 if kind == SERVER else chance.randrange(WORKERS)
    epoch = int(PLANS[plan]["epochs"] * chance.uniform(0.05, 0.4))
    return Fault(
        kind, rank, epoch, round(chance.uniform(0, 0.3), 3), 0.0 if kind in KILLS else chance.choice([2, 5, 8, 15])
    )
