"""What every transport promises, driven by real members and a real driver: results, passing, leaving, and a lost peer.

A test class inherits `TransportSuite` and says by `servers` which placement, and so which transport, it is for. What is
expected is computed here, by plain sums in the order of the ranks.
"""

import time

import numpy as np
import pytest

from keraunos.errors import ExchangeError
from keraunos.exchange.transports.registry import transport_class
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.placement import placement_of
from keraunos.parameters import Layout
from tests.exchange.members import Job

WORKERS = 3
ROUNDS = 4
# More than a chunk of the wire, cut where no worker's part is as long as another's; with float state behind it.
LAYOUT = Layout(("w", "s"), ((300_007,), (11,)), trainable=1)
INITIAL = np.linspace(-1, 1, LAYOUT.size, dtype=np.float32)
ALLREDUCE = ExchangePlan.named("allreduce")
PLANS = {
    "allreduce": ALLREDUCE,
    "averaging": ExchangePlan.named("averaging", every=1),
    "mean of updates": ExchangePlan("updates", 1, "synchronous", "mean"),
    "sum of updates": ExchangePlan("updates", 1, "synchronous", "sum"),
    "mean of weights": ExchangePlan("weights", 1, "synchronous", "mean"),
}


def values_of(rank, round_):
    return np.random.default_rng((rank, round_)).normal(size=LAYOUT.size).astype(np.float32)


def rows_of(rank, round_):
    """Uneven, as the last batches of uneven shards are."""
    return 1 + 7 * rank + round_


def contributes(rank, round_):
    return values_of(rank, round_), rows_of(rank, round_)


def sent_by(rank, round_):
    return values_of(rank, round_) * np.float32(rows_of(rank, round_))


def total_of(ranks, round_):
    """The plain sum of what ranks have sent, in their order."""
    total = sent_by(ranks[0], round_)
    for rank in ranks[1:]:
        total = total + sent_by(rank, round_)
    return total


def expected(plan, who):
    """What all workers collect in each round, where `who(round)` are the ranks that contribute to it."""
    parameters, results = INITIAL, []
    for round_ in range(ROUNDS):
        ranks = list(who(round_))
        parameters = moved(plan, parameters, ranks, round_) if ranks else parameters
        results.append(parameters)
    return results


def moved(plan, parameters, ranks, round_):
    """What a round with these contributions leads to."""
    total, share = total_of(ranks, round_), 1 / sum(float(rows_of(rank, round_)) for rank in ranks)
    if plan.applies_on_workers or plan.send == "weights":
        return total * np.float32(share)
    state = parameters[LAYOUT.trainable_size :] + total[LAYOUT.trainable_size :] * np.float32(-share)
    trained = parameters[: LAYOUT.trainable_size]
    if plan.rule.name == "mean":
        trained = trained + total[: LAYOUT.trainable_size] * np.float32(-plan.factor(len(ranks)) * share)
    else:
        for rank in ranks:
            factor = np.float32(-1 / float(rows_of(rank, round_)))
            trained = trained + sent_by(rank, round_)[: LAYOUT.trainable_size] * factor
    return np.concatenate([trained, state])


class LostError(Exception):
    """What ends a member in the midst of a round, without a word."""


