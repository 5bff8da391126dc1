"""What every way of sharing parameters promises, wherever the parameters live.

It converges to the optimum that one process finds, loses no contribution, gives the same bits again where it is
synchronous, and leaves nothing behind. A test class inherits `ExchangeSuite`; the process must run Keras on the
backend it is for. A new plan or rule is one more line in `PLANS`.
"""

import functools
import threading

import keras
import numpy as np
import pytest

from keraunos.job.exchange_plan import ExchangePlan
from keraunos.learners.keras_variables import read_vector
from keraunos.parameters import Layout
from tests.conformance import engine
from tests.exchange.members import Job

PLACES = ("driver", "workers", 2)
WORKERS = 2
ROWS = [96, 64]
FEATURES = 4

_NESTEROV = "sgd(learning_rate=0.7, momentum=0.5, nesterov=True)"
PLANS = {
    "allreduce": ExchangePlan.named("allreduce"),
    "averaging": ExchangePlan.named("averaging", every=5),
    "downpour": ExchangePlan.named("downpour"),
    "hogwild": ExchangePlan.named("hogwild"),
    "bounded": ExchangePlan.named("bounded"),
    "elastic": ExchangePlan.named("elastic"),
    "diloco": ExchangePlan.named("diloco", every=5),
    "gradients of 4 steps": ExchangePlan("gradients", 4, "synchronous", "own"),
    "gradients of an epoch": ExchangePlan("gradients", "epoch", "synchronous", "own"),
    "gradients, sgd": ExchangePlan("gradients", 1, "synchronous", "sgd(learning_rate=0.1)"),
    "gradients of 4 steps, adam": ExchangePlan("gradients", 4, "synchronous", "adam(learning_rate=0.3, beta_1=0.5)"),
    "gradients, clipped": ExchangePlan("gradients", 1, "synchronous", "sgd(learning_rate=0.1, global_clipnorm=1.0)"),
    "gradients, sgd, asynchronous": ExchangePlan("gradients", 1, "asynchronous", "sgd(learning_rate=0.05)"),
    "gradients, adam, by staleness": ExchangePlan(
        "gradients", 1, "asynchronous", "adam(learning_rate=0.1)", scale="staleness"
    ),
    "gradients of 4 steps, sgd, bounded": ExchangePlan("gradients", 4, "bounded(2)", "sgd(learning_rate=0.05)"),
    "gradients, sgd, hogwild": ExchangePlan("gradients", 1, "hogwild", "sgd(learning_rate=0.05)"),
    "updates, sum": ExchangePlan("updates", 1, "synchronous", "sum"),
    "updates, nesterov": ExchangePlan("updates", 3, "synchronous", _NESTEROV),
    "updates, add by staleness": ExchangePlan("updates", 3, "asynchronous", "add", scale="staleness"),
    "updates, add in lock-step": ExchangePlan("updates", 3, "bounded(0)", "add"),
    "updates, delayed nesterov": ExchangePlan(
        "updates", 3, "asynchronous", "delayed_nesterov(learning_rate=0.7, momentum=0.5)"
    ),
    "updates of an epoch, mean": ExchangePlan("updates", "epoch", "synchronous", "mean"),
    "weights, mean": ExchangePlan("weights", 3, "synchronous", "mean"),
    "weights, moving average": ExchangePlan("weights", 3, "asynchronous", "moving_average(2)"),
    "weights, moving average, bounded": ExchangePlan("weights", 3, "bounded(1)", "moving_average(2)"),
    "weights, elastic, synchronous": ExchangePlan("weights", 3, "synchronous", "elastic(0.4)"),
    "weights, elastic, hogwild": ExchangePlan("weights", 3, "hogwild", "elastic(0.4)"),
    "allreduce, bfloat16": ExchangePlan.named("allreduce", compression="bfloat16"),
    "allreduce, int8": ExchangePlan.named("allreduce", compression="int8"),
    "updates, mean, int8": ExchangePlan("updates", 3, "synchronous", "mean", compression="int8"),
    "downpour, bfloat16": ExchangePlan.named("downpour", compression="bfloat16"),
    "weights, mean, bfloat16": ExchangePlan("weights", 3, "synchronous", "mean", compression="bfloat16"),
}
# Rules that are no more than sums: what was sent can be compared with what was applied.
LINEAR = {
    "mean": ExchangePlan("updates", 1, "synchronous", "mean"),
    "sum": ExchangePlan("updates", 1, "synchronous", "sum"),
    "add": ExchangePlan("updates", 1, "asynchronous", "add", scale=1),
    "add, bounded": ExchangePlan("updates", 1, "bounded(2)", "add", scale=1),
    "add, in lock-step": ExchangePlan("updates", 1, "bounded(0)", "add", scale=1),
    "mean, bfloat16": ExchangePlan("updates", 1, "synchronous", "mean", compression="bfloat16"),
    "add, int8": ExchangePlan("updates", 1, "asynchronous", "add", scale=1, compression="int8"),
}
# How much of one contribution its encoding may hold back for the next.
_RESIDUAL = {None: 0.0, "bfloat16": 2.0**-8, "int8": 1 / 127}
# A server's optimizer compiles for the length of its slice, which may change the last bit.
SAME_BITS_EVERYWHERE = [
    name
    for name, plan in PLANS.items()
    if plan.synchronous and plan.rule.name in {"own", "mean", "sum", "elastic"} and plan.compression != "int8"
]
SYNCHRONOUS = [name for name, plan in PLANS.items() if plan.synchronous]


