"""How far a distributed fit is from one process: weights, metrics, rows.

    KERAS_BACKEND=jax python benchmarks/exactness.py        (or tensorflow, or torch)

Real server, sockets and worker loop; the judge is plain Keras in one process, fed the same global batches.
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "jax")
sys.path.insert(0, str(Path(__file__).parents[1]))

import keras
import numpy as np

from tests.conformance import engine, engine_suite
from tests.conformance import learner_models as models

CASES = [
    ("SGD", engine_suite.dense_sgd, engine_suite.digits, {}, 1e-4),
    ("Adam", engine_suite.dense_adam, engine_suite.digits, {}, 1e-3),
    (
        "weights x class weights",
        engine_suite.dense_sgd,
        engine_suite.digits,
        {"weight": "weight", "class_weight": {1: 3.0}},
        1e-4,
    ),
    ("masked", engine_suite.masked, engine_suite.sequences, {}, 1e-4),
    ("sum loss", engine_suite.summed, engine_suite.digits, {}, 1e-4),
]


def equality():
    print(f"relative L2 difference of the weights after at least 50 steps of allreduce, on {keras.config.backend()}")
    for name, make, rows, options, limit in CASES:
        figures = []
        for workers, sizes in engine_suite.UNEVEN.items():
            parts = engine.partitions(rows(), sizes)
            epochs = -(-50 // -(-max(sizes) // 8))
            job = engine.job_of(make(), workers, batch_size=8, epochs=epochs, seed=3, **options)
            trained, _ = engine.train(job, parts)
            figures.append(f"{workers} workers {engine.difference(trained, engine.plain_keras(job, parts)):.1e}")
        print(f"  {name:<24} {'   '.join(figures)}   (limit {limit:.0e})")


def repeatability():
    job = engine.job_of(models.dense("adam"), 2, batch_size=8, epochs=3, seed=5)
    parts = engine.partitions(engine_suite.digits(), [97, 33])
    shuffled = [part.take(np.random.default_rng(2).permutation(part.num_rows)) for part in parts]
    (first, _), (second, _) = engine.train(job, parts), engine.train(job, shuffled)
    print(f"two runs, rows arriving in another order: difference {engine.difference(first, second)}")


def metrics():
    random = np.random.default_rng(0)
    x = random.normal(size=(300, models.FEATURES)).astype("float32")
    y = (x.sum(axis=1) + random.normal(size=300) > 0).astype("int64")
    held_out = np.arange(300) % 3 == 0
    job = engine.job_of(models.binary(), 3, validation="held_out", batch_size=16, epochs=2)
    trained, history = engine.train(job, engine.partitions(engine.table(x=x, y=y, held_out=held_out), [150, 50, 100]))
    alone = trained.evaluate(x[held_out], y[held_out], batch_size=300, verbose=0, return_dict=True)
    for name in ("accuracy", "auc"):
        print(f"{name} over 3 workers {history[f'val_{name}'][-1]:.7f}, in one process {alone[name]:.7f}")


def rows():
    sizes = [0, 1, 7, 1000]
    job = engine.job_of(engine_suite.counting_model(), 4, batch_size=32, epochs=2)
    _, history = engine.train(job, engine.partitions(engine_suite.digits(sum(sizes)), sizes))
    print(f"rows seen in each epoch with partitions {sizes} and batch 32: {[int(each) for each in history['counted']]}")


if __name__ == "__main__":
    equality()
    repeatability()
    metrics()
    rows()
