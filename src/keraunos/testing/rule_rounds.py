"""Rounds of contributions to a small vector, and the vector in slices, each with its rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from keraunos.exchange.rules import registry
from keraunos.exchange.rules.rule import Sent
from keraunos.exchange.sharding import Slice, cut
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Layout, Vector

LAYOUT = Layout(
    ("a/kernel", "a/bias", "b/kernel", "b/bias", "n/mean", "n/variance"),
    ((7, 5), (5,), (5, 3), (3,), (4,), (4,)),
    trainable=4,
)
ROWS = (8, 4, 2)
WORKERS = len(ROWS)


def first_parameters() -> Vector:
    """Returns the initial vector."""
    return np.random.default_rng(1).normal(size=LAYOUT.size).astype(np.float32)


def rounds_of(plan: ExchangePlan, count: int) -> list[list[Sent]]:
    """Returns `count` rounds, each with the contributions of all workers in the order of the ranks."""
    random = np.random.default_rng(2)
    rounds = []
    for _ in range(count):
        vectors = [random.normal(size=LAYOUT.size).astype(np.float32) for _ in ROWS]
        rounds.append([_sent(plan, vector, rank) for rank, vector in enumerate(vectors)])
    return rounds


class ServedVector:
    """A vector in one slice per server, as the servers hold it."""

    def __init__(self, plan: ExchangePlan, servers: int = 1) -> None:
        self.plan = plan
        self.slices = cut(LAYOUT, servers, anywhere=registry.is_elementwise(plan))
        self.rules = [registry.make_rule(plan, part, WORKERS) for part in self.slices]
        self.parameters = first_parameters()
        # The tests see elements that are not filled.
        gives = registry.gives_parameters(plan)
        self.result = self.parameters if gives else np.full_like(self.parameters, np.nan)

    def apply(self, sent: Sequence[Sent]) -> None:
        """Apply contributions of a round: all at once under a synchronous plan, otherwise one after the other."""
        for group in [list(sent)] if self.plan.synchronous else [[each] for each in sent]:
            mine = [[_of_slice(each, part) for each in group] for part in self.slices]
            norm = self._squared_norm(mine)
            for part, rule, given in zip(self.slices, self.rules, mine, strict=True):
                place = slice(part.start, part.stop)
                rule.apply(given, self.parameters[place], self.result[place], squared_norm=norm)

    def finish(self) -> None:
        """End the training."""
        for part, rule in zip(self.slices, self.rules, strict=True):
            rule.finish(self.parameters[part.start : part.stop])

    def go_on_from(self, other: ServedVector) -> None:
        """Copy the parameters of another vector with as many slices, and restore new rules from its rules' states."""
        np.copyto(self.parameters, other.parameters)
        for rule, kept in zip(self.rules, other.rules, strict=True):
            state = kept.state()
            if state:
                rule.restore([np.array(each) for each in state])

    def assert_same_bits(self, other: ServedVector) -> None:
        """Fail if the parameters, or the results for workers, differ."""
        np.testing.assert_array_equal(self.parameters, other.parameters)
        np.testing.assert_array_equal(self.result, other.result)

    def _squared_norm(self, mine: Sequence[Sequence[Sent]]) -> float | None:
        if not self.plan.synchronous:
            return mine[0][0].squared_norm
        if not registry.needs_norm(self.plan):
            return None
        return sum(rule.squared_norm(given) for rule, given in zip(self.rules, mine, strict=True))


def _sent(plan: ExchangePlan, vector: Vector, rank: int) -> Sent:
    """Returns a worker's contribution: a gradient, an update or weights, multiplied by its rows."""
    rows = ROWS[rank]
    trained = vector[: LAYOUT.trainable_size].astype(np.float64)
    return Sent(
        vector * np.float32(rows),
        (float(rows),),
        rows,
        staleness=0 if plan.synchronous else rank,
        squared_norm=float(trained @ trained) if registry.needs_norm(plan) else None,
        rank=rank,
    )


def _of_slice(sent: Sent, part: Slice) -> Sent:
    values = part.of_contribution(sent.values, len(sent.denominators))
    return replace(sent, values=values[0] if len(values) == 1 else np.concatenate(values))
