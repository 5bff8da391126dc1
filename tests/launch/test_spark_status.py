"""What Spark says of a fit's tasks while workers have not come."""

import pytest

from keraunos.launch import follow
from keraunos.launch import spark as launch
from keraunos.session.registry import session_of
from tests.clusters.processes import until
from tests.launch.test_spark import frame, job

pytestmark = pytest.mark.spark


def test_workers_whose_rows_take_long_to_compute_are_waited_for(spark, monkeypatch, tmp_path):
    begun, gate = tmp_path / "begun", tmp_path / "gate"
    answers = []
    asked = launch.SparkJobs.preparing

    def rows_behind_a_gate(batches):
        import threading

        begun.touch()
        while not gate.exists():
            threading.Event().wait(0.05)
        yield from batches

    def preparing(self, seconds):
        if not begun.exists():
            return True
        # Spark's store hears of a task a moment after it began.
        answers.append(until(lambda: asked(self, seconds), 60, "Spark's word that it computes rows"))
        # The time for workers to come is over; from now on they have as long as ever.
        monkeypatch.setattr(follow, "JOIN_SECONDS", 120.0)
        gate.touch()
        return answers[-1]

    monkeypatch.setattr(follow, "JOIN_SECONDS", 1.0)
    monkeypatch.setattr(launch.SparkJobs, "preparing", preparing)
    with launch.worker_environment(session_of(spark), "jax"):
        table = frame(spark)
        slow = table.mapInArrow(rows_behind_a_gate, table.schema).repartition(2)
    result = launch.fit(job(workers=2), slow, verbose=0)
    assert len(result.history["loss"]) == 1
    assert answers[0] is True


def test_a_stage_that_has_ended_unheard_is_no_reason_to_give_up(spark, monkeypatch):
    said = [False, True, False, False]
    session = session_of(spark)
    monkeypatch.setattr(session, "computes_rows", lambda *_: said.pop(0))
    jobs = launch.SparkJobs(session, 2)
    assert [jobs.preparing(60.0) for _ in range(3)] == [False, True, True]
    monkeypatch.setattr(launch, "_STATUS_SECONDS", 0.0)
    assert not jobs.preparing(60.0)
