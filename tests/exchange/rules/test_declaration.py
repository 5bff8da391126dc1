"""What a rule declares is what its plans are checked by, also where a user registered it."""

import json
import subprocess
import sys

import numpy as np
import pytest

from keraunos import ExchangePlan, RuleDeclaration, RuleOption, register_rule
from keraunos.errors import PlanError
from keraunos.exchange.rules import registry
from keraunos.exchange.rules.rule import Sent
from keraunos.exchange.sharding import Slice
from keraunos.job.rule_declaration import APPLY, PULL
from keraunos.job.rule_spec import RuleSpec
from keraunos.parameters import Layout
from keraunos.worker.rounds import ElasticRounds, OwnGradientRounds, rounds_of

HOME = "tests.exchange.rules.declared_rules"
LAYOUT = Layout(("w",), ((2,),), 1)


@pytest.fixture(autouse=True)
def registered():
    for name, title in (("trimmed", "Trimmed"), ("median", "Median"), ("tug", "Tug")):
        register_rule(name, f"{HOME}:{title}")


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (("gradients", 1, "asynchronous", "trimmed"), r"'trimmed' needs send='updates'\. Received: send='gradients'"),
        (
            ("updates", 1, "hogwild", "trimmed"),
            r"'trimmed' needs meet='asynchronous' or meet='bounded'\. Rec.*'mean'\.$",
        ),
        (("updates", 1, "asynchronous", "trimmed(-1)"), r"`cap` of the rule 'trimmed' must be a number of at least 0"),
        (("updates", 1, "asynchronous", "trimmed(patience=1.5)"), r"`patience` .* whole number of at least 1.*1\.5"),
        (("updates", 1, "asynchronous", "trimmed(kind='none')"), r"`kind` .* must be 'both' or 'above'.*'none'"),
        (("updates", 1, "asynchronous", "trimmed(cep=1)"), r"must be one of 'cap', .*Did you mean 'cap'"),
        (("updates", 1, "asynchronous", "trimmed(1, 2, 'both', 4)"), r"at most 3 arguments without a name"),
        (
            ("updates", 1, "asynchronous", "trimmed", None, "workers"),
            r"`scale` .*above 0 or 'staleness'.*`cap` says how",
        ),
        (("updates", 1, "synchronous", "median"), r"'median' needs send='gradients'"),
        (("gradients", 1, "bounded(1)", "median"), r"'median' needs meet='synchronous'\. Received: meet='bounded'\.$"),
        (("gradients", 1, "synchronous", "median(2)"), r"at most 0 arguments"),
        (("gradients", 1, "synchronous", "median", None, 0.5), r"`scale` must be left out where workers meet"),
        (("weights", 1, "asynchronous", "tug(1.0)"), r"`part` of the rule 'tug' must lie between 0 and 1, exclusive"),
    ],
)
def test_a_registered_rule_is_checked_when_its_plan_is_made(answers, message):
    with pytest.raises(PlanError, match=message):
        ExchangePlan(*answers)


def test_a_plan_from_elsewhere_is_checked_before_its_rule_is_used():
    plan = ExchangePlan("updates", 1, "asynchronous", RuleSpec("theirs", {"cap": -1}, f"{HOME}:Trimmed"))
    for use in (registry.is_elementwise, registry.needs_norm, lambda each: registry.make_rule(each, None, 2)):
        with pytest.raises(PlanError, match=r"`cap` of the rule 'theirs' must be a number of at least 0"):
            use(plan)
    plan = ExchangePlan("gradients", 1, "asynchronous", RuleSpec("theirs", {}, f"{HOME}:Trimmed"))
    with pytest.raises(PlanError, match=r"'theirs' needs send='updates'"):
        registry.gives_parameters(plan)


def test_a_plan_that_is_only_read_imports_no_module_that_it_names():
    home = "tests.exchange.rules.nobody_imports_this:Rule"
    plan = ExchangePlan("updates", 1, "asynchronous", RuleSpec("unknown", {"a": 1}, home))
    assert ExchangePlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan
    with pytest.raises(PlanError, match=r"'unknown' must be importable wherever a server runs"):
        plan.check()


def test_options_are_read_by_their_order_and_have_their_defaults():
    plan = ExchangePlan("updates", 1, "asynchronous", "trimmed(0.25, kind='above')")
    assert plan.rule == RuleSpec("trimmed", {"cap": 0.25, "kind": "above"}, f"{HOME}:Trimmed")
    rule = registry.make_rule(plan, Slice(LAYOUT, 0, 2), 3)
    assert [rule.option(name) for name in ("cap", "patience", "kind")] == [0.25, 6, "above"]


