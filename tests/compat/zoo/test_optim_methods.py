"""BigDL's optim methods as rules, against their formulas in double precision and against TensorFlow's optimizers."""

import math
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keraunos.compat.zoo.bigdl.optim import optimizer as bigdl
from keraunos.compat.zoo.pipeline.api.keras.optimizers import Adam as ZooAdam
from keraunos.errors import JobError, PlanError
from keraunos.exchange.rules.registry import is_elementwise, make_rule, needs_norm
from keraunos.exchange.rules.rule import Sent
from keraunos.exchange.sharding import Slice, cut
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Layout

LAYOUT = Layout(("a/w", "a/b", "b/w", "mean"), ((5, 4), (4,), (4, 3), (3,)), trainable=3)
TRAINABLE = LAYOUT.trainable_size
ROUNDS = 6
close = {"rtol": 2e-4, "atol": 2e-5}


def start(dtype=np.float32):
    return np.random.default_rng(5).normal(size=LAYOUT.size).astype(dtype)


def gradients(seed=0, rounds=ROUNDS):
    random = np.random.default_rng([7, seed])
    # Elements that get no gradient at first, and later do, are where divisions by zero hide.
    found = random.normal(size=(rounds, TRAINABLE))
    found[: rounds // 2, ::3] = 0.0
    return found


def contributions(gradient, rows, parts=1):
    """What ranks with so many rows send that together is this gradient, in so many parts of the loss."""
    random = np.random.default_rng(3)
    shares = random.normal(size=(len(rows), TRAINABLE)) * 0.1
    shares += gradient - np.average(shares, axis=0, weights=rows)
    # Where there is no gradient there is none at all, not one of the last bits.
    shares *= gradient != 0
    sent = []
    for share, count in zip(shares, rows, strict=True):
        numerators = [share / parts * count] * parts
        values = np.concatenate([*numerators, np.full(LAYOUT.state_size, count * 2.0)]).astype(np.float32)
        sent.append(Sent(values, (float(count),) * parts, count))
    return sent


def plan_of(rule, meet="synchronous"):
    return ExchangePlan("gradients", 1, meet, rule)


def trained(rule, *, rows=(8,), servers=1, seed=0, parts=1, dtype="float32"):
    """The parameters after all rounds, on so many servers."""
    plan = plan_of(rule)
    layout = Layout(LAYOUT.names, LAYOUT.shapes, LAYOUT.trainable, dtype)
    slices = cut(layout, servers, anywhere=is_elementwise(plan))
    rules = [make_rule(plan, part, len(rows)) for part in slices]
    parameters = start(dtype)
    for gradient in gradients(seed):
        sent = contributions(gradient, rows, parts)
        mine = [
            [Sent(np.concatenate(part.of_contribution(s.values, parts)), s.denominators, s.rows) for s in sent]
            for part in slices
        ]
        norm = sum(r.squared_norm(m) for r, m in zip(rules, mine, strict=True)) if needs_norm(plan) else None
        for part, each, sent_here in zip(slices, rules, mine, strict=True):
            view = parameters[part.start : part.stop]
            each.apply(sent_here, view, view, squared_norm=norm)
    return parameters


def reference(step, seed=0):
    """A float64 loop over `step(x, g, t, state)`, which returns the new x."""
    x, state = start(np.float64)[:TRAINABLE], {}
    for t, g in enumerate(gradients(seed), start=1):
        x = step(x, g.copy(), t, state)
    return x


def sgd(rate, x, g, t, state, *, wd=0.0, momentum=0.0, dampening=0.0, nesterov=False):
    g = g + wd * x
    if momentum:
        state["v"] = g.copy() if t == 1 else momentum * state["v"] + (1 - dampening) * g
        g = g + momentum * state["v"] if nesterov else state["v"]
    return x - rate * g


def adagrad(x, g, t, state, *, rate=0.05, decay=0.1, wd=0.2):
    g = g + wd * x
    state["s"] = state.get("s", 0) + g * g
    return x - rate / (1 + (t - 1) * decay) * g / (np.sqrt(state["s"]) + 1e-10)


def adadelta(x, g, t, state, *, rho=0.8, epsilon=1e-4):
    state["s"] = rho * state.get("s", 0) + (1 - rho) * g * g
    move = np.sqrt(state.get("a", 0) + epsilon) / np.sqrt(state["s"] + epsilon) * g
    state["a"] = rho * state.get("a", 0) + (1 - rho) * move * move
    return x - move


def adam(x, g, t, state, *, rate=0.05, decay=0.1, beta1=0.8, beta2=0.9, epsilon=1e-6):
    state["m"] = beta1 * state.get("m", 0) + (1 - beta1) * g
    state["v"] = beta2 * state.get("v", 0) + (1 - beta2) * g * g
    size = rate / (1 + (t - 1) * decay) * math.sqrt(1 - beta2**t) / (1 - beta1**t)
    return x - size * state["m"] / (np.sqrt(state["v"]) + epsilon)


def adamax(x, g, t, state, *, rate=0.05, beta1=0.8, beta2=0.9, epsilon=1e-38):
    state["m"] = beta1 * state.get("m", np.zeros_like(x)) + (1 - beta1) * g
    state["u"] = np.maximum(beta2 * state.get("u", np.zeros_like(x)), np.abs(g) + epsilon)
    return x - rate / (1 - beta1**t) * state["m"] / state["u"]


def rmsprop(x, g, t, state, *, rate=0.05, decay=0.1, rho=0.8, epsilon=1e-6):
    state["s"] = rho * state.get("s", 0) + (1 - rho) * g * g
    return x - rate / (1 + (t - 1) * decay) * g / (np.sqrt(state["s"]) + epsilon)


def ftrl(x, g, t, state, *, rate=0.3, power=-0.4, first=0.2, l1=0.05, l2=0.02, shrink=0.03):
    g = g + 2 * shrink * x
    old = state.get("a", np.full_like(x, first))
    new = old + g * g
    state["z"] = state.get("z", 0) + g - (new**-power - old**-power) / rate * x
    state["a"] = new
    divisor = new**-power / rate + 2 * l2
    return np.where(np.abs(state["z"]) > l1, (np.sign(state["z"]) * l1 - state["z"]) / divisor, 0.0)


def lars(x, g, t, state, *, rate=0.1, decay=0.01, wd=0.05, momentum=0.5, trust=0.8):
    out = x.copy()
    state.setdefault("v", np.zeros_like(x))
    for low, high in ((0, 20), (20, 24), (24, 36)):
        w, d, v = x[low:high], g[low:high], state["v"][low:high]
        scale = (np.linalg.norm(d) + wd * np.linalg.norm(w)) / np.linalg.norm(w)
        v[:] = momentum * v + trust * rate / (1 + (t - 1) * decay) / scale * (d + wd * w)
        out[low:high] = w - v
    return out


FORMULAS = {
    "sgd": (bigdl.SGD(0.1, 0.2), lambda x, g, t, s: sgd(0.1 / (1 + (t - 1) * 0.2), x, g, t, s)),
    "weight decay": (bigdl.SGD(0.1, weightdecay=0.3), lambda x, g, t, s: sgd(0.1, x, g, t, s, wd=0.3)),
    "momentum, which dampens itself": (
        bigdl.SGD(0.1, momentum=0.7),
        lambda x, g, t, s: sgd(0.1, x, g, t, s, momentum=0.7, dampening=0.7),
    ),
    "momentum without dampening": (
        bigdl.SGD(0.1, momentum=0.7, dampening=0.0, weightdecay=0.1),
        lambda x, g, t, s: sgd(0.1, x, g, t, s, momentum=0.7, wd=0.1),
    ),
    "nesterov": (
        bigdl.SGD(0.1, momentum=0.7, dampening=0.0, nesterov=True),
        lambda x, g, t, s: sgd(0.1, x, g, t, s, momentum=0.7, nesterov=True),
    ),
    "own rates and decays": (
        bigdl.SGD(0.1, learningrates=np.arange(TRAINABLE), weightdecays=np.linspace(0, 1, TRAINABLE)),
        lambda x, g, t, s: sgd(0.1 * np.arange(TRAINABLE), x, g, t, s, wd=np.linspace(0, 1, TRAINABLE)),
    ),
    "adagrad": (bigdl.Adagrad(0.05, 0.1, 0.2), adagrad),
    "adadelta": (bigdl.Adadelta(0.8, 1e-4), adadelta),
    "adam": (bigdl.Adam(0.05, 0.1, 0.8, 0.9, 1e-6), adam),
    "parallel adam": (bigdl.ParallelAdam(0.05, 0.1, 0.8, 0.9, 1e-6), adam),
    "adamax": (bigdl.Adamax(0.05, 0.8, 0.9), adamax),
    "rmsprop": (bigdl.RMSprop(0.05, 0.1, 0.8, 1e-6), rmsprop),
    "ftrl": (bigdl.Ftrl(0.3, -0.4, 0.2, 0.05, 0.02, 0.03), ftrl),
    "lars": (bigdl.LarsSGD(0.8, 0.1, 0.01, 0.05, 0.5), lars),
}
NAMES = list(FORMULAS)


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 1000), rows=st.lists(st.integers(1, 50), min_size=1, max_size=4), parts=st.integers(1, 2))
@settings(max_examples=12)
def test_a_method_does_what_its_formula_says_however_many_ranks_give_the_gradient(name, seed, rows, parts):
    method, step = FORMULAS[name]
    parameters = trained(method.rule(), rows=rows, seed=seed, parts=parts)
    np.testing.assert_allclose(parameters[:TRAINABLE], reference(step, seed), rtol=2e-3, atol=1e-3)
    np.testing.assert_allclose(parameters[TRAINABLE:], 2.0, rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("servers", [2, 5])
def test_slices_move_as_the_whole_does(name, servers):
    rule = FORMULAS[name][0].rule(clip_norm=1.0)
    np.testing.assert_allclose(trained(rule, servers=servers), trained(rule), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in {"ftrl", "lars"}])
