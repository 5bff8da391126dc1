"""A worker that trains a graph is killed and started again: it takes up the graph's own optimizer where it stood."""

import numpy as np

from keraunos.launch import local
from keraunos.learners.graph_archive import GraphArchive
from keraunos.testing.learner_batches import FEATURES
from tests.conformance import engine, graph_models
from tests.launch import test_return
from tests.launch.test_return import KillAtLap

processes = test_return.processes


class Latest:
    """The processes of the fit that was begun last."""

    def __init__(self, made):
        self._made = made

    def kill(self, member):
        self._made[-1].kill(member)


def test_a_lost_worker_continues_to_the_same_bits(processes):
    random = np.random.default_rng(0)
    x = random.normal(size=(120, FEATURES)).astype("float32")
    parts = engine.partitions(engine.table(x=x, y=(x[:, 0] > 0).astype("int64")), [60, 60])
    source = graph_models.dense("adam").source()
    job = engine.job_of(source, 2, batch_size=10, epochs=3, lap=4)
    undisturbed = engine.fitted(job, parts)
    hooks = KillAtLap(Latest(processes), 1, 8, asks_after=True)
    disturbed = local.fit(job, parts, hooks=[hooks], verbose=0, max_failures=2)
    vectors = [GraphArchive.from_bytes(result.archive).vector() for result in (undisturbed, disturbed)]
    np.testing.assert_array_equal(*vectors)
    assert not np.array_equal(vectors[0], GraphArchive.from_bytes(source.archive).vector())
    assert processes[-1]._failures[1] == 1
