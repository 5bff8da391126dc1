"""A fit that is saved as it goes, also as a program to kill: `python -m tests.launch.saved_fit FOLDER [EPOCHS] [asks]`.

With `asks` it goes on after a lap when it is sent a line.
"""

import sys

import keras
import numpy as np

from keraunos.job.saving import Checkpoints, SaveEvery
from keraunos.launch import local
from keraunos.launch.hooks import Hooks
from tests.conformance import engine

ROWS = (130, 90)
EPOCHS = 4
LONG = 150


def job(exchange="allreduce", servers="driver", epochs=EPOCHS, **schedule):
    """A job with dropout and batch statistics: everything that has a state of its own."""
    keras.utils.set_random_seed(3)
    layers = keras.layers
    model = keras.Sequential(
        [keras.Input((6,)), layers.Dense(8), layers.Dropout(0.3), layers.BatchNormalization(), layers.Dense(1)]
    )
    model.compile(keras.optimizers.Adam(0.01), "mse")
    return engine.job_of(model, 2, exchange=exchange, servers=servers, epochs=epochs, **{"batch_size": 10} | schedule)


def rows(seed=0):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(sum(ROWS), 6)).astype(np.float32)
    y = (x @ np.arange(6.0) + 1)[:, None].astype(np.float32)
    return engine.partitions(engine.table(x=x, y=y), list(ROWS))


class TellLaps(Hooks):
    """Prints a line at every lap, so that somebody knows when to kill this program, and may ask for one."""

    def __init__(self, *, asks):
        self._asks = asks

    def end_lap(self, lap):
        print("lap", lap.epoch, flush=True)
        if self._asks:
            sys.stdin.readline()
        return False


def main(folder, epochs=LONG, asks=""):
    checkpoints, hooks = Checkpoints(folder, SaveEvery.of("4 rounds")), [TellLaps(asks=bool(asks))]
    result = local.fit(job(epochs=int(epochs)), rows(), checkpoints=checkpoints, hooks=hooks, verbose=0)
    np.save(f"{folder}.npy", result.parameters)
    print("contributed", sorted(result.contributed.items()), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
