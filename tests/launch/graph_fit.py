"""A graph trained on executors of so many cores, run in a process of its own by `test_graph_cores.py`."""

import json
import sys

import numpy as np

from keraunos.job.exchange_plan import ExchangePlan
from keraunos.launch import spark as launch
from keraunos.learners.graph_archive import GraphArchive
from tests.conformance import engine, graph_models
from tests.conformance.learner_models import FEATURES
from tests.launch.cluster_fit import start


def main(master, cores, task_cpus, workers):
    """Train; print how far the weights are from those of one session that was fed the same global batches."""
    spark = start(master, **{"spark.executor.cores": cores, "spark.task.cpus": task_cpus})
    random = np.random.default_rng(0)
    x = random.normal(size=(60, FEATURES)).astype("float32")
    y = (x[:, 0] > 0).astype("int64")
    model = graph_models.dense("sgd")
    source = model.source(train_op=None, gradients=None, variables=None)
    plan = ExchangePlan("gradients", 1, "synchronous", "sgd(learning_rate=0.1)")
    job = engine.job_of(source, int(workers), exchange=plan, batch_size=8, epochs=3)
    records = spark.sparkContext.parallelize(list(zip(x, y, strict=True)), int(workers))
    parts = engine.partitions(engine.table(x=x, y=y), [60 // int(workers)] * int(workers))
    trained = GraphArchive.from_bytes(launch.fit(job, records, verbose=0).archive).vector()
    for inputs, targets, _ in engine.global_batches(job, parts):
        model.train_on_batch(inputs, targets)
    difference = np.linalg.norm(trained - model.read()) / np.linalg.norm(model.read())
    spark.stop()
    print(json.dumps({"difference": float(difference)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
