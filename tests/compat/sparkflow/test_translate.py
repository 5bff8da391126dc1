"""SparkFlow's arguments as a training job, as a table."""

import numpy as np
import pytest

from keraunos.compat.sparkflow.losses import IterationLosses
from keraunos.compat.sparkflow.optimizers import rule_of
from keraunos.compat.sparkflow.tensorflow_async import SparkAsyncDL
from keraunos.compat.sparkflow.translate import (
    Training,
    address_of,
    check_supervision,
    plan_of,
    schedule_of,
    workers_of,
)
from keraunos.errors import JobError
from keraunos.job.schedule import Schedule

DEFAULTS = {
    "inputCol": "transformed", "tensorflowGraph": "", "tfInput": "x:0", "tfLabel": None, "tfOutput": "out/Sigmoid:0",
    "tfOptimizer": "adam", "tfLearningRate": 0.01, "iters": 1000, "predictionCol": "predicted", "partitions": 5,
    "miniBatchSize": 128, "miniStochasticIters": -1, "acquireLock": False, "shufflePerIter": True, "tfDropout": None,
    "toKeepDropout": False, "verbose": 0, "labelCol": None, "partitionShuffles": 1, "optimizerOptions": None,
    "port": 5000,
}  # fmt: skip


def training(**arguments):
    return Training(**{"graph": "{}", "tf_input": "x:0", "tf_label": "y:0", "rule": rule_of("adam"), **arguments})


def test_every_param_has_sparkflows_default_and_a_text():
    estimator = SparkAsyncDL()
    assert {param.name: estimator.getOrDefault(param) for param in estimator.params} == DEFAULTS
    assert all(len(param.doc) > 20 for param in estimator.params)


def test_every_getter():
    estimator = SparkAsyncDL()
    getters = {
        f"get{name[0].upper()}{name[1:]}": value for name, value in DEFAULTS.items() if name != "acquireLock"
    } | {"getAqcuireLock": False, "getAcquireLock": False}
    assert {name: getattr(estimator, name)() for name in getters} == getters


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("iters", 0),
        ("iters", "10"),
        ("partitions", 0),
        ("partitionShuffles", 0),
        ("miniBatchSize", 1.5),
        ("tfLearningRate", 0),
        ("acquireLock", "yes"),
        ("verbose", -1),
        ("port", 70000),
        ("tfInput", ""),
        ("tfOptimizer", "adamw"),
        ("optimizerOptions", "{'learning_rate': 1}"),
        ("tensorflowGraph", 3),
        ("labelCol", 3),
    ],
)
def test_a_value_that_is_wrong_is_refused_where_it_is_set(name, value):
    with pytest.raises(JobError, match=f"`{name}` must be"):
        SparkAsyncDL(**{name: value})


def test_a_param_that_does_not_exist_is_refused():
    with pytest.raises(TypeError, match=r"no Param 'iterations'"):
        SparkAsyncDL(iterations=3)


def test_the_name_of_an_operation_stands_for_its_tensor():
    assert SparkAsyncDL(tfInput="x").getTfInput() == "x:0"


@pytest.mark.parametrize(
    ("acquire_lock", "use_locking", "meet"),
    [(False, False, "hogwild"), (True, False, "asynchronous"), (False, True, "asynchronous")],
)
def test_the_plan(acquire_lock, use_locking, meet):
    rule = rule_of("momentum", 0.1, {"use_locking": use_locking})
    plan = plan_of(training(rule=rule, acquire_lock=acquire_lock))
    assert (plan.send, plan.every, plan.meet, plan.rule) == ("gradients", 1, meet, rule)


@pytest.mark.parametrize(
    ("arguments", "rows", "steps", "most"),
    [
        ({"mini_batch": 128}, 1000, 8, 128),
        ({"mini_batch": 3}, 10, 3, 4),
        ({"mini_batch": 128}, 100, 1, 100),
        ({"mini_batch": -1}, 1000, 1, 1000),
        ({"mini_batch": 0}, 1000, 1, 1000),
        ({"mini_batch": 50, "mini_stochastic_iters": 4}, 1000, 4, 50),
        ({"mini_batch": -1, "mini_stochastic_iters": 2}, 1000, 2, 1000),
    ],
)
def test_the_schedule(arguments, rows, steps, most):
    schedule = schedule_of(training(iters=7, shuffle=False, **arguments), turn=2)
    assert (schedule.epochs, schedule.shuffle, schedule.seed) == (7, False, 2)
    assert schedule.steps_of(rows, 0, 2) == steps
    assert schedule.rows_of(rows, 0, 2) >= min(rows, most)


@pytest.mark.parametrize(
    ("asked", "partitions", "slots", "expected"), [(5, 2, 8, 2), (2, 5, 8, 2), (5, 5, 1, 1), (4, None, 8, 4)]
)
def test_workers_are_no_more_than_partitions_and_slots(asked, partitions, slots, expected):
    assert workers_of(asked, partitions, slots) == expected


@pytest.mark.parametrize(
    ("master_url", "port", "expected"),
    [
        (None, None, (None, (5000, 5099))),
        (None, 3000, (None, (3000, 3000))),
        ("localhost:5001", None, ("localhost", (5001, 5001))),
        ("10.0.0.1:3000", 3000, ("10.0.0.1", (3000, 3000))),
    ],
)
def test_the_address(master_url, port, expected):
    assert address_of(master_url, port) == expected


@pytest.mark.parametrize(("master_url", "port"), [("localhost", None), ("localhost:x", None), ("localhost:1", 2)])
def test_an_address_that_is_none(master_url, port):
    with pytest.raises(JobError, match="`master_url`"):
        address_of(master_url, port)


def test_a_label_on_one_side_only_is_refused():
    check_supervision({"labelCol": None, "tfLabel": None})
    with pytest.raises(JobError, match=r"`tfLabel` and `labelCol` must be set together.*tfLabel='y:0' alone"):
        check_supervision({"labelCol": None, "tfLabel": "y:0"})


def test_losses_are_told_by_iteration_and_partition_each_once():
    told = []
    hook = IterationLosses(Schedule(epochs=3, batch_size=4, remainder="join"), 2, [lambda *each: told.append(each)])
    hook.on_ready(1, 10)
    hook.on_losses(1, 0, np.array([1.0, 2.0]), np.array([4.0, 4.0]))
    assert told == []
    hook.on_losses(1, 2, np.array([4.0, 1.0]), np.array([2.0, 4.0]))
    assert told == [(2.0, 0, 1)]
    # Lost, and back where its last round was.
    hook.on_ready(1, 10)
    hook.on_losses(1, 0, np.array([9.0, 9.0, 9.0]), np.array([4.0, 4.0, 2.0]))
    hook.on_losses(1, 3, np.array([1.0, 1.0, 1.0]), np.array([4.0, 4.0, 2.0]))
    assert told == [(2.0, 0, 1), (1.0, 1, 1)]


@pytest.mark.parametrize(("given", "told"), [({}, 1), ({"mini_batch": -1}, 0), ({"shuffle": True}, 0)])
def test_rows_that_are_not_shuffled_are_not_said_to_keep_their_order(caplog, given, told):
    training = Training(
        **{"graph": "", "tf_input": "x:0", "tf_label": None, "rule": rule_of("adam"), "shuffle": False, **given}
    )
    schedule_of(training)
    schedule_of(training, turn=1)
    assert caplog.text.count("is not that of the partition") == told
