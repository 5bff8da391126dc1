"""How an estimator is told to share parameters: by name, by the plan's answers, and where its servers are."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from keras import layers
from pyspark.ml.evaluation import MulticlassClassificationEvaluator
from pyspark.ml.tuning import ParamGridBuilder
from sklearn.datasets import load_digits

from keraunos import ExchangePlan, KerasClassifier, Rule, register_rule
from keraunos.errors import ClusterError, JobError, PlanError
from keraunos.job.rule_spec import RuleSpec
from keraunos.ml.preparation import exchange_of
from tests.extended import extended
from tests.ml.models import mlp

REFUSED_WHEN_SET = [
    ({"every": -5}, JobError, r"`every` must be a whole number of at least 1. Received: -5\."),
    ({"meet": "sometimes"}, PlanError, "`meet` must be one of 'synchronous', 'asynchronous', 'hogwild', 'bounded'"),
    ({"meet": "bounded(-1)"}, PlanError, "a whole number of rounds of at least 0"),
    ({"meet": "bounded()"}, PlanError, r"'bounded\(4\)'. Received: 'bounded\(\)'"),
    ({"meet": 3}, PlanError, "`meet` must be one of .* Received: 3"),
    ({"rule": "elastic(1.0)"}, PlanError, "`alpha` of the rule 'elastic' must lie between 0 and 1, exclusive"),
    ({"rule": "elastc(0.1)"}, PlanError, "Did you mean 'elastic'"),
    ({"rule": 7}, PlanError, "`rule` must be a rule's name.* or a Keras optimizer. Received: 7"),
    (
        {"scale": 0},
        PlanError,
        "`scale` must be one of 'workers', 'stretched', 'staleness'. Received: 0.*a number above 0",
    ),
    ({"scale": "worker"}, PlanError, "Did you mean 'workers'"),
    ({"compression": "zip"}, PlanError, "`compression` must be one of 'bfloat16', 'int8'. Received: 'zip'"),
    ({"servers": 0}, JobError, "`servers` must be 'driver', 'workers', or a number .* Received: 0"),
    ({"servers": "driver "}, JobError, "Received: 'driver '"),
    ({"servers": True}, JobError, "Received: True"),
    ({"serverPorts": 8080}, JobError, "`serverPorts` must be the first and the last port .* Received: 8080"),
    ({"serverPorts": (9, 8)}, JobError, r"Received: \(9, 8\)"),
    ({"exchange": ["downpour"]}, PlanError, r"`exchange` must be one of .* Received: \['downpour'\]"),
]

REFUSED_BY_FIT = [
    ({"exchange": "downpour", "meet": "bounded"}, PlanError, "must come with `bound`.*'bounded\\(4\\)'"),
    ({"exchange": "averaging", "meet": "asynchronous"}, PlanError, "'mean' needs meet='synchronous'.*rule='add'"),
    ({"exchange": "averaging", "rule": "own"}, PlanError, "'own' needs send='gradients'. Received: send='updates'"),
    ({"exchange": "allreduce", "rule": "mean"}, PlanError, "'mean' needs send='updates' or send='weights'"),
    ({"exchange": "elastic", "scale": "workers"}, PlanError, "`scale` must be a number above 0 or 'stretched'"),
    ({"scale": "workers"}, PlanError, "`scale` must be left out where workers meet synchronously"),
    ({"rule": "adam(lr=0.1)"}, PlanError, "must be an optimizer that Keras can make.*Correct its arguments"),
    (
        {"rule": RuleSpec("mine", {}, "no.such:Rule")},
        PlanError,
        "The rule 'mine' must be importable wherever a server runs. Expected: 'no.such:Rule'",
    ),
    (
        {"rule": "adam", "learningRate": 0.1},
        PlanError,
        r"`learningRate` must be left out where the servers .* rule='adam'.*Received: 0.1.*sgd\(learning_rate=0.1\)",
    ),
    (
        {"rule": "adam", "callbacks": [keras.callbacks.ReduceLROnPlateau()]},
        PlanError,
        r"`callbacks` must not set the learning rate.*\['ReduceLROnPlateau'\]",
    ),
    ({"servers": 1, "numWorkers": 2}, ClusterError, "servers=1 and numWorkers=2 need 3 task slots.* Spark has 2"),
    ({"servers": 2, "exchange": "downpour"}, ClusterError, "need 3 task slots at once"),
]


@pytest.mark.parametrize(("params", "error", "message"), REFUSED_WHEN_SET)
def test_an_answer_that_cannot_be_is_refused_where_it_is_set(params, error, message):
    with pytest.raises(error, match=message):
        KerasClassifier(**params)


@pytest.mark.spark
@pytest.mark.parametrize(("params", "error", "message"), REFUSED_BY_FIT)
def test_answers_that_do_not_fit_together_are_refused_before_any_spark_job(digits, jobs_run, params, error, message):
    with pytest.raises(error, match=message):
        KerasClassifier(model=digits_model(), **params).fit(digits)
    assert not jobs_run()


@pytest.mark.spark
def test_a_model_in_float64_is_not_compressed(digits):
    classifier = KerasClassifier(model=digits_model(), compression="int8")
    keras.config.set_floatx("float64")
    try:
        with pytest.raises(PlanError, match="`compression` must be left out for a float64 model.* Received: 'int8'"):
            classifier.fit(digits)
    finally:
        keras.config.set_floatx("float32")


def test_answers_refine_a_preset_and_a_whole_plan():
    plan = exchange_of(
        KerasClassifier(exchange="hogwild", every=np.int64(3), scale=np.float32(0.5), compression="int8")
    )
    assert plan == ExchangePlan("updates", 3, "hogwild", "add", scale=0.5, compression="int8")
    whole = ExchangePlan("gradients", 1, "synchronous", "adam")
    assert exchange_of(KerasClassifier(exchange=whole, meet="bounded(2)")) == ExchangePlan(
        "gradients", 1, "bounded", "adam", bound=2
    )
    assert exchange_of(KerasClassifier(exchange="bounded", meet="bounded")).bound == 4
    assert exchange_of(KerasClassifier(rule="sgd")).rule == RuleSpec("sgd")


def test_an_optimizer_is_kept_as_its_configuration():
    optimizer = keras.optimizers.SGD(0.25, momentum=0.5)
    classifier = KerasClassifier(rule=optimizer)
    optimizer.learning_rate = 99.0
    kept = classifier.getRule()
    assert isinstance(kept, RuleSpec)
    assert (kept.option("learning_rate"), kept.option("momentum")) == (0.25, 0.5)
    assert "current: SGD" in classifier.explainParam("rule")


def test_every_param_of_the_exchange_is_explained():
    told = KerasClassifier(rule="elastic(0.1)", meet="bounded(3)", servers=2, serverPorts=[1, 9]).explainParams()
    assert "current: elastic(0.1)" in told
    assert "current: bounded(3)" in told
    assert "(default: driver, current: 2)" in told
    assert "current: [1, 9]" in told
    for name in ("exchange", "every", "scale", "compression"):
        assert f"\n{name}: " in f"\n{told}"


def test_a_grid_over_plans_rules_and_servers():
    classifier = KerasClassifier(model=mlp(), rule="adam")
    grid = (
        ParamGridBuilder()
        .addGrid(classifier.exchange, ["allreduce", ExchangePlan("updates", 9, "synchronous", "mean")])
        .addGrid(classifier.rule, ["sgd(0.1)", keras.optimizers.Adam(0.5)])
        .addGrid(classifier.servers, ["driver", "workers", 1])
        .build()
    )
    copies = [classifier.copy(each) for each in grid]
    assert len(copies) == 12
    assert {copy.getServers() for copy in copies} == {"driver", "workers", 1}
    assert {str(exchange_of(copy).rule) for copy in copies} == {"sgd(learning_rate=0.1)", "Adam"}
    assert {exchange_of(copy).send for copy in copies} == {"gradients", "updates"}
    assert (classifier.getRule(), classifier.getServers()) == ("adam", "driver")
    with pytest.raises(JobError, match="`servers`"):
        classifier.copy({classifier.servers: -1})


class Halfway(Rule):
    """A rule of somebody's own: half of each update."""

    def apply(self, sent, parameters, result, *, squared_norm=None):
        for each in sent:
            parameters -= 0.5 * each.values / each.rows


