"""What lives long is not looked at after each task, and what has become garbage is collected after all."""

import gc
import os
import socket
import subprocess
import sys
import uuid
import weakref

import pytest

from keraunos.learners.between_tasks import MOST_TASKS, Frozen, acknowledge_at_once, resident_bytes


class Cyclic:
    """Only a collection finds that nobody holds it."""

    def __init__(self):
        self.itself = self


@pytest.fixture(autouse=True)
def thawed():
    gc.disable()  # collections come only where the tests say
    yield
    gc.enable()
    gc.unfreeze()


def after_a_task(frozen):
    frozen.begin()
    gc.collect()
    frozen.end()


def dropped(frozen):
    """A cycle that was alive after a task, and is garbage now."""
    kept = Cyclic()
    after_a_task(frozen)
    seen = weakref.ref(kept)
    del kept
    after_a_task(frozen)
    return seen


def test_the_collection_when_a_worker_ends_is_let_be():
    program = "from keraunos.learners.between_tasks import keep_cheap; keep_cheap()"
    worker = os.environ | {"SPARK_REUSE_WORKER": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=worker, capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_what_is_alive_is_frozen_and_garbage_is_collected_some_tasks_later():
    frozen = Frozen(lambda: 0)
    seen = dropped(frozen)
    assert gc.get_freeze_count() > 1000
    assert seen() is not None
    after = 0
    while seen() is not None:
        after_a_task(frozen)
        after += 1
        assert after <= MOST_TASKS
    assert after > 1


def test_garbage_is_collected_at_once_where_something_was_given_up_or_the_process_has_grown():
    resident = [1 << 30]
    frozen = Frozen(lambda: resident[0])
    after_a_task(frozen)
    for happens in (frozen.look_at_all, lambda: resident.append(resident.pop() + (200 << 20))):
        seen = dropped(frozen)
        assert seen() is not None
        happens()
        after_a_task(frozen)
        assert seen() is None


def test_a_cycle_that_a_task_has_dropped_is_not_frozen():
    seen = weakref.ref(Cyclic())
    after_a_task(Frozen(lambda: 0))
    assert seen() is None


def test_a_process_knows_its_memory():
    before = resident_bytes()
    held = bytes(bytearray(b"1") * (64 << 20))
    assert resident_bytes() - before > len(held) // 2


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="only Linux can be told to acknowledge at once")
def test_a_connection_acknowledges_at_once_again():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
        acknowledge_at_once(connection)
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK) == 1


def test_a_connection_without_acknowledgements_is_let_be():
    one, other = socket.socketpair()
    with one, other:
        acknowledge_at_once(one)
    acknowledge_at_once(None)


@pytest.mark.spark
@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="only Linux can be told to acknowledge at once")
def test_a_worker_awaits_its_next_task_so(spark):
    def asked(records):
        import gc
        import sys

        from keraunos.learners.between_tasks import keep_cheap

        keep_cheap()
        frame = sys._getframe()
        while frame.f_code.co_name != "manager":
            frame = frame.f_back
        seen = sys.__dict__.setdefault("acknowledgements_seen_by_a_test", [])

        def look(phase, info):
            if phase == "stop" and info["generation"] == 2:
                seen.append(frame.f_locals["sock"].getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK))

        list(records)  # Spark does not use a worker again that has left some
        yield list(seen)
        if not seen:
            frame.f_locals["sock"].setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
            gc.callbacks.append(look)

    context = spark.sparkContext
    context.environment["KERAUNOS_TEST"] = uuid.uuid4().hex
    try:
        tasks = [context.parallelize([0], 1).mapPartitions(asked) for _ in range(2)]
        found = [task.collect()[0] for task in tasks]
    finally:
        del context.environment["KERAUNOS_TEST"]
    assert found[0] == []
    assert found[1][-1] == 1


@pytest.mark.spark
def test_a_workers_replaced_models_are_given_back(spark):
    import keras

    from keraunos.job.training_job import ModelSource
    from keraunos.learners.keras_archive import to_archive

    backend = keras.config.backend()
    archive = to_archive(keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)]))

    def serve(key):
        import sys

        from keraunos.worker.served_models import served_model

        learner = served_model(key, lambda: ModelSource(archive=archive, backend=backend, floatx="float32"))
        learner.cycle = learner
        seen = sys.__dict__.setdefault("models_seen_by_a_test", {})
        seen.setdefault(key, weakref.ref(learner))
        yield gc.get_freeze_count(), sorted(name for name, each in seen.items() if each() is not None)

    context = spark.sparkContext
    # A worker of its own, and the same one for each task.
    context.environment["KERAUNOS_TEST"] = uuid.uuid4().hex
    try:
        tasks = [context.parallelize([key], 1).mapPartitions(lambda keys: serve(*keys)) for key in "abcdd"]
        found = [task.collect()[0] for task in tasks]
    finally:
        del context.environment["KERAUNOS_TEST"]
    assert [alive for _, alive in found[:3]] == [["a"], ["a", "b"], ["a", "b", "c"]]
    # It is after the task in which a model is replaced that it goes.
    assert found[4][1] == ["b", "c", "d"]
    assert found[0][0] == 0
    assert all(count > 10_000 for count, _ in found[1:])
