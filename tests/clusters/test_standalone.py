"""A fit on a real standalone Spark, and what is left of it when its executors or its driver are killed."""

import signal
import sys

import numpy as np
import pytest

from tests.clusters import processes
from tests.clusters.drivers import ENDS, Driver
from tests.clusters.fit_spec import FitSpec
from tests.clusters.hosts import on_loopback
from tests.clusters.standalone import StandaloneCluster

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are found through /proc"),
]

PATIENCE = 120.0
PARAMS = {"epochs": 6, "batchSize": 32}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with StandaloneCluster(tmp_path_factory.mktemp("cluster"), on_loopback(2)) as started:
        yield started
    assert not processes.marked(started.mark)


@pytest.fixture(scope="module")
def driver(cluster):
    """One driver for the fits that do not end it."""
    with Driver(cluster) as started:
        yield started
    assert_nothing_left(cluster)


@pytest.fixture(scope="module")
def everywhere(cluster):
    """A driver that listens everywhere, whose executors may be told to leave; its second test ends it."""
    settings = {"spark.driver.bindAddress": "0.0.0.0", "spark.decommission.enabled": "true"}
    with Driver(cluster, "everywhere", settings) as started:
        yield started


@pytest.fixture(scope="module")
def undisturbed(cluster, driver):
    driver.fit(FitSpec("undisturbed", shuffled=True, params=PARAMS, hold_at=1))
    driver.wait_for("lap", fit="undisturbed", epoch=1, patience=PATIENCE)
    ranks = [cluster.worker(rank) for rank in (0, 1)]
    hosts = {cluster.host_of(cluster.executor_of(each)).address for each in ranks}
    driver.go_on()
    return ended(driver, "undisturbed"), hosts


def ended(driver, name):
    return driver.wait_for(*ENDS, fit=name, patience=PATIENCE)


def assert_nothing_left(cluster, but=()):
    # Asked again and again: a process that ends may start another to tidy up behind it.
    for _ in processes.ticks(30.0):
        left = [each for each in cluster.members() if each not in but]
        if not left:
            break
    assert left == []
    assert list(cluster.temporary.glob("keraunos*")) == []


def assert_same_weights(event, other):
    found, expected = (np.load(each["parameters"]) for each in (event, other))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_two_workers_on_two_hosts_train(undisturbed):
    event, hosts = undisturbed
    assert event["event"] == "finished"
    assert event["accuracy"] > 0.8
    assert hosts == {"127.0.0.2", "127.0.0.3"}


def test_a_killed_executor_costs_nothing_but_time(cluster, driver, undisturbed):
    # Its shuffled rows are lost with it, and there is no slot to spare.
    driver.fit(FitSpec("killed", shuffled=True, params=PARAMS, hold_at=2))
    driver.wait_for("lap", fit="killed", epoch=2, patience=PATIENCE)
    worker = cluster.worker(1)
    executor = cluster.executor_of(worker)
    executor.send(signal.SIGKILL)
    # The worker outlives its executor, and may well train to the end before Spark has another.
    worker.send(signal.SIGKILL)
    assert processes.await_gone([executor, worker], 10.0) == []
    driver.go_on()
    event = ended(driver, "killed")
    assert event["event"] == "finished", event
    assert len(driver.told("ready", fit="killed", rank=1)) == 2
    assert_same_weights(event, undisturbed[0])


@pytest.mark.parametrize("choice", ["continue", "stop"])
def test_a_worker_that_stays_silent_is_left_out_or_ends_the_fit(cluster, driver, undisturbed, choice):
    rows = {str(each["rank"]): each["rows"] for each in driver.told("ready", fit="undisturbed")}
    name = f"silent-{choice}"
    params = {**PARAMS, "workerPatience": 5.0, "onWorkerLost": choice}
    driver.fit(FitSpec(name, shuffled=True, params=params, slots=2, hold_at=2))
    driver.wait_for("lap", fit=name, epoch=2, patience=PATIENCE)
    silent = cluster.worker(1)
    silent.send(signal.SIGSTOP)
    driver.go_on()
    event = ended(driver, name)
    if choice == "stop":
        assert (event["event"], event["error"]) == ("refused", "WorkerError"), event
        assert "nothing was heard from it" in event["message"]
    else:
        assert event["event"] == "finished", event
        assert event["contributed"]["0"] == PARAMS["epochs"] * rows["0"]
        assert 0 < event["lost"] == PARAMS["epochs"] * rows["1"] - event["contributed"]["1"]
        assert event["epochs"] == PARAMS["epochs"]
    # Spark ends what it cannot cancel.
    assert processes.await_gone([silent], 30.0) == []


