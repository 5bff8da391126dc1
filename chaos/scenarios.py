"""What is tried: a plan, a place for the parameters, and what goes wrong when. Drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.clusters.fit_spec import CHECKPOINT, COLLECT, END, LAUNCH, LOAD, STAGES, TRAIN

WORKERS = 2
# Rounds are short, so that there are many of them to disturb; where workers do not wait, epochs are short, too, and the
# driver hears of them late.
PLANS: dict[str, dict[str, Any]] = {
    "allreduce": {"epochs": 40},
    "averaging": {"epochs": 80, "every": 10},
    "diloco": {"epochs": 80, "every": 20},
    "downpour": {"epochs": 160},
    "bounded": {"epochs": 160},
    "elastic": {"epochs": 160},
    "hogwild": {"epochs": 160},
}
SYNCHRONOUS = ("allreduce", "averaging", "diloco")
PLACEMENTS: tuple[str | int, ...] = ("driver", "workers", 1)
BATCH_SIZE = 8

WORKER = "worker killed"
EXECUTOR = "executor killed"
SERVER = "server killed"
DRIVER = "driver killed"
PARTITION = "host cut off"
DISK = "disk full"
INTERRUPT = "Ctrl-C"
DRIVER_PAUSED = "driver paused"
WORKER_PAUSED = "worker paused"
EXECUTOR_PAUSED = "executor paused"
JOB_PAUSED = "job paused"
KILLS = (WORKER, EXECUTOR, SERVER, DRIVER)
PAUSES = (DRIVER_PAUSED, WORKER_PAUSED, EXECUTOR_PAUSED, JOB_PAUSED)
# These come at every stage of a fit; the others during training.
STAGED = (INTERRUPT, *PAUSES)
# These hit nobody in particular.
WITHOUT_RANK = (SERVER, DRIVER, DISK, INTERRUPT, DRIVER_PAUSED, JOB_PAUSED)

# The least that the Params allow, and pauses that are longer.
SHORT_PATIENCE = 5.0
_BEYOND_SECONDS = (8, 12)
# With the patience that a user has who sets nothing. The longest is one after which connections are made anew.
_WITHIN_SECONDS = (2, 5, 12)
_LASTING_SECONDS = (2, 5, 8, 15)
# The runs after which every kind of fault has come at each of its stages, and how often each other one has come.
_DECK = 60
# Reading the rows takes this long where it is to be disturbed.
SLOW_ROW_MS = 2


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong.

    Attributes:
        kind: what.
        rank: to whom, or to another rank where this one is through; the server's slice for `SERVER`.
        epoch: during training it happens when this epoch of the fit has ended,
        delay: so many seconds later,
        seconds: and lasts so long, where it does not last.
        stage: of the fit.
        beyond: whether a pause is longer than the patience of the others.
    """

    kind: str
    rank: int
    epoch: int
    delay: float
    seconds: float = 0.0
    stage: str = TRAIN
    beyond: bool = False

    @property
    def label(self) -> str:
        """Its kind as the tables have it."""
        if self.kind not in PAUSES:
            return self.kind
        return f"{self.kind} {'beyond' if self.beyond else 'within'} patience"


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
    def stages(self) -> frozenset[str]:
        """The stages at which something goes wrong."""
        return frozenset(fault.stage for fault in self.faults)

    @property
    def needs_disk(self) -> bool:
        """Whether the training has to be saved in a directory."""
        return bool(self.kinds & {DRIVER, DISK}) or CHECKPOINT in self.stages

    @property
    def is_interrupted(self) -> bool:
        """Whether the fit is to end in KeyboardInterrupt."""
        return INTERRUPT in self.kinds

    @property
    def params(self) -> dict[str, Any]:
        """The estimator's Params."""
        beyond = any(fault.beyond for fault in self.faults)
        patience = {"workerPatience": SHORT_PATIENCE, "driverPatience": SHORT_PATIENCE} if beyond else {}
        return {**params_of(self.plan), "servers": self.servers, **patience}


def params_of(plan: str) -> dict[str, Any]:
    """The Params of a plan, wherever its parameters live."""
    return {"exchange": plan, "batchSize": BATCH_SIZE, **PLANS[plan]}


def stages_of(kind: str) -> tuple[str, ...]:
    """Where a fault of this kind can come."""
    if kind not in STAGED:
        return (TRAIN,)
    return tuple(stage for stage in STAGES if kind != WORKER_PAUSED or stage != LAUNCH)