@pytest.mark.parametrize("servers", [2, 3])
def test_slices_of_what_is_elementwise_give_the_bits_of_the_whole(name, servers):
    rule = FORMULAS[name][0].rule(clip_constant=(-0.5, 0.5))
    np.testing.assert_array_equal(trained(rule, servers=servers), trained(rule))


@pytest.mark.parametrize("name", [*NAMES, "lbfgs"])
def test_a_method_goes_on_from_its_state(name):
    method = bigdl.LBFGS() if name == "lbfgs" else FORMULAS[name][0]
    plan, whole = plan_of(method.rule()), Slice(LAYOUT, 0, LAYOUT.size)
    straight, resumed = start(), start()
    one, other, fresh = (make_rule(plan, whole, 1) for _ in range(3))
    for number, gradient in enumerate(gradients()):
        sent = contributions(gradient, (4,))
        one.apply(sent, straight, straight)
        if number == 3:
            fresh.restore(other.state())
            other = fresh
        other.apply(sent, resumed, resumed)
    np.testing.assert_array_equal(resumed, straight)


def test_a_vector_longer_than_a_block_moves_as_a_short_one_does():
    size, short = 40_000, 1_000
    gradient = np.random.default_rng(0).normal(size=size).astype(np.float32)
    plan = plan_of(bigdl.Adam(0.1).rule(clip_norm=3.0))
    layout = Layout(("w",), ((size,),), trainable=1)

    def moved(start, stop, norm=None):
        rule = make_rule(plan, Slice(layout, start, stop), 1)
        parameters = np.zeros(stop - start, np.float32)
        sent = [Sent(gradient[start:stop], (1.0,), 1)]
        for _ in range(2):
            rule.apply(sent, parameters, parameters, squared_norm=norm or rule.squared_norm(sent))
        return rule.squared_norm(sent), parameters

    norm, parameters = moved(0, size)
    assert norm == pytest.approx(np.sum(np.float64(gradient) ** 2), rel=1e-6)
    pieces = [moved(start, start + short, norm)[1] for start in range(0, size, short)]
    np.testing.assert_array_equal(parameters, np.concatenate(pieces))


