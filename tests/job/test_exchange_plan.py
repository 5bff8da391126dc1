"""Plans: what is accepted, what is refused and with which words, and that they survive JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.errors import JobError, PlanError
from keraunos.job.columns import Columns, Slot
from keraunos.job.exchange_plan import MEETINGS, PRESETS, SENDS, ExchangePlan
from keraunos.job.rule_spec import RuleSpec, known_rules, register_rule
from keraunos.job.schedule import Schedule
from keraunos.job.training_job import ModelSource, TrainingJob


def through_json(plan):
    return ExchangePlan.from_json(json.loads(json.dumps(plan.to_json())))


@pytest.mark.parametrize(
    ("name", "send", "every", "meet", "rule", "stretch"),
    [
        ("allreduce", "gradients", 1, "synchronous", "own", 1.0),
        ("averaging", "updates", 50, "synchronous", "mean", 1.5),
        ("downpour", "updates", 5, "asynchronous", "add", 1.5),
        ("hogwild", "updates", 5, "hogwild", "add", 1.5),
        ("bounded", "updates", 5, "bounded", "add", 1.5),
        ("elastic", "weights", 10, "asynchronous", "elastic", 1.5),
        ("diloco", "updates", 100, "synchronous", "sgd(learning_rate=0.7, momentum=0.6, nesterov=True)", 1.0),
    ],
)
def test_presets(name, send, every, meet, rule, stretch):
    plan = ExchangePlan.named(name)
    assert (plan.send, plan.every, plan.meet, str(plan.rule)) == (send, every, meet, rule)
    assert plan.stretch(workers=4) == stretch
    assert through_json(plan) == plan


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("mean", "mean", {}),
        ("Elastic(0.1)", "elastic", {"alpha": 0.1}),
        ("moving_average(n=4)", "moving_average", {"n": 4}),
        ("SGD(0.7, momentum=0.9, nesterov=True)", "sgd", {"learning_rate": 0.7, "momentum": 0.9, "nesterov": True}),
        ("RMSprop", "rmsprop", {}),
        ("delayed_nesterov(0.5, delay=3)", "delayed_nesterov", {"learning_rate": 0.5, "delay": 3}),
        ("adamw(exclude_from_weight_decay=('bias',))", "adamw", {"exclude_from_weight_decay": ["bias"]}),
    ],
)
def test_rules_are_read_as_they_are_written(text, name, options):
    spec = RuleSpec.parse(text)
    assert (spec.name, dict(spec.options)) == (name, options)
    assert RuleSpec.parse(str(spec)) == spec


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (("gradient", 1, "synchronous", "own"), r"`send` must be one of .* Did you mean 'gradients'\?"),
        (("updates", 1, "sync", "mean"), r"`meet` must be one of .*'hogwild'.* Received: 'sync'"),
        (("updates", -5, "synchronous", "mean"), r"`every` must be a whole number of steps of at least 1.*-5"),
        (("updates", 0, "synchronous", "mean"), r"`every` must be .* Received: 0"),
        (("updates", 1.5, "synchronous", "mean"), r"`every` must be"),
        (("updates", True, "synchronous", "mean"), r"`every` must be"),
        (("updates", "batch", "synchronous", "mean"), r"or 'epoch'\. Received: 'batch'"),
        (("updates", 5, "bounded", "add"), r"meet='bounded' must come with `bound`.*Write 'bounded\(4\)'"),
        (("updates", 5, "bounded(-1)", "add"), r"at least 0 .* Received: -1"),
        (("updates", 5, "bounded(a)", "add"), r"`meet` must be a name, or a name with literal arguments"),
        (("updates", 5, "bounded(2)", "add", 3), r"`bound` must be given once"),
        (("updates", 5, "asynchronous(4)", "add"), r"`meet` must be one of .*'bounded\(4\)'"),
        (("updates", 5, "asynchronous", "add", 4), r"`bound` must be given with meet='bounded' only"),
        (("weights", 5, "asynchronous", "elastic(0)"), r"`alpha` .* between 0 and 1, exclusive\. Received: 0"),
        (("weights", 5, "asynchronous", "elastic(1.0)"), r"`alpha` .* Received: 1\.0"),
        (("weights", 5, "asynchronous", "elastic(beta=0.1)"), r"must be one of 'alpha'\. Received: 'beta'"),
        (("weights", 5, "asynchronous", "moving_average(0)"), r"`n` of the rule 'moving_average' .* at least 1"),
        (("updates", 1, "synchronous", "mean(2)"), r"at most 0 arguments"),
        (("updates", 1, "synchronous", "own"), r"The rule 'own' needs send='gradients'.*use rule='mean'"),
        (("gradients", 1, "asynchronous", "own"), r"The rule 'own' needs meet='synchronous'.*such as rule='sgd'"),
        (("gradients", 1, "synchronous", "mean"), r"'mean' needs send='updates' or send='weights'.*such as rule='sgd'"),
        (("gradients", 1, "synchronous", "sum"), r"'sum' needs send='updates'.*such as rule='sgd'"),
        (("gradients", 1, "asynchronous", "add"), r"'add' needs send='updates'.*such as rule='sgd'"),
        (("updates", 1, "asynchronous", "mean"), r"'mean' needs meet='synchronous'.*use rule='add'"),
        (("updates", 1, "hogwild", "sum"), r"'sum' needs meet='synchronous'.*rule='add' with scale=1"),
        (("updates", 1, "synchronous", "add"), r"one at a time.*Use rule='mean' or 'sum'"),
        (("updates", 1, "asynchronous", "moving_average(4)"), r"needs send='weights'"),
        (("gradients", 1, "asynchronous", "elastic"), r"'elastic' needs send='weights'"),
        (("weights", 1, "synchronous", "sum"), r"'sum' needs send='updates'.*'moving_average\(4\)'"),
        (("weights", 1, "asynchronous", "adam"), r"'adam' needs send='gradients' or send='updates'"),
        (("gradients", 1, "asynchronous", "delayed_nesterov"), r"'delayed_nesterov' needs send='updates'"),
        (("updates", 1, "synchronous", "avarage"), r"`rule` must be one of 'own', 'mean'.* Received: 'avarage'"),
        (("gradients", 1, "synchronous", "adamm"), r"Did you mean 'adam'\?"),
        (("gradients", 1, "synchronous", "__import__('os')"), r"`rule` must be one of"),
        (("gradients", 1, "synchronous", "sgd(open('x'))"), r"literal arguments"),
        (("gradients", 1, "synchronous", "sgd(0.1, learning_rate=0.1)"), r"'learning_rate' once"),
        (("gradients", 1, "synchronous", "sgd(gradient_accumulation_steps=2)"), r"`every` accumulates gradients"),
        (("gradients", 1, "synchronous", "sgd(loss_scale_factor=2.0)"), r"gradients arrive unscaled"),
        (("gradients", 1, "synchronous", 7), r"`rule` must be a rule's name.* Received: 7"),
        (("updates", 5, "asynchronous", "add", None, 0), r"`scale` must be one of .* may also be a number above 0"),
        (
            ("updates", 5, "asynchronous", "add", None, "rows"),
            r"`scale` must be one of 'workers', 'stretched', 'staleness'",
        ),
        (("weights", 5, "synchronous", "mean", None, 0.5), r"`scale` must be left out where workers meet synchron"),
        (("updates", 5, "synchronous", "mean", None, "workers"), r"Only a mean of updates, or elastic weights"),
        (
            ("weights", 5, "asynchronous", "moving_average", None, 0.5),
            r"`scale` must be left out with the rule 'moving",
        ),
        (
            ("weights", 5, "asynchronous", "elastic", None, "workers"),
            r"`scale` must be a number above 0 or 'stretched'",
        ),
        (("updates", 5, "synchronous", "mean", None, None, "int4"), r"`compression` must be one of 'bfloat16', 'int8'"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_rule_stated(answers, message):
    with pytest.raises(PlanError, match=message):
        ExchangePlan(*answers)


def test_an_unknown_preset_names_the_nearest():
    with pytest.raises(PlanError, match=r"`exchange` must be one of .* Did you mean 'diloco'\?"):
        ExchangePlan.named("diloc")


def test_answers_refine_a_preset():
    plan = ExchangePlan.named("downpour", every="epoch", meet="bounded(2)", scale="staleness", compression="int8")
    assert (plan.every, plan.meet, plan.bound, plan.compression) == ("epoch", "bounded", 2, "int8")
    assert plan.factor(workers=4, staleness=3) == 0.25
    assert plan.refined(meet="asynchronous").bound is None
    assert plan.refined(bound=3) == plan.refined(meet="bounded(3)") == plan.refined(meet="bounded", bound=3)
    assert plan.refined() == plan
    assert ExchangePlan.named("averaging", rule="sgd").rule == RuleSpec("sgd")


@pytest.mark.parametrize(
    ("scale", "factor"),
    [(None, 0.25), ("workers", 0.25), ("stretched", 0.375), ("staleness", 0.2), (0.5, 0.5), (2, 2.0)],
)
def test_the_factor_on_a_contribution(scale, factor):
    assert ExchangePlan("updates", 5, "asynchronous", "add", scale=scale).factor(4, staleness=4) == factor


@pytest.mark.parametrize(("workers", "stretch"), [(1, 1.0), (2, 2**0.5), (3, 1.5), (100, 1.5)])
def test_workers_together_move_further_than_their_mean_by_a_limited_factor(workers, stretch):
    assert ExchangePlan.named("averaging").factor(workers) == pytest.approx(stretch)
    assert ExchangePlan.named("downpour").factor(workers) * workers == pytest.approx(stretch)


def test_another_rule_in_a_preset_is_not_stretched():
    assert ExchangePlan.named("averaging", rule="sgd(learning_rate=0.5)").scale is None
    assert ExchangePlan.named("averaging", every=10).scale == "stretched"
    assert ExchangePlan.named("averaging", scale=1).factor(4) == 1.0


def test_gradients_may_be_accumulated_over_a_longer_round():
    assert ExchangePlan("gradients", 8, "synchronous", "own").applies_on_workers
    assert not ExchangePlan("gradients", "epoch", "hogwild", "adam").applies_on_workers


def test_an_optimizer_object_becomes_its_configuration():
    import keras

    optimizer = keras.optimizers.AdamW(keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5), weight_decay=0.02)
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    plan = through_json(ExchangePlan("gradients", 1, "synchronous", optimizer))
    assert str(plan.rule) == "AdamW"
    assert plan.rule.option("weight_decay") == 0.02
    assert plan.rule.options["exclude_from_weight_decay"] == ["bias"]


def test_an_optimizer_that_excludes_variables_without_their_names_is_refused():
    import keras

    optimizer = keras.optimizers.AdamW()
    optimizer.exclude_from_weight_decay(var_list=[keras.Variable(0.0)])
    with pytest.raises(PlanError, match=r"var_names"):
        ExchangePlan("gradients", 1, "synchronous", optimizer)


def test_an_optimizer_that_wraps_another_is_refused():
    import keras

    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD())
    with pytest.raises(PlanError, match=r"must be a single one"):
        ExchangePlan("gradients", 1, "synchronous", optimizer)


def test_a_registered_rule_is_known_by_name_and_carries_its_home():
    register_rule("proximal_for_this_test", "tests.nowhere:Proximal")
    plan = through_json(ExchangePlan("gradients", 1, "asynchronous", "proximal_for_this_test(rate=0.1)"))
    assert plan.rule == RuleSpec("proximal_for_this_test", {"rate": 0.1}, "tests.nowhere:Proximal")
    # As in a process where nobody has registered it.
    data = plan.to_json() | {"rule": {"name": "elsewhere", "options": {}, "home": "somewhere.rules:Elsewhere"}}
    assert ExchangePlan.from_json(data).rule.home == "somewhere.rules:Elsewhere"


@pytest.mark.parametrize(
    ("name", "home"), [("mean", "a:B"), ("adam", "a:B"), ("two words", "a:B"), ("fine", "a.b"), ("fine", "a b:C")]
)
def test_a_rule_cannot_be_registered_under_a_taken_name_or_without_a_home(name, home):
    with pytest.raises(PlanError, match=r"Received: "):
        register_rule(name, home)
    assert "fine" not in known_rules()


literals = st.one_of(st.integers(-9, 9), st.floats(0, 1), st.booleans(), st.text(max_size=5))
specs = st.one_of(
    st.sampled_from(["own", "mean", "sum", "add", "moving_average", "elastic", "delayed_nesterov"]).map(RuleSpec),
    st.builds(RuleSpec, st.sampled_from(["sgd", "adam", "lamb"]), st.dictionaries(st.sampled_from("abc"), literals)),
    st.builds(lambda alpha: RuleSpec("elastic", {"alpha": alpha}), st.floats(0.01, 0.99)),
)


@given(
    st.sampled_from(SENDS),
    st.one_of(st.integers(1, 500), st.just("epoch")),
    st.sampled_from(MEETINGS),
    specs,
    st.one_of(st.none(), st.integers(0, 9)),
    st.one_of(st.none(), st.floats(0.01, 2), st.sampled_from(["workers", "staleness"])),
    st.sampled_from([None, "bfloat16", "int8"]),
)
def test_every_accepted_plan_survives_json(send, every, meet, rule, bound, scale, compression):
    try:
        plan = ExchangePlan(send, every, meet, rule, bound, scale, compression)
    except PlanError:
        return
    assert through_json(plan) == plan
    assert hash(through_json(plan)) == hash(plan)
    assert 0 < plan.factor(3, staleness=2) <= 2


def job(plan="allreduce", floatx="float32", **more):
    exchange = plan if isinstance(plan, ExchangePlan) else ExchangePlan.named(plan)
    columns = Columns(features=(Slot(None, ("x",)),))
    return TrainingJob(ModelSource(b"model", "jax", floatx), columns, Schedule(), exchange, workers=2, **more)


@given(
    st.sampled_from(sorted(PRESETS)),
    st.one_of(st.sampled_from(["driver", "workers"]), st.integers(1, 9)),
    st.one_of(st.none(), st.tuples(st.integers(1, 30_000), st.integers(30_000, 65_535))),
)
def test_a_job_survives_its_bytes(plan, servers, ports):
    made = job(plan, servers=servers, ports=ports)
    assert TrainingJob.from_bytes(made.to_bytes()) == made


@pytest.mark.parametrize("servers", [0, -1, True, 1.5, "executors", None])
def test_servers_are_the_driver_the_workers_or_a_number(servers):
    with pytest.raises(JobError, match=r"`servers` must be 'driver', 'workers', or a number"):
        job(servers=servers)


@pytest.mark.parametrize("ports", [(0, 10), (20, 10), (1, 70_000), (1,), 4000, ("1", "2"), (True, 5)])
def test_ports_are_a_first_and_a_last(ports):
    with pytest.raises(JobError, match=r"`ports` must be the first and the last port"):
        job(ports=ports)


def test_a_float64_model_does_not_travel_compressed():
    plan = ExchangePlan.named("averaging", compression="bfloat16")
    assert job(plan).exchange.compression == "bfloat16"
    with pytest.raises(PlanError, match=r"`compression` must be left out for a float64 model.* Received: 'bfloat16'"):
        job(plan, floatx="float64")


@pytest.mark.parametrize(
    ("plan", "servers", "all_at_once"),
    [
        ("allreduce", "driver", True),
        ("downpour", "driver", False),
        ("downpour", 3, False),
        ("hogwild", "workers", True),
        ("bounded", "driver", True),
    ],
)
def test_which_jobs_need_all_workers_at_once(plan, servers, all_at_once):
    assert job(plan, servers=servers).needs_all_workers is all_at_once