@pytest.mark.spark
def test_an_estimator_comes_back_with_its_exchange(spark, tmp_path):
    register_rule("halfway", "tests.ml.test_exchange_params:Halfway")
    estimator = KerasClassifier(
        exchange="downpour", every="epoch", meet="bounded(2)", rule="halfway", scale="staleness",
        compression="bfloat16", servers=3, serverPorts=(40000, 40100), stateEvery=7,
    )  # fmt: skip
    estimator.save(str(tmp_path / "estimator"))
    loaded = KerasClassifier.load(str(tmp_path / "estimator"))
    assert exchange_of(loaded) == exchange_of(estimator)
    assert exchange_of(loaded).rule.home == "tests.ml.test_exchange_params:Halfway"
    assert (loaded.getServers(), loaded.getServerPorts(), loaded.getStateEvery()) == (3, (40000, 40100), 7)
    assert (loaded.getMeet(), loaded.getEvery(), loaded.getScale()) == ("bounded(2)", "epoch", "staleness")


@pytest.mark.spark
def test_an_optimizer_comes_back_with_its_schedule(spark, tmp_path):
    schedule = keras.optimizers.schedules.ExponentialDecay(0.5, 10, 0.9)
    estimator = KerasClassifier(rule=keras.optimizers.SGD(schedule, nesterov=True, momentum=0.9))
    estimator.save(str(tmp_path / "estimator"))
    loaded = KerasClassifier.load(str(tmp_path / "estimator"))
    assert loaded.getRule() == estimator.getRule()
    made = keras.optimizers.deserialize(dict(loaded.getRule().options))
    assert made.nesterov
    assert made.get_config()["learning_rate"] == keras.optimizers.schedules.serialize(schedule)
    KerasClassifier(rule="adam(0.5)").save(str(tmp_path / "named"))
    assert KerasClassifier.load(str(tmp_path / "named")).getRule() == "adam(0.5)"