@given(st.floats(0.01, 10), st.floats(-1, -0.01), st.floats(0.01, 1))
def test_a_gradient_is_scaled_to_the_norm_and_then_cut_to_the_range(norm, low, high):
    def step(x, g, t, state):
        length = np.linalg.norm(g)
        g = g * (norm / length if length > norm else 1.0)
        return x - 0.1 * np.clip(g, low, high)

    rule = bigdl.SGD(0.1).rule(clip_norm=norm, clip_constant=(low, high))
    np.testing.assert_allclose(trained(rule, rows=(3, 2))[:TRAINABLE], reference(step), **close)


def test_each_contribution_of_an_asynchronous_plan_is_clipped_by_its_own_norm():
    rule = make_rule(plan_of(bigdl.SGD(1.0).rule(clip_norm=1.0), "asynchronous"), Slice(LAYOUT, 0, LAYOUT.size), 2)
    parameters = np.zeros(LAYOUT.size, np.float32)
    values = np.concatenate([np.full(TRAINABLE, 3.0), np.zeros(3)]).astype(np.float32)
    rule.apply([Sent(values, (1.0,), 1)], parameters, parameters, squared_norm=9.0 * TRAINABLE)
    assert np.linalg.norm(parameters) == pytest.approx(1.0, rel=1e-5)


