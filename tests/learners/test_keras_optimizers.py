"""A server's optimizer against the same optimizer applied by Keras in one process."""

from functools import cache

import keras
import numpy as np
import pytest

from keraunos.errors import JobError, PlanError
from keraunos.job.rule_spec import KERAS_OPTIMIZERS, RuleSpec
from keraunos.learners.keras_optimizers import ServerOptimizer, optimizer_of
from keraunos.parameters import Layout

VARIABLES = (("dense/kernel", (6, 5)), ("dense/bias", (5,)), ("embedding/embeddings", (4, 3)), ("scale", ()))
LAYOUT = Layout(tuple(name for name, _ in VARIABLES), tuple(shape for _, shape in VARIABLES), len(VARIABLES))
STEPS = 5

schedules = keras.optimizers.schedules


def gradients():
    random = np.random.default_rng(7)
    return [random.normal(size=LAYOUT.size).astype(np.float32) * 2 for _ in range(STEPS)]


def start():
    return np.random.default_rng(11).normal(size=LAYOUT.size).astype(np.float32)


def in_one_process(optimizer, finish=False):
    """What Keras makes of the gradients."""
    variables = []
    for (path, _), values in zip(VARIABLES, LAYOUT.split(start()), strict=True):
        variable = keras.Variable(values, name=path.rsplit("/", 1)[-1])
        variable._path = path
        variables.append(variable)
    for gradient in gradients():
        optimizer.apply([keras.ops.convert_to_tensor(each) for each in LAYOUT.split(gradient)], variables)
    if finish:
        optimizer.finalize_variable_values(variables)
    return LAYOUT.join([keras.ops.convert_to_numpy(variable.value) for variable in variables])


@cache
def written_in_one_process(text):
    return in_one_process(optimizer_of(RuleSpec.parse(text)))


def on_a_server(spec, variables=VARIABLES):
    server = ServerOptimizer(spec, variables, "float32")
    parameters = start()
    for gradient in gradients():
        server.apply(gradient, parameters)
    return parameters


PLAIN = [name for name, title in KERAS_OPTIMIZERS.items() if hasattr(keras.optimizers, title)]
WRITTEN = [
    *PLAIN,
    "sgd(0.1, momentum=0.9)",
    "sgd(0.1, momentum=0.9, nesterov=True)",
    "sgd(1)",
    "sgd(0.1, clipvalue=0.5)",
    "sgd(0.1, clipnorm=0.5)",
    "sgd(0.1, global_clipnorm=0.5)",
    "sgd(0.1, global_clipnorm=500.0)",
    "adam(0.05, amsgrad=True)",
    "adamw(0.05, weight_decay=0.3)",
    "rmsprop(0.05, momentum=0.5, centered=True)",
    "ftrl(0.1, l1_regularization_strength=0.1, l2_regularization_strength=0.1)",
    "adam(0.05, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=2)",
]


@pytest.mark.parametrize("text", WRITTEN)
def test_a_server_gives_what_one_process_gives(text):
    spec = RuleSpec.parse(text)
    parameters = on_a_server(spec)
    np.testing.assert_allclose(parameters, written_in_one_process(text), rtol=2e-5, atol=2e-6)
    assert not np.allclose(parameters, start(), atol=1e-6)


ELEMENTWISE = [name for name in PLAIN if name not in {"adafactor", "lamb", "muon"}]


