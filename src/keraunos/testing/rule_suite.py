"""Tests for a rule, with the vector in one slice and in several.

A test class inherits `RuleSuite` and names a rule. The suite makes a plan for each use that the rule declares, and
tests the rule under all of these plans.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from keraunos.errors import PlanError
from keraunos.exchange.rules import registry
from keraunos.exchange.rules.rule import Sent
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.rule_declaration import APPLY, MEETINGS, SENDS
from keraunos.job.rule_spec import RuleSpec
from keraunos.testing.rule_rounds import LAYOUT, WORKERS, ServedVector, first_parameters, rounds_of

ROUNDS = 4

# The plans that a test runs with, by the name of its argument.
_PLANS_FOR: Mapping[str, Callable[[ExchangePlan], bool]] = {
    "plan": lambda plan: True,
    "synchronous_plan": lambda plan: plan.synchronous,
    "hogwild_plan": lambda plan: plan.meet == "hogwild",
    "gradients_plan": lambda plan: plan.send == "gradients",
    "pulling_plan": lambda plan: plan.pulls_on_workers,
}


class RuleSuite:
    """Inherit it and define `rule`; call `register_rule` first if the rule is a custom one.

    Attributes:
        rule: the rule as a plan names it; if it has options, with other values than the defaults.
        refused: the same rule with options that it must refuse, such as `"capped(cap=-1)"`.
        exact: whether several slices give the same bits as one. A rule whose arithmetic is compiled for the length of a
            slice may differ in the last bits.
        ordered: whether the result depends on the order of a round's contributions. A rule may depend on it, because
            contributions are passed in the order of the ranks.
    """

    rule: Any = ""
    refused: Sequence[Any] = ()
    exact: bool = True
    ordered: bool = False

    def plans(self) -> list[ExchangePlan]:
        """Returns a plan for each use of the rule; add plans if `scale` has an effect."""
        declared = RuleSpec.of(self.rule).declared
        return [
            ExchangePlan(send, 1, meet, self.rule, bound=2 if meet == "bounded" else None)
            for send, meet in itertools.product(declared.takes, declared.meets)
        ]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run each test with the plans that its argument names."""
        for name, is_for in _PLANS_FOR.items():
            if name in metafunc.fixturenames:
                plans = [each for each in self.plans() if is_for(each)]
                metafunc.parametrize(name, plans, ids=[f"{each.send}-{each.meet}-{each.scale}" for each in plans])

    def test_a_plan_with_it_can_be_used_in_another_process(self, plan: ExchangePlan) -> None:
        read = ExchangePlan.from_json(json.loads(json.dumps(plan.to_json())))
        assert read == plan
        assert registry.checked_class(read) is registry.checked_class(plan)

    def test_what_it_does_not_declare_is_refused(self) -> None:
        declared = RuleSpec.of(self.rule).declared
        for send, meet in itertools.product(SENDS, MEETINGS):
            if send not in declared.takes or meet not in declared.meets:
                with pytest.raises(PlanError):
                    ExchangePlan(send, 1, meet, self.rule, bound=2 if meet == "bounded" else None)

    def test_options_are_checked(self) -> None:
        spec = RuleSpec.of(self.rule)
        for each in self.refused:
            with pytest.raises(PlanError):
                RuleSpec.of(each).check()
        if not spec.declared.other_options:
            with pytest.raises(PlanError):
                replace(spec, options={**spec.options, "no_such_option": 1})

    def test_the_default_of_each_option_is_a_value_that_the_option_may_have(self) -> None:
        for option in RuleSpec.of(self.rule).declared.options:
            option.check("of this suite", option.value(None, WORKERS))

    def test_what_it_asks_for_is_the_same_before_and_after_there_are_slices(self, plan: ExchangePlan) -> None:
        for rule in ServedVector(plan).rules:
            assert rule.elementwise == registry.is_elementwise(plan)
            assert rule.needs_norm == registry.needs_norm(plan)
            assert rule.gives_parameters == registry.gives_parameters(plan)

    def test_every_worker_gets_finite_numbers(self, plan: ExchangePlan) -> None:
        served = ServedVector(plan)
        for sent in rounds_of(plan, ROUNDS):
            served.apply(sent)
            assert np.isfinite(served.result).all()
        assert np.isfinite(served.parameters).all()
        if RuleSpec.of(self.rule).declared.on_workers == APPLY:
            np.testing.assert_array_equal(served.parameters, first_parameters())
        else:
            assert not np.array_equal(served.parameters, first_parameters())

    def test_contributions_are_left_as_they_are(self, plan: ExchangePlan) -> None:
        served = ServedVector(plan)
        for sent in rounds_of(plan, ROUNDS):
            before = [each.values.copy() for each in sent]
            served.apply(sent)
            for each, values in zip(sent, before, strict=True):
                np.testing.assert_array_equal(each.values, values)

    def test_the_same_contributions_give_the_same_bits_again(self, plan: ExchangePlan) -> None:
        first, second = ServedVector(plan), ServedVector(plan)
        for sent in rounds_of(plan, ROUNDS):
            first.apply(sent)
            second.apply(sent)
        first.assert_same_bits(second)

    def test_the_order_of_a_rounds_contributions_changes_nothing(self, synchronous_plan: ExchangePlan) -> None:
        if self.ordered:
            pytest.skip("the rule depends on the order of the ranks")
        served, reordered = ServedVector(synchronous_plan), ServedVector(synchronous_plan)
        for sent in rounds_of(synchronous_plan, ROUNDS):
            served.apply(sent)
            reordered.apply(sent[::-1])
        np.testing.assert_allclose(reordered.parameters, served.parameters, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(reordered.result, served.result, rtol=1e-4, atol=1e-5)

    @pytest.mark.parametrize("servers", [3, 7])
    def test_slices_together_do_what_one_does(self, plan: ExchangePlan, servers: int) -> None:
        whole, cut_up = ServedVector(plan), ServedVector(plan, servers)
        for sent in rounds_of(plan, ROUNDS):
            whole.apply(sent)
            cut_up.apply(sent)
        whole.finish()
        cut_up.finish()
        if self.exact:
            cut_up.assert_same_bits(whole)
        np.testing.assert_allclose(cut_up.parameters, whole.parameters, rtol=2e-6, atol=1e-7)
        np.testing.assert_allclose(cut_up.result, whole.result, rtol=2e-6, atol=1e-7)

    def test_it_goes_on_from_its_state_to_the_bit(self, plan: ExchangePlan) -> None:
        straight, resumed = ServedVector(plan, servers=2), ServedVector(plan, servers=2)
        rounds = rounds_of(plan, ROUNDS)
        for sent in rounds[: ROUNDS // 2]:
            straight.apply(sent)
        resumed.go_on_from(straight)
        for sent in rounds[ROUNDS // 2 :]:
            straight.apply(sent)
            resumed.apply(sent)
        straight.finish()
        resumed.finish()
        resumed.assert_same_bits(straight)

    def test_a_state_that_was_given_does_not_change(self, plan: ExchangePlan) -> None:
        served = ServedVector(plan)
        first, *later = rounds_of(plan, ROUNDS)
        served.apply(first)
        # A checkpoint is written while training goes on.
        given = [array for rule in served.rules for array in rule.state()]
        copies = [np.array(array) for array in given]
        for sent in later:
            served.apply(sent)
        for array, copy in zip(given, copies, strict=True):
            assert isinstance(array, np.ndarray)
            assert array.dtype != object
            np.testing.assert_array_equal(array, copy)

    @pytest.mark.parametrize("parts", ["two", "without a denominator", "of no weight"])
    def test_a_loss_may_have_parts(self, gradients_plan: ExchangePlan, parts: str) -> None:
        served, parted = ServedVector(gradients_plan), ServedVector(gradients_plan)
        for sent in rounds_of(gradients_plan, ROUNDS):
            given, same = _in_parts(sent if parts == "two" else sent[:1], parts)
            parted.apply(given)
            served.apply(same)
        np.testing.assert_allclose(parted.parameters, served.parameters, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(parted.result, served.result, rtol=1e-4, atol=1e-5)

    def test_a_learning_rate_is_what_it_was_set_to(self, plan: ExchangePlan) -> None:
        (rule,) = ServedVector(plan).rules
        if rule.learning_rate is None:
            pytest.skip("the rule has no learning rate")
        rule.learning_rate = 0.125
        assert rule.learning_rate == pytest.approx(0.125)

    def test_threads_may_apply_at_once(self, hogwild_plan: ExchangePlan) -> None:
        served, errors = ServedVector(hogwild_plan), []

        def push(rank: int) -> None:
            try:
                for sent in rounds_of(hogwild_plan, 20):
                    served.apply([sent[rank]])
            except Exception as error:  # noqa: BLE001 - raised by the thread of the test
                errors.append(error)

        threads = [threading.Thread(target=push, args=(rank,)) for rank in range(WORKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        assert np.isfinite(served.parameters).all()

    def test_workers_pull_at_their_own_weights(self, pulling_plan: ExchangePlan) -> None:
        weights, center = first_parameters(), np.zeros(LAYOUT.size, np.float32)
        registry.puller(pulling_plan, WORKERS)(weights, center)
        assert np.isfinite(weights).all()
        assert not np.array_equal(weights, first_parameters())
        np.testing.assert_array_equal(center, np.zeros(LAYOUT.size, np.float32))


def _in_parts(sent: Sequence[Sent], parts: str) -> tuple[list[Sent], list[Sent]]:
    """Returns contributions whose loss has parts, and equivalent contributions of a single part."""
    trainable = LAYOUT.trainable_size
    given, same = [], []
    for each in sent:
        gradient, state = each.values[:trainable], each.values[trainable:]
        if parts == "two":
            some = gradient * np.linspace(0, 1, trainable, dtype=np.float32)
            values = np.concatenate([some, gradient - some, state])
            given.append(replace(each, values=values, denominators=each.denominators * 2))
            same.append(each)
        elif parts == "without a denominator":
            given.append(replace(each, denominators=(None,)))
            same.append(replace(each, denominators=(1.0,)))
        else:
            nothing = np.concatenate([np.zeros(trainable, np.float32), state])
            given.append(replace(each, values=nothing, denominators=(0.0,)))
            same.append(replace(each, values=nothing))
    norms = [float(np.sum(np.square(_gradient(each), dtype=np.float64))) for each in same]
    return (
        [replace(each, squared_norm=norm) for each, norm in zip(given, norms, strict=True)],
        [replace(each, squared_norm=norm) for each, norm in zip(same, norms, strict=True)],
    )


def _gradient(sent: Sent) -> Any:
    return sent.values[: LAYOUT.trainable_size] / (sent.denominators[0] or 1.0)