TRAINED = {
    "elastic": {"exchange": "elastic"},
    "hogwild": {"exchange": "hogwild"},
    "bounded": {"exchange": "downpour", "meet": "bounded(2)"},
    "diloco": {"exchange": "diloco", "every": 10},
    "four answers": {"exchange": ExchangePlan("gradients", 1, "synchronous", "adam(learning_rate=0.01)")},
    "an optimizer": {
        "rule": keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.01, 100, 0.9)),
        "servers": "workers",
    },
    "on the workers": {"servers": "workers"},
    "on an executor": {"servers": 1},
    "one after the other beside a server": {"exchange": "downpour", "servers": 1, "numWorkers": 2},
    "int8": {"exchange": "averaging", "every": 10, "compression": "int8"},
    "a range of ports": {"exchange": "downpour", "servers": "workers", "serverPorts": (42400, 42450)},
}
# Each way to send, to meet and to serve is in one of these.
PAIRED = {"elastic", "bounded", "hogwild", "four answers", "on an executor", "int8", "a range of ports"}


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.leaks
@pytest.mark.parametrize("case", [each if each in PAIRED else extended(each) for each in TRAINED])
def test_digits_are_learned_and_everything_is_given_back(digits, case):
    classifier = KerasClassifier(model=digits_model(), epochs=5, batchSize=16, seed=1, verbose=0, **TRAINED[case])
    fitted = classifier.fit(digits)
    context = digits.sparkSession.sparkContext
    assert list(context.statusTracker().getActiveJobsIds()) == []
    assert MulticlassClassificationEvaluator(metricName="accuracy").evaluate(fitted.transform(digits)) > 0.93
    assert len(fitted.history["loss"]) == 5
    assert fitted.history["accuracy"][-1] > 0.9


@pytest.mark.spark
def test_servers_of_their_own_leave_the_other_slots_to_the_workers(digits):
    from keraunos.ml.preparation import prepare

    def workers(**params):
        classifier = KerasClassifier(model=digits_model(), **params)
        return prepare(classifier, digits.schema, workers=8, first_row=lambda: None).job.workers

    assert workers(servers=3) == 5
    assert workers(servers=9) == 1
    assert workers(servers="workers") == 8
    assert workers(servers=3, numWorkers=6) == 6


@pytest.fixture(scope="module")
def digits(spark):
    found = load_digits()
    rows = [((image / 16).tolist(), int(label)) for image, label in zip(found.data, found.target, strict=True)]
    frame = spark.createDataFrame(rows, "features array<double>, label int").repartition(2).cache()
    assert frame.count() == 1797
    yield frame
    frame.unpersist()


def digits_model():
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [keras.Input((64,)), layers.Dense(32, activation="relu"), layers.Dense(10, activation="softmax")]
    )
    model.compile(keras.optimizers.Adam(0.005), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model
