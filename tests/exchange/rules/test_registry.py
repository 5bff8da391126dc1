"""Rules by name: what each needs, and rules of a front-end in a process that never imported it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from keraunos.errors import PlanError
from keraunos.exchange.rules import registry
from keraunos.exchange.sharding import Slice
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.rule_spec import BUILT_IN, KERAS_OPTIMIZERS, RuleSpec
from keraunos.parameters import Layout

FRONT_END = """
from keraunos.exchange.rules.rule import Rule

class Halving(Rule):
    elementwise = False

    def apply(self, sent, parameters, result, *, squared_norm=None):
        parameters *= self.plan.rule.option("by")
"""


@pytest.mark.parametrize("name", [*BUILT_IN, *KERAS_OPTIMIZERS])
def test_every_name_has_a_class(name):
    assert issubclass(registry.rule_class(RuleSpec(name)), registry.Rule)


@pytest.mark.parametrize(
    ("rule", "elementwise", "norm"),
    [
        ("sgd", True, False),
        ("adamw(exclude_from_weight_decay=['bias'])", True, False),
        ("adam(clipvalue=1.0)", True, False),
        ("adam(clipnorm=1.0)", False, False),
        ("adam(global_clipnorm=1.0)", True, True),
        ("lamb", False, False),
        ("muon(global_clipnorm=1.0)", False, True),
        ("adafactor", False, False),
    ],
)
def test_what_an_optimizer_needs(rule, elementwise, norm):
    plan = ExchangePlan("gradients", 1, "synchronous", rule)
    assert (registry.is_elementwise(plan), registry.needs_norm(plan)) == (elementwise, norm)
    assert registry.gives_parameters(plan)


def test_an_optimizer_of_somebodys_own_sees_whole_variables():
    import keras

    class Adam(keras.optimizers.Adam):
        pass

    assert registry.is_elementwise(ExchangePlan("gradients", 1, "synchronous", keras.optimizers.Adam()))
    assert not registry.is_elementwise(ExchangePlan("gradients", 1, "synchronous", Adam()))


@pytest.mark.parametrize("name", ["allreduce", "elastic"])
def test_rules_that_do_not_give_parameters(name):
    assert not registry.gives_parameters(ExchangePlan.named(name))


def test_a_rule_that_cannot_be_imported_says_what_to_do():
    spec = RuleSpec("theirs", home="no_such_package.rules:Theirs")
    with pytest.raises(PlanError, match=r"'theirs' must be importable wherever a server runs.*no_such_package"):
        registry.rule_class(spec)


def test_a_home_that_is_no_rule_is_refused():
    with pytest.raises(PlanError, match=r"must be a subclass of Rule"):
        registry.rule_class(RuleSpec("theirs", home="collections:OrderedDict"))


def test_a_registered_rule_runs_in_a_process_that_never_registered_it(tmp_path):
    (tmp_path / "front_end_rules.py").write_text(FRONT_END)
    registry.register_rule("halving", "front_end_rules:Halving")
    plan = ExchangePlan("gradients", 1, "asynchronous", "halving(by=0.5)")
    program = """
import json, sys
import numpy as np
from keraunos.exchange.rules import registry
from keraunos.exchange.sharding import Slice
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Layout
plan = ExchangePlan.from_json(json.loads(sys.argv[1]))
layout = Layout(("w",), ((3,),), 1)
parameters = np.ones(3, np.float32)
registry.make_rule(plan, Slice(layout, 0, 3), 2).apply([], parameters, parameters)
print(parameters.tolist(), registry.is_elementwise(plan), "keras" in sys.modules)
"""
    source = str(Path(registry.__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(plan.to_json())],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), source])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[0.5, 0.5, 0.5] False False"


def test_a_slice_without_elements_has_its_rule_all_the_same():
    layout = Layout(("w", "mean"), ((3,), (2,)), trainable=1)
    for name in ("mean", "sgd"):
        rule = registry.make_rule(ExchangePlan("updates", 1, "synchronous", name), Slice(layout, 3, 3), 2)
        assert rule.state() == []