@pytest.mark.leaks
class TransportSuite:
    servers = "driver"

    def job(self, plan, contribute=contributes, **options):
        return Job(plan, LAYOUT, INITIAL, contribute, workers=WORKERS, rounds=ROUNDS, servers=self.servers, **options)

    def assert_collected(self, plan, outcome, who, ranks=range(WORKERS)):
        for rank in ranks:
            collected = outcome.results[rank]
            assert len(collected) == ROUNDS
            for ours, theirs in zip(collected, expected(plan, who), strict=True):
                np.testing.assert_array_equal(ours, theirs)

    def test_it_is_the_transport_of_its_placement(self):
        found = transport_class(placement_of(self.servers))
        found.check(ALLREDUCE)
        assert "synchronous" in found.meets

    @pytest.mark.parametrize("name", PLANS)
    def test_everyone_collects_the_plain_sum_in_the_order_of_the_ranks(self, name):
        plan = PLANS[name]
        outcome = self.job(plan).run()
        self.assert_collected(plan, outcome, lambda _: range(WORKERS))
        if not plan.applies_on_workers:
            np.testing.assert_array_equal(outcome.parameters, outcome.results[0][-1])

    @pytest.mark.parametrize("name", PLANS)
    def test_who_arrives_last_makes_no_difference(self, name):
        def late(rank, round_):
            if rank == round_ % WORKERS:
                time.sleep(0.1)
            return contributes(rank, round_)

        self.assert_collected(PLANS[name], self.job(PLANS[name], late).run(), lambda _: range(WORKERS))

    @pytest.mark.parametrize("name", PLANS)
    def test_who_passes_is_not_in_the_result_and_gets_it(self, name):
        def who(round_):
            return [rank for rank in range(WORKERS) if (rank + round_) % WORKERS]

        def contribute(rank, round_):
            return contributes(rank, round_) if rank in who(round_) else None

        self.assert_collected(PLANS[name], self.job(PLANS[name], contribute).run(), who)

    @pytest.mark.parametrize("name", [name for name in PLANS if name != "allreduce"])
    def test_a_round_that_everyone_passes_leaves_the_parameters_as_they_are(self, name):
        def contribute(rank, round_):
            return None if round_ in {0, 2} else contributes(rank, round_)

        outcome = self.job(PLANS[name], contribute).run()
        self.assert_collected(PLANS[name], outcome, lambda round_: [] if round_ in {0, 2} else range(WORKERS))

    def test_a_round_that_everyone_passes_is_empty_where_the_rule_runs_on_the_workers(self):
        empty = {}

        def after(transport, rank, round_, result):
            empty[rank, round_] = transport.empty

        def contribute(rank, round_):
            return None if round_ == 1 else contributes(rank, round_)

        self.job(ALLREDUCE, contribute, after_round=after).run()
        assert empty == {(rank, round_): round_ == 1 for rank in range(WORKERS) for round_ in range(ROUNDS)}

    @pytest.mark.parametrize("name", PLANS)
    def test_the_others_go_on_without_one_that_left(self, name):
        outcome = self.job(PLANS[name], rounds_of={1: 2}).run()
        self.assert_collected(PLANS[name], outcome, lambda round_: [0, 1, 2] if round_ < 2 else [0, 2], ranks=(0, 2))
        for ours, theirs in zip(outcome.results[1], outcome.results[0][:2], strict=True):
            np.testing.assert_array_equal(ours, theirs)

    def test_a_result_stays_as_it_is_until_the_next_contribution(self):
        seen = []

        def after(transport, rank, round_, result):
            # The others have contributed to the next round by now, as far as they may.
            if rank == 0:
                time.sleep(0.1)
                seen.append(np.array(result))

        plan = PLANS["mean of updates"]
        self.job(plan, after_round=after).run()
        for ours, theirs in zip(seen, expected(plan, lambda _: range(WORKERS)), strict=True):
            np.testing.assert_array_equal(ours, theirs)

    def test_whoever_asks_is_given_the_parameters_with_joining(self):
        plan = PLANS["mean of updates"]
        outcome = self.job(plan, wants_parameters=True).run()
        for rank in range(WORKERS):
            np.testing.assert_array_equal(outcome.first[rank], INITIAL)
        self.assert_collected(plan, outcome, lambda _: range(WORKERS))

    def test_what_is_to_be_done_before_a_round_is_shared_is_done_once_a_round(self):
        called = dict.fromkeys(range(WORKERS), 0)

        def before(rank):
            called[rank] += 1

        def contribute(rank, round_):
            return None if rank == round_ else contributes(rank, round_)

        self.job(ALLREDUCE, contribute, before_share=before).run()
        assert called == dict.fromkeys(range(WORKERS), ROUNDS)

    def test_a_peer_that_is_lost_ends_the_others_with_an_error(self):
        def contribute(rank, round_):
            if rank == 1 and round_ == 2:
                raise LostError
            return contributes(rank, round_)

        job = self.job(ALLREDUCE, contribute)
        began = time.monotonic()
        with pytest.raises(LostError):
            job.run()
        assert sorted(job.ended) == [0, 1, 2]
        assert isinstance(job.ended[1], LostError)
        assert all(isinstance(job.ended[rank], ExchangeError) for rank in (0, 2))
        # Far below what a driver or a worker that is silent would be waited for.
        assert time.monotonic() - began < 60