def draw(count: int, seed: int, kinds: Sequence[str]) -> list[Scenario]:
    """So many scenarios with faults of these kinds; the first ones are the same however many are drawn.

    In 60 of them every kind that has stages comes at each of them, pauses both within and beyond patience. Kinds come
    in turns, so that few scenarios have many of them; plans and placements come about equally often.
    """
    chance = random.Random(seed)
    pairs = _endless(chance, [(plan, servers) for plan in PLANS for servers in PLACEMENTS])
    scenarios: list[Scenario] = []
    passed_over: list[tuple[str, str | int]] = []
    while len(scenarios) < count:
        for wanted in _deck(chance, kinds):
            plan, servers = _fitting(pairs, passed_over, wanted)
            faults = [_fault(chance, plan, *each) for each in wanted]
            faults.sort(key=lambda each: (STAGES.index(each.stage), each.epoch))
            scenarios.append(Scenario(len(scenarios), plan, servers, chance.random() < 0.5, tuple(faults)))
    return scenarios[:count]


# A fault that is wanted: its kind, its stage, and whether it lasts beyond patience.
_Wanted = tuple[str, str, bool]


def _deck(chance: random.Random, kinds: Sequence[str]) -> list[list[_Wanted]]:
    """The faults of the next runs.

    What a fit must survive comes together with a pause that it must survive, too. An interrupt and a pause beyond
    patience, which may end a fit, come alone.
    """
    staged = [(kind, stage) for kind in STAGED if kind in kinds for stage in stages_of(kind)]
    alone: list[list[_Wanted]] = [[(kind, stage, kind in PAUSES)] for kind, stage in staged]
    within: list[_Wanted] = [(kind, stage, False) for kind, stage in staged if kind in PAUSES]
    chance.shuffle(within)
    others = [kind for kind in kinds if kind not in STAGED]
    if not others:
        return _in_turns(chance, alone + [[each] for each in within])
    taken = _endless(chance, others)
    survived: list[list[_Wanted]] = [[(next(taken), TRAIN, False)] for _ in range(max(len(others), _DECK - len(alone)))]
    for number, pause in enumerate(within):
        survived[number % len(survived)].append(pause)
    return _in_turns(chance, alone + survived)


def _in_turns(chance: random.Random, runs: list[list[_Wanted]]) -> list[list[_Wanted]]:
    """The runs in a random order in which no first kind comes again before all that are left have come."""
    chance.shuffle(runs)
    seen: dict[str, int] = {}
    places = []
    for wanted in runs:
        kind = wanted[0][0]
        seen[kind] = seen.get(kind, 0) + 1
        places.append(seen[kind])
    order = sorted(range(len(runs)), key=lambda each: (places[each], chance.random()))
    return [runs[each] for each in order]


def _fitting(
    pairs: Iterator[tuple[str, str | int]], passed_over: list[tuple[str, str | int]], wanted: list[_Wanted]
) -> tuple[str, str | int]:
    """The next plan and placement in which these faults can come; those before them have their turn later."""
    for number, pair in enumerate(passed_over):
        if all(_can_come(each, *pair) for each in wanted):
            return passed_over.pop(number)
    for pair in pairs:
        if all(_can_come(each, *pair) for each in wanted):
            return pair
        passed_over.append(pair)
    raise AssertionError


def _can_come(wanted: _Wanted, plan: str, servers: str | int) -> bool:
    kind, stage, _ = wanted
    if kind == SERVER:
        return servers == 1
    # Workers that do not wait for each other, and hold nothing, are gone by the end.
    late = kind == WORKER_PAUSED and stage in {COLLECT, END}
    return not late or servers == "workers" or plan in SYNCHRONOUS


def _endless(chance: random.Random, items: list[Any]) -> Iterator[Any]:
    """All items in a random order, again and again."""
    while True:
        yield from chance.sample(items, len(items))


def _fault(chance: random.Random, plan: str, kind: str, stage: str, beyond: bool) -> Fault:
    rank = 0 if kind == SERVER else chance.randrange(WORKERS)
    epoch = int(PLANS[plan]["epochs"] * chance.uniform(0.05, 0.4)) if stage == TRAIN else 0
    # Rows are read for longer than that.
    delay = round(chance.uniform(0, 0.6 if stage == LOAD else 0.3), 3) if stage in {LOAD, TRAIN} else 0.0
    return Fault(kind, rank, epoch, delay, _seconds(chance, kind, beyond=beyond), stage, beyond)


def _seconds(chance: random.Random, kind: str, *, beyond: bool) -> float:
    if kind in {*KILLS, INTERRUPT}:
        return 0.0
    if kind in PAUSES:
        return chance.choice(_BEYOND_SECONDS if beyond else _WITHIN_SECONDS)
    return chance.choice(_LASTING_SECONDS)