def test_threads_that_share_a_rule_do_not_share_its_scratch():
    layout = Layout(("w",), ((100_000,),), trainable=1)
    rule = make_rule(plan_of(bigdl.SGD(1.0).rule(), "hogwild"), Slice(layout, 0, layout.size), 2)
    parameters = np.zeros(100_000, np.float32)
    halves = [np.zeros(100_000, np.float32) for _ in range(2)]
    halves[0][:50_000], halves[1][50_000:] = 1.0, 2.0

    def run(values):
        for _ in range(20):
            rule.apply([Sent(values, (1.0,), 1)], parameters, parameters)

    threads = [threading.Thread(target=run, args=(values,)) for values in halves]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    # A move may be lost where two threads meet in a block, but none can be one that nobody sent.
    assert parameters[:50_000].min() >= -20
    assert parameters[50_000:].min() >= -40
    assert parameters[:50_000].max() <= 0
    assert parameters[50_000:].max() <= 0


def least_squares(rows=40, columns=6):
    random = np.random.default_rng(1)
    matrix = random.normal(size=(rows, columns))
    return matrix, matrix @ random.normal(size=columns)


def test_lbfgs_finds_the_minimum_of_a_quadratic_function_in_few_evaluations():
    matrix, right = least_squares()
    layout = Layout(("w",), ((6,),), trainable=1, dtype="float64")
    rule = make_rule(plan_of(bigdl.LBFGS(tolfun=1e-12, tolx=1e-16).rule()), Slice(layout, 0, 6), 1)
    x = np.zeros(6)
    for _ in range(30):
        gradient = matrix.T @ (matrix @ x - right) / len(right)
        rule.apply([Sent(gradient, (1.0,), 1)], x, x)
    np.testing.assert_allclose(x, np.linalg.lstsq(matrix, right, rcond=None)[0], rtol=1e-6)


def test_lbfgs_keeps_as_many_corrections_as_it_was_told_and_stops_where_there_is_no_slope():
    layout = Layout(("w",), ((6,),), trainable=1, dtype="float64")
    rule = make_rule(plan_of(bigdl.LBFGS(ncorrection=2).rule()), Slice(layout, 0, 6), 1)
    matrix, right = least_squares()
    x = np.zeros(6)
    for _ in range(8):
        gradient = matrix.T @ (matrix @ x - right) / len(right)
        rule.apply([Sent(gradient, (1.0,), 1)], x, x)
    assert len(rule.state()) == 3 + 2 * 2
    before = x.copy()
    rule.apply([Sent(np.full(6, 1e-7), (1.0,), 1)], x, x)
    np.testing.assert_array_equal(x, before)


def test_lbfgs_needs_everything_in_one_place():
    assert bigdl.LBFGS().servers == "driver"
    with pytest.raises(PlanError, match="servers='driver'"):
        make_rule(plan_of(bigdl.LBFGS().rule()), Slice(LAYOUT, 0, 20), 1)
    with pytest.raises(PlanError, match="synchronous"):
        make_rule(plan_of(bigdl.LBFGS().rule(), "asynchronous"), Slice(LAYOUT, 0, LAYOUT.size), 1)


def test_variables_have_methods_by_the_beginnings_of_their_names():
    rule = bigdl.combined_rule(
        {"a/": bigdl.SGD(0.1), "a/b": bigdl.Adam(0.05, 0.1, 0.8, 0.9, 1e-6), "b": bigdl.LarsSGD(0.8, 0.1, 0.01, 0.05)},
        names=LAYOUT.names[:3],
    )
    expected = np.concatenate(
        [
            reference(lambda x, g, t, s: sgd(0.1, x, g, t, s))[:20],
            reference(adam)[20:24],
            reference(lars)[24:],
        ]
    )
    for servers in (1, 3):
        np.testing.assert_allclose(trained(rule, rows=(3, 5), servers=servers)[:TRAINABLE], expected, **close)