def test_a_driver_that_stood_still_for_too_long_is_named(cluster, driver, undisturbed):
    """Nobody has the weights of `allreduce` when all workers have ended; they did so because the driver was silent."""
    params = {**PARAMS, "driverPatience": 5.0}
    driver.fit(FitSpec("still", shuffled=True, params=params, slots=2, hold_at=2))
    driver.wait_for("lap", fit="still", epoch=2, patience=PATIENCE)
    ranks = [cluster.worker(rank) for rank in (0, 1)]
    driver.process.send(signal.SIGSTOP)
    try:
        named = [each.name for each in ranks]
        processes.until(
            lambda: not any(each.lives and processes.Process.of(each.pid).name in named for each in ranks),
            60.0,
            "the end of workers that nobody speaks to",
        )
    finally:
        driver.process.send(signal.SIGCONT)
    driver.go_on()
    event = ended(driver, "still")
    assert event["event"] == "refused", event
    assert "no live worker has the weights" in event["message"]
    assert "Nothing was heard from the driver at " in event["message"]
    assert "(driverPatience)" in event["message"]
    assert event["left"] == []


def test_a_spark_that_is_stopped_during_a_fit_ends_it_with_a_clear_error(cluster, driver, undisturbed):
    driver.fit(FitSpec("stopped", params={**PARAMS, "epochs": 10_000}, stop_at=1))
    event = ended(driver, "stopped")
    assert event["event"] == "refused", event
    assert event["error"] == "ClusterError"
    assert "SparkContext was stopped while a fit ran" in event["message"]
    assert driver.leave(30.0) == 0
    assert_nothing_left(cluster)


def test_a_driver_that_listens_everywhere_is_reached_at_its_own_address(undisturbed, everywhere):
    everywhere.fit(FitSpec("everywhere", shuffled=True, params=PARAMS))
    event = ended(everywhere, "everywhere")
    assert event["event"] == "finished", event
    assert_same_weights(event, undisturbed[0])


def test_an_executor_that_is_decommissioned_finishes_its_work(cluster, undisturbed, everywhere):
    everywhere.fit(FitSpec("drained", shuffled=True, params=PARAMS, slots=2, hold_at=2))
    everywhere.wait_for("lap", fit="drained", epoch=2, patience=PATIENCE)
    drained = cluster.executor_of(cluster.worker(1))
    drained.send(signal.SIGPWR)
    everywhere.go_on()
    event = ended(everywhere, "drained")
    assert event["event"] == "finished", event
    assert len(everywhere.told("ready", fit="drained", rank=1)) == 1
    assert_same_weights(event, undisturbed[0])
    # It goes when it has nothing left to do, and the next fit has another.
    assert processes.await_gone([drained], 30.0) == []
    everywhere.fit(FitSpec("next", params={**PARAMS, "epochs": 1}, slots=2))
    assert ended(everywhere, "next")["event"] == "finished"
    assert everywhere.leave(30.0) == 0
    assert_nothing_left(cluster)


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGKILL, id="killed"),
        pytest.param(signal.SIGTERM, id="terminated", marks=pytest.mark.extended),
    ],
)
def test_a_driver_that_is_ended_leaves_nothing_behind(cluster, number):
    others = cluster.members()
    with Driver(cluster, f"driver-{number.name}") as ending:
        ending.fit(FitSpec(number.name, params={**PARAMS, "epochs": 10_000}))
        ending.wait_for("lap", fit=number.name, epoch=1, patience=PATIENCE)
        ending.process.send(number)
        assert ending.wait(30.0) == -number
        assert_nothing_left(cluster, but=others)