def dealt(names, places=PLACES):
    """Each name with each place; `make test` has one place for each, the same in all tests, so that fits are shared."""
    numbers = {name: number for number, name in enumerate(PLANS)}
    return [
        pytest.param(name, where, marks=[] if numbers[name] % len(places) == number else pytest.mark.extended)
        for name in names
        for number, where in enumerate(places)
    ]


@functools.cache
def problem():
    """Rows of a linear function, and the weights that one process ends with: the least squares."""
    random = np.random.default_rng(3)
    x = random.normal(size=(sum(ROWS), FEATURES)).astype("float32")
    y = (x @ np.array([1.0, -2.0, 3.0, 0.5], "float32") + 1)[:, None].astype("float32")
    with_one = np.hstack([x, np.ones((len(x), 1), "float32")])
    optimum = np.linalg.lstsq(with_one, y, rcond=None)[0].ravel()
    return engine.partitions(engine.table(x=x, y=y), ROWS), optimum


def linear_model():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((FEATURES,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    return model


def train(name, servers):
    """The weights that a plan ends with."""
    parts, _ = problem()
    job = engine.job_of(linear_model(), WORKERS, exchange=PLANS[name], servers=servers, epochs=25, batch_size=16)
    model, _ = engine.train(job, parts)
    return read_vector(model)


trained = functools.cache(train)


@pytest.mark.leaks
class ExchangeSuite:
    @pytest.mark.parametrize(("name", "where"), dealt(PLANS))
    def test_converges_to_the_single_process_optimum(self, name, where):
        _, optimum = problem()
        np.testing.assert_allclose(trained(name, where), optimum, atol=0.02)

    @pytest.mark.parametrize(("name", "where"), dealt(SYNCHRONOUS))
    def test_a_synchronous_plan_gives_the_same_bits_again(self, name, where):
        np.testing.assert_array_equal(train(name, where), trained(name, where))

    @pytest.mark.parametrize(("name", "where"), dealt(SAME_BITS_EVERYWHERE, PLACES[1:]))
    def test_a_synchronous_plan_gives_the_same_bits_wherever_the_parameters_live(self, name, where):
        np.testing.assert_array_equal(trained(name, where), trained(name, PLACES[0]))

    @pytest.mark.parametrize("meet", ["asynchronous", "hogwild", "bounded(2)"])
    def test_a_lone_worker_computes_each_gradient_on_the_parameters_its_last_one_led_to(self, meet):
        def weights(meet):
            plan = ExchangePlan("gradients", 1, meet, "adam(learning_rate=0.1)")
            job = engine.job_of(linear_model(), 1, exchange=plan, epochs=3, batch_size=16)
            return read_vector(engine.train(job, problem()[0][:1])[0])

        np.testing.assert_array_equal(weights(meet), weights("synchronous"))

    @pytest.mark.paired
    @pytest.mark.parametrize("where", PLACES)
    @pytest.mark.parametrize("share_memory", [True, False], ids=["shared memory", "socket"])
    @pytest.mark.parametrize("name", LINEAR)
    def test_what_was_sent_is_what_was_applied(self, name, share_memory, where):
        plan, workers, rounds = LINEAR[name], 3, 4
        layout = Layout(("w",), ((300_001,),), trainable=1)
        random = np.random.default_rng(7)
        sent = random.uniform(-1, 1, size=(workers, rounds, layout.size)).astype(np.float32)
        expected = -sent.sum(axis=(0, 1), dtype=np.float64) / (workers if plan.rule.name == "mean" else 1)
        tolerance = 1e-5 + workers * 2 * _RESIDUAL[plan.compression]
        job = Job(
            plan,
            layout,
            np.zeros(layout.size, np.float32),
            lambda rank, round_: (sent[rank, round_], 1),
            workers=workers,
            rounds=rounds,
            servers=where,
            share_memory=share_memory,
        )
        np.testing.assert_allclose(job.run().parameters, expected, atol=tolerance)

    def test_what_hogwild_loses_is_little_and_shown(self, capsys):
        plan = ExchangePlan("updates", 1, "hogwild", "add", scale=1)
        workers, rounds = 4, 300
        layout = Layout(("w",), ((200_000,),), trainable=1)
        ones = np.ones(layout.size, np.float32)
        together = threading.Barrier(workers)

        def contribute(rank, round_):
            together.wait(timeout=60)
            return ones, 1

        zeros = np.zeros(layout.size, np.float32)
        job = Job(plan, layout, zeros, contribute, workers=workers, rounds=rounds, keep_results=False)
        applied = -job.run().parameters
        lost = 1 - applied.sum(dtype=np.float64) / (workers * rounds * layout.size)
        with capsys.disabled():
            print(f"\nhogwild, {workers} threads into {layout.size:,} values: {lost:.4%} of what was sent was lost")
        # No move is made twice, and a race loses a block here and there, not whole contributions.
        assert applied.max() <= workers * rounds
        assert lost < 0.5