def test_methods_by_name_are_clipped_by_the_norm_of_everything_and_go_on_from_their_state():
    methods = {"a": bigdl.SGD(0.1, momentum=0.5), "b": bigdl.Adagrad(0.1)}
    rule = bigdl.combined_rule(methods, clip_norm=0.5)

    def step(x, g, t, state):
        g = g * min(1.0, 0.5 / np.linalg.norm(g))
        one = sgd(0.1, x, g, t, state.setdefault("one", {}), momentum=0.5, dampening=0.5)
        other = adagrad(x, g, t, state.setdefault("other", {}), rate=0.1, decay=0, wd=0)
        return np.concatenate([one[:24], other[24:]])

    np.testing.assert_allclose(trained(rule, parts=2)[:TRAINABLE], reference(step), **close)
    whole = Slice(LAYOUT, 0, LAYOUT.size)
    one, other = (make_rule(plan_of(rule), whole, 1) for _ in range(2))
    left, right = start(), start()
    sent = contributions(gradients()[-1], (4,))
    one.apply(sent, left, left, squared_norm=1.0)
    np.copyto(right, left)
    other.restore(one.state())
    for each, parameters in ((one, left), (other, right)):
        each.apply(sent, parameters, parameters, squared_norm=1.0)
    np.testing.assert_array_equal(left, right)


def test_a_variable_without_a_method_is_an_error():
    with pytest.raises(PlanError, match="a beginning of 'b/w'.*Received: methods for 'a'"):
        bigdl.combined_rule({"a": bigdl.SGD()}, names=LAYOUT.names[:3])
    with pytest.raises(JobError, match="any server"):
        bigdl.combined_rule({"a": bigdl.LBFGS()})


