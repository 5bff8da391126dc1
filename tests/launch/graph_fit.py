"""A graph trained on Spark beside one session; run in a process of its own where `test_graph_cores.py` needs one."""

import json
import sys

import numpy as np

from keraunos.job.exchange_plan import ExchangePlan
from keraunos.launch import spark as launch
from keraunos.learners.graph_archive import GraphArchive
from keraunos.testing.learner_batches import FEATURES
from tests.conformance import engine, graph_models


def difference(spark, workers):
    """How far the weights are from those of one session that was fed the same global batches."""
    random = np.random.default_rng(0)
    x = random.normal(size=(60, FEATURES)).astype("float32")
    y = (x[:, 0] > 0).astype("int64")
    model = graph_models.dense("sgd")
    source = model.source(train_op=None, gradients=None, variables=None)
    plan = ExchangePlan("gradients", 1, "synchronous", "sgd(learning_rate=0.1)")
    job = engine.job_of(source, workers, exchange=plan, batch_size=8, epochs=3)
    records = spark.sparkContext.parallelize(list(zip(x, y, strict=True)), workers)
    trained = GraphArchive.from_bytes(launch.fit(job, records, verbose=0).archive).vector()
    parts = engine.partitions(engine.table(x=x, y=y), [60 // workers] * workers)
    for inputs, targets, _ in engine.global_batches(job, parts):
        model.train_on_batch(inputs, targets)
    return float(np.linalg.norm(trained - model.read()) / np.linalg.norm(model.read()))


def main(asked):
    """For each master, with the cores of a task and the number of workers, how far the weights are off."""
    from tests.launch.cluster_fit import start

    found = {}
    for master, task_cpus, workers in asked:
        spark = start(master, **{"spark.task.cpus": task_cpus, "spark.executor.cores": task_cpus})
        found[master] = difference(spark, workers)
        spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