def test_a_rule_is_scaled_as_it_declares_unless_the_plan_says_otherwise():
    moved = {}
    for scale in (None, 1.0, "staleness"):
        plan = ExchangePlan("updates", 1, "asynchronous", "trimmed(cap=8)", scale=scale)
        moved[scale] = parameters = np.zeros(2, np.float32)
        sent = Sent(np.array([4.0, 40.0], np.float32), (2.0,), 2, staleness=3)
        registry.make_rule(plan, Slice(LAYOUT, 0, 2), 4).apply([sent], parameters, parameters)
    assert {scale: list(vector) for scale, vector in moved.items()} == {
        None: [-1.0, -4.0], 1.0: [-2.0, -8.0], "staleness": [-0.5, -2.0],
    }  # fmt: skip


class Still:
    """As much of a learner as rounds ask for when they are made."""

    layout = LAYOUT

    def read(self, out=None):
        return np.zeros(2, np.float32)


def test_workers_run_the_part_that_the_rule_declares():
    applied = ExchangePlan("gradients", 1, "synchronous", "median")
    pulled = ExchangePlan("weights", 5, "asynchronous", "tug")
    assert (applied.applies_on_workers, applied.pulls_on_workers) == (True, False)
    assert (pulled.applies_on_workers, pulled.pulls_on_workers) == (False, True)
    assert type(rounds_of(applied, Still(), None, None, 3)) is OwnGradientRounds
    assert type(rounds_of(pulled, Still(), None, None, 3)) is ElasticRounds
    weights = np.array([4.0, 8.0])
    registry.puller(pulled, 3)(weights, np.array([0.0, 4.0]))
    assert weights.tolist() == [3.0, 7.0]


def test_a_rule_that_pulls_and_does_not_say_how_is_refused_before_any_work():
    plan = ExchangePlan("weights", 5, "asynchronous", RuleSpec("mute", {}, f"{HOME}:Mute"))
    with pytest.raises(PlanError, match=r"'mute' must have a class method `puller`, because .*pull"):
        registry.checked_class(plan)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"takes": ("gradient",)}, r"`takes of a rule` must be one of .*Did you mean 'gradients'"),
        ({"meets": ("synchron",)}, r"`meets of a rule` must be one of .*Did you mean 'synchronous'"),
        ({"scale": 0}, r"`scale of a rule` must be one of .* number above 0"),
        ({"scales": ("half",)}, r"`scales of a rule` must be one of 'number', 'workers'"),
        (
            {"takes": ("updates",), "scales_together": ("weights",)},
            r"`scales_together of a rule` must be one of 'updates'",
        ),
        ({"on_workers": "all"}, r"`on_workers of a rule` must be one of 'apply', 'pull'"),
        ({"on_workers": APPLY}, r"workers apply must take gradients, synchronously"),
        ({"takes": ("updates",), "on_workers": PULL}, r"must take weights. Received: \('updates',\)"),
    ],
)
def test_a_declaration_that_contradicts_itself_is_refused(declared, message):
    with pytest.raises(PlanError, match=message):
        RuleDeclaration(**declared)


def test_what_is_no_declaration_is_refused(monkeypatch):
    monkeypatch.setattr(f"{HOME}.Trimmed.declaration", {"takes": "updates"}, raising=True)
    with pytest.raises(PlanError, match=r"`declaration` of a rule must be a RuleDeclaration"):
        ExchangePlan("updates", 1, "asynchronous", "trimmed")


def test_a_rule_that_declares_nothing_is_given_what_the_plan_says():
    register_rule("undeclared", f"{__name__}:Undeclared")
    plan = ExchangePlan("updates", 1, "asynchronous", "undeclared(anything=1)", scale="workers")
    assert (plan.rule.option("anything"), plan.factor(4)) == (1, 0.25)
    assert not plan.applies_on_workers


class Undeclared(registry.Rule):
    def apply(self, *_, **__):
        pass


def test_an_option_without_a_check_takes_any_value():
    RuleOption("any").check("rule", object())
    with pytest.raises(PlanError, match=r"from 0 to 1\. Received: True"):
        RuleOption.number("share", at_least=0, at_most=1).check("rule", True)


def test_every_plan_is_checked_without_a_framework():
    program = """
import sys
from keraunos.job.exchange_plan import PRESETS, ExchangePlan
from keraunos.job.rule_spec import KERAS_OPTIMIZERS, RuleSpec, known_rules
for name in PRESETS:
    ExchangePlan.named(name).check()
for name in known_rules():
    RuleSpec(name).check()
print({"keras", "tensorflow", "torch", "jax", "pyspark", "pandas"} & set(sys.modules), len(known_rules()) > 10)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set() True"