SCHEDULES = {
    "default": (bigdl.Default(), [0.4 / (1 + 0.5 * n) for n in range(8)]),
    "poly": (bigdl.Poly(0.5, 4), [0.4, 0.4 * 0.75**0.5, 0.4 * 0.5**0.5, 0.4 * 0.25**0.5, 0, 0, 0, 0]),
    "exponential": (bigdl.Exponential(4, 0.1), [0.4 * 0.1 ** (n / 4) for n in range(8)]),
    "staircase": (bigdl.Exponential(4, 0.1, True), [0.4] * 4 + [0.04] * 4),
    "step": (bigdl.Step(3, 0.5), [0.4, 0.4, 0.4, 0.2, 0.2, 0.2, 0.1, 0.1]),
    "multi-step": (bigdl.MultiStep([2, 5], 0.5), [0.4, 0.4, 0.2, 0.2, 0.2, 0.1, 0.1, 0.1]),
    "warm-up": (bigdl.Warmup(0.1), [0.4 + 0.1 * n for n in range(8)]),
    "a warm-up, then steps from where it ended": (
        bigdl.SequentialSchedule(4).add(bigdl.Warmup(0.2), 2).add(bigdl.Step(2, 0.5), 10),
        [0.4, 0.6, 0.8, 0.8, 0.4, 0.4, 0.2, 0.2],
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_rate_of_each_step_follows_the_schedule_and_so_do_the_parameters(name):
    schedule, rates = SCHEDULES[name]
    method = bigdl.SGD(0.4, 0.5, leaningrate_schedule=schedule)
    np.testing.assert_allclose([method.rate_at(step) for step in range(1, 9)], rates, rtol=1e-12)
    expected = reference(lambda x, g, t, s: x - rates[t - 1] * g)
    np.testing.assert_allclose(trained(method.rule())[:TRAINABLE], expected, **close)


@pytest.mark.parametrize(
    "make",
    [lambda plateau: bigdl.SGD(1.0, leaningrate_schedule=plateau), lambda plateau: ZooAdam(1.0, schedule=plateau)],
    ids=["SGD", "Adam of Analytics Zoo"],
)
def test_a_plateau_lowers_the_rate_when_the_score_stands_still(make):
    method = make(bigdl.Plateau("score", 0.5, 1, "max", min_lr=0.2))
    rule = method.rule()
    follower = bigdl.RateFollower.of(method)
    assert (method.servers, follower.monitor) == ("driver", "score")
    served = make_rule(plan_of(rule), Slice(LAYOUT, 0, LAYOUT.size), 1)
    scores = [0.1, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2]
    # A reduction needs `patience` epochs that are no better, and one more.
    assert [follower.end_epoch(served, score=each) for each in scores] == [1.0, 1.0, 1.0, 0.5, 0.25, 0.2, 0.2, 0.2]
    assert (served.learning_rate, served.rate_at(7)) == (0.2, 0.2)
    with pytest.raises(JobError, match="Plateau of 'score'.*Validate every epoch"):
        follower.end_epoch(served, loss=1.0)
    with pytest.raises(JobError, match="with a Plateau must live on the driver"):
        follower.end_epoch(None, score=1.0)


def test_a_plateau_starts_anew_with_each_training_and_follows_only_its_own_rule():
    method = bigdl.SGD(1.0, leaningrate_schedule=bigdl.Plateau("Loss", 0.1, 0))
    first, second = (make_rule(plan_of(method.rule()), Slice(LAYOUT, 0, LAYOUT.size), 1) for _ in range(2))
    follower = bigdl.RateFollower.of(method)
    assert [follower.end_epoch(second, loss=each) for each in (1.0, 2.0)] == [1.0, pytest.approx(0.1)]
    assert [each.learning_rate for each in (first, second)] == [1.0, pytest.approx(0.1)]
    assert bigdl.RateFollower.of(method).end_epoch(first, loss=5.0) == 1.0
    assert bigdl.RateFollower.of(bigdl.Adam()) is None


def test_a_cooldown_keeps_a_plateau_from_acting_again_at_once():
    plateau = bigdl.Plateau("Loss", 0.1, 0, cooldown=2)
    rates = [1.0]
    for loss in (1.0, 1.0, 1.0, 1.0, 1.0):
        rates.append(plateau.observe(rates[-1], loss))
    np.testing.assert_allclose(rates, [1.0, 1.0, 0.1, 0.1, 0.01, 0.01])


def test_own_rates_must_fit_the_parameters():
    rule = bigdl.SGD(learningrates=[1.0, 2.0]).rule()
    with pytest.raises(PlanError, match="`learningrates`.*Expected: 36. Received: 2"):
        make_rule(plan_of(rule), Slice(LAYOUT, 0, LAYOUT.size), 1)


@pytest.mark.parametrize("name", ["sgd", "nesterov", "adam", "adagrad", "adadelta", "rmsprop", "ftrl"])
def test_tensorflow_moves_the_same_way_where_the_formulas_are_the_same(name):
    import tensorflow as tf

    v1 = tf.compat.v1.train
    ours, theirs = {
        "sgd": (bigdl.SGD(0.1), v1.GradientDescentOptimizer(0.1)),
        # TensorFlow's velocity is ours; its Nesterov step is rate * (g + momentum v) too.
        "nesterov": (
            bigdl.SGD(0.1, momentum=0.9, dampening=0.0, nesterov=True),
            v1.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
        ),
        "adam": (bigdl.Adam(0.1, epsilon=1e-7), v1.AdamOptimizer(0.1, epsilon=1e-7)),
        "adagrad": (bigdl.Adagrad(0.1), v1.AdagradOptimizer(0.1, initial_accumulator_value=1e-20)),
        "adadelta": (bigdl.Adadelta(0.9, 1e-6), v1.AdadeltaOptimizer(1.0, 0.9, 1e-6)),
        "rmsprop": (bigdl.RMSprop(0.1, 0.0, 0.9, 1e-10), v1.RMSPropOptimizer(0.1, 0.9, epsilon=1e-20)),
        "ftrl": (
            bigdl.Ftrl(0.1, -0.5, 0.1, 0.01, 0.02),
            v1.FtrlOptimizer(0.1, -0.5, 0.1, 0.01, 0.02),
        ),
    }[name]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        gradient = tf.compat.v1.placeholder(tf.float32, [TRAINABLE])
        variable = tf.compat.v1.get_variable("x", initializer=start()[:TRAINABLE])
        # TensorFlow's RMSprop starts its mean square from one: set it to what BigDL's starts from.
        step = theirs.apply_gradients([(gradient, variable)])
        session.run(tf.compat.v1.global_variables_initializer())
        if name == "rmsprop":
            session.run(theirs.get_slot(variable, "rms").assign(tf.zeros([TRAINABLE])))
        for each in np.random.default_rng(4).normal(size=(ROUNDS, TRAINABLE)):
            session.run(step, {gradient: each})
        expected = session.run(variable)
    parameters = start()
    rule = make_rule(plan_of(ours.rule()), Slice(LAYOUT, 0, LAYOUT.size), 1)
    for each in np.random.default_rng(4).normal(size=(ROUNDS, TRAINABLE)):
        values = np.concatenate([each, np.zeros(3)]).astype(np.float32)
        rule.apply([Sent(values, (1.0,), 1)], parameters, parameters)
    np.testing.assert_allclose(parameters[:TRAINABLE], expected, rtol=1e-4, atol=1e-5)