@pytest.mark.parametrize("text", ELEMENTWISE)
def test_an_optimizer_of_single_elements_sees_no_variables(text):
    spec = RuleSpec.parse(text)
    joined = on_a_server(spec, [("parameters", (LAYOUT.size,))])
    np.testing.assert_allclose(joined, written_in_one_process(text), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(
    "made",
    [
        lambda: keras.optimizers.SGD(schedules.ExponentialDecay(0.2, 2, 0.5), momentum=0.9),
        lambda: keras.optimizers.Adam(schedules.CosineDecay(0.1, 4), clipnorm=1.0),
        lambda: keras.optimizers.AdamW(0.05, weight_decay=0.3),
    ],
    ids=["decay", "cosine", "adamw"],
)
def test_an_optimizer_object_works_as_the_object_does(made):
    np.testing.assert_allclose(on_a_server(RuleSpec.of(made())), in_one_process(made()), rtol=2e-5, atol=2e-6)


def test_variables_are_excluded_from_weight_decay_by_name():
    def made():
        optimizer = keras.optimizers.AdamW(0.05, weight_decay=0.9)
        optimizer.exclude_from_weight_decay(var_names=["bias", "scale"])
        return optimizer

    expected = in_one_process(made())
    np.testing.assert_allclose(on_a_server(RuleSpec.of(made())), expected, rtol=2e-5, atol=2e-6)
    written = RuleSpec.parse("adamw(0.05, weight_decay=0.9, exclude_from_weight_decay=['bias', 'scale'])")
    np.testing.assert_allclose(on_a_server(written), expected, rtol=2e-5, atol=2e-6)
    everything_decays = on_a_server(RuleSpec.parse("adamw(0.05, weight_decay=0.9)"))
    differs = ~np.isclose(everything_decays, expected, rtol=1e-4, atol=1e-5)
    bias, scale = slice(30, 35), slice(47, 48)
    assert differs[bias].all()
    assert differs[scale].all()
    assert not differs[: bias.start].any()


def test_an_average_of_the_parameters_takes_their_place_at_the_end():
    spec = RuleSpec.parse("sgd(0.1, use_ema=True, ema_momentum=0.5)")
    server = ServerOptimizer(spec, VARIABLES, "float32")
    parameters = start()
    for gradient in gradients():
        server.apply(gradient, parameters)
    np.testing.assert_allclose(parameters, in_one_process(optimizer_of(spec)), rtol=2e-5, atol=2e-6)
    server.finish(parameters)
    np.testing.assert_allclose(parameters, in_one_process(optimizer_of(spec), finish=True), rtol=2e-5, atol=2e-6)


def test_the_norm_of_the_whole_gradient_decides_about_clipping():
    spec = RuleSpec.parse("sgd(1.0, global_clipnorm=1.0)")
    server = ServerOptimizer(spec, [("w", (2,))], "float32")
    for squared_norm, expected in [(None, -np.array([0.6, 0.8])), (100.0, -np.array([0.3, 0.4])), (0.5, [-3, -4])]:
        parameters = np.zeros(2, np.float32)
        server.apply(np.array([3, 4], np.float32), parameters, squared_norm)
        np.testing.assert_allclose(parameters, expected, rtol=1e-6)


@pytest.mark.parametrize(
    "text", ["sgd(0.1)", "sgd(0.1, momentum=0.9)", "adamw(0.1, weight_decay=0.3)", "adafactor(0.1)"]
)
def test_scaling_a_contribution_scales_the_learning_rate(text):
    spec = RuleSpec.parse(text)
    half = RuleSpec(spec.name, {**spec.options, "learning_rate": 0.05})
    server = ServerOptimizer(spec, VARIABLES, "float32")
    parameters = start()
    for gradient in gradients():
        server.apply(gradient, parameters, scale=0.5)
    np.testing.assert_allclose(parameters, on_a_server(half), rtol=2e-5, atol=2e-6)
    assert server.learning_rate == pytest.approx(0.1)


@pytest.mark.parametrize("text", ["adam(0.05)", "sgd(0.1, momentum=0.9)", "lamb"])
def test_a_server_goes_on_from_its_state(text):
    spec = RuleSpec.parse(text)
    first = ServerOptimizer(spec, VARIABLES, "float32")
    parameters = start()
    for gradient in gradients()[:2]:
        first.apply(gradient, parameters)
    second = ServerOptimizer(spec, VARIABLES, "float32")
    second.restore(first.state())
    for gradient in gradients()[2:]:
        second.apply(gradient, parameters)
    np.testing.assert_array_equal(parameters, on_a_server(spec))


def test_the_learning_rate_can_be_read_and_set():
    server = ServerOptimizer(RuleSpec.parse("sgd(0.5)"), [("w", (2,))], "float32")
    parameters = np.zeros(2, np.float32)
    server.learning_rate = 0.25
    server.apply(np.ones(2, np.float32), parameters)
    np.testing.assert_allclose(parameters, -0.25)
    assert server.learning_rate == 0.25


def test_a_scheduled_learning_rate_is_read_and_cannot_be_set():
    spec = RuleSpec.of(keras.optimizers.SGD(schedules.PiecewiseConstantDecay([0], [0.5, 0.125])))
    server = ServerOptimizer(spec, [("w", (2,))], "float32")
    assert server.learning_rate == 0.5
    server.apply(np.ones(2, np.float32), np.zeros(2, np.float32))
    assert server.learning_rate == 0.125
    with pytest.raises(JobError, match=r"a schedule computes it\. Received: 0\.1"):
        server.learning_rate = 0.1


@pytest.mark.parametrize("text", ["sgd(lr=0.1)", "adam('fast')"])
def test_arguments_that_keras_refuses_are_named(text):
    with pytest.raises(PlanError, match=r"must be an optimizer that Keras can make\. Received: "):
        ServerOptimizer(RuleSpec.parse(text), VARIABLES, "float32")


def test_vectors_that_lie_anywhere_in_memory_are_taken():
    server = ServerOptimizer(RuleSpec.parse("sgd(1.0)"), [("w", (5,))], "float32")
    space = np.zeros(12, np.float32)
    for offset in range(6):
        space[:] = 0
        server.apply(np.arange(12, dtype=np.float32)[1:6], space[offset : offset + 5])
        np.testing.assert_array_equal(space[offset : offset + 5], [-1, -2, -3, -4, -5])


def test_threads_that_share_an_optimizer_each_add_their_step():
    server = ServerOptimizer(RuleSpec.parse("sgd(0.1, momentum=0.9)"), VARIABLES, "float32", shared=True)
    parameters = start()
    for gradient in gradients():
        server.apply(gradient, parameters)
    np.testing.assert_allclose(
        parameters, in_one_process(keras.optimizers.SGD(0.1, momentum=0.9)), rtol=1e-4, atol=1e-5
    )
