"""Whole trainings through the engine: trainers, local steps, servers."""

import keras
import numpy as np
import pytest

from keraunos.compat.paddle.model_config import OptimizationConfig
from keraunos.compat.paddle.updates.plan import optimizer_of, plan_of
from keraunos.launch import local
from keraunos.learners.keras_archive import from_archive, to_archive
from keraunos.learners.keras_variables import read_vector
from tests.compat.paddle.updates.reference import Reference, parameter
from tests.conformance import engine

# Keras calls a dense layer's variables so; they stand for a configuration's parameters.
PARAMETERS = [
    parameter("kernel", 6, learning_rate=0.5, momentum=0.9, decay_rate=0.1),
    parameter("bias", 2, learning_rate=2.0, momentum=0.9),
]
close = {"rtol": 1e-4, "atol": 1e-5}
TOTAL = 16
STEPS = 12


def rows(count=TOTAL):
    x = np.random.default_rng(0).normal(size=(count, 3)).astype("float32")
    return engine.table(x=x, y=(x @ [[1.0, 0.5], [0.0, -1.0], [2.0, 0.0]]).astype("float32"))


def settings(trainers, **more):
    usual = {"algorithm": "sgd", "learning_rate": 0.005, "learning_rate_schedule": "exp"}
    decay = {"learning_rate_decay_a": 0.5, "learning_rate_decay_b": 100.0}
    return OptimizationConfig(**{"batch_size": TOTAL // trainers, **usual, **decay, **more})


def network(opt, trainers):
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, name="fc")])
    squares = keras.losses.MeanSquaredError(reduction="sum")
    model.compile(optimizer=optimizer_of(opt, PARAMETERS, trainers), loss=squares)
    return model


def job(trainers, *, servers="driver", epochs=STEPS, **more):
    opt = settings(trainers, **more)
    plan = plan_of(opt, PARAMETERS, trainers, samples_per_pass=6 * TOTAL)
    schedule = {"batch_size": opt.batch_size, "epochs": epochs}
    return engine.job_of(network(opt, trainers), trainers, exchange=plan, servers=servers, **schedule)


def dealt(table, trainers):
    return engine.partitions(table, [table.num_rows // trainers] * trainers)


def trained(trainers, **more):
    """The weights after some steps, each with all rows."""
    return read_vector(engine.train(job(trainers, **more), dealt(rows(), trainers))[0])


def by_hand():
    """The same training in double precision: gradients of the summed error, by Paddle's formula."""
    opt = settings(1)
    values = (np.float64(each) for each in network(opt, 1).get_weights())
    kernel, bias = (Reference(opt, own, value) for own, value in zip(PARAMETERS, values, strict=True))
    table = rows()
    x, y = (np.array(table[name].to_pylist()) for name in ("x", "y"))
    for _ in range(STEPS):
        error = x @ kernel.w + bias.w - y
        kernel.step(x.T @ error, TOTAL)
        bias.step(error.sum(axis=0), TOTAL)
    return np.concatenate([kernel.w.ravel(), bias.w])


@pytest.mark.parametrize("trainers", [1, 2, 4])
def test_any_number_of_trainers_at_one_global_batch_gives_paddles_weights(trainers):
    np.testing.assert_allclose(trained(trainers), by_hand(), **close)


def test_servers_of_their_own_give_the_same_weights():
    np.testing.assert_allclose(trained(2, servers=2), by_hand(), **close)


def test_fresh_processes_find_the_rule_and_the_optimizer():
    result = local.fit(job(2, servers=1, epochs=STEPS), dealt(rows(), 2), verbose=0)
    np.testing.assert_allclose(read_vector(from_archive(result.archive)), by_hand(), **close)


def test_local_steps_of_one_trainer_are_steps():
    np.testing.assert_allclose(trained(1, num_batches_per_send_parameter=3), by_hand(), **close)


@pytest.mark.parametrize("method", ["momentum", "rmsprop", "adam"])
def test_the_optimizer_alone_trains_on_global_batches_as_the_servers_do(method):
    told, parts = job(2, epochs=2, learning_method=method), dealt(rows(6 * TOTAL), 2)
    model, _ = engine.train(told, parts)
    np.testing.assert_allclose(read_vector(model), read_vector(engine.plain_keras(told, parts)), rtol=1e-3, atol=1e-4)


LEARNS = {
    # Late gradients and momentum together bear less of a rate.
    "asynchronous": {"algorithm": "async_sgd", "learning_rate": 0.001},
    "local steps": {"num_batches_per_send_parameter": 3},
    "local steps, asynchronous": {"num_batches_per_send_parameter": 3, "algorithm": "async_sgd"},
    "elastic": {"num_batches_per_send_parameter": 3, "center_parameter_update_method": "elastic_average"},
    "averaged": {"average_window": 0.5, "max_average_window": 4},
}


@pytest.mark.parametrize("more", LEARNS.values(), ids=LEARNS)
def test_two_trainers_learn(more):
    table = rows(6 * TOTAL)
    model, _ = engine.train(job(2, epochs=20, learning_rate_decay_b=10_000.0, **more), dealt(table, 2))
    x, y = (np.array(table[name].to_pylist(), "float32") for name in ("x", "y"))
    error = np.mean((model.predict(x, verbose=0) - y) ** 2)
    assert error < 0.1 * np.mean((network(settings(1), 1).predict(x, verbose=0) - y) ** 2)


def test_an_archive_gives_the_optimizer_back():
    opt = settings(2, learning_method="rmsprop")
    model = network(opt, 2)
    x, y = np.ones((4, 3), "float32"), np.ones((4, 2), "float32")
    model.train_on_batch(x, y)
    again = from_archive(to_archive(model))
    assert again.optimizer.get_config() == model.optimizer.get_config()
    for each in (model, again):
        each.train_on_batch(x, y)
    np.testing.assert_array_equal(read_vector(again), read_vector(model))


def test_gradients_of_some_rows_only_move_as_dense_ones_do():
    opt = settings(1, learning_method="adagrad")
    words = keras.Sequential([keras.Input((2,), dtype="int32"), keras.layers.Embedding(5, 3), keras.layers.Flatten()])
    words.compile(optimizer=optimizer_of(opt, [parameter("embeddings", 15)], 1),
                  loss=keras.losses.MeanSquaredError(reduction="sum"))  # fmt: skip
    before = words.get_weights()[0]
    words.train_on_batch(np.array([[0, 1]]), np.zeros((1, 6), "float32"))
    gradient = np.zeros((5, 3))
    gradient[:2] = before[:2] * 2 / 6
    expected = Reference(opt, parameter("embeddings"), before).step(gradient, 1)
    np.testing.assert_allclose(words.get_weights()[0], expected, rtol=1e-4, atol=1e-6)
