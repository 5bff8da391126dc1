"""One training step of a network in the language, on this process's backend: its parameters before and after.

    python lowered_step.py NETWORK ARGUMENTS FILE

FILE is an .npz of the parameters to start from, if there is one; what they are after the step is written to FILE.after.
"""

import sys
from pathlib import Path

import numpy as np

from keraunos.compat.paddle.config_parser import parse_config
from keraunos.compat.paddle.estimator import compiled, parameter_values, write_parameters
from keraunos.compat.paddle.lowering.network import lower

ROWS = 6


def rows_for(network):
    """Rows of any content in the shapes that a network takes."""
    random = np.random.default_rng(0)
    rows = {}
    for name, tensor in network.inputs.items():
        size = network.config.layer(name).size
        shape = [ROWS, *(each or 5 for each in tensor.shape[1:])]
        if tensor.dtype == "int32":
            # A label's layer says how many classes there are, or 1; an id's how many words.
            rows[name] = random.integers(0, max(2, min(size, 15)), shape).astype("int32")
        else:
            rows[name] = random.random(shape, dtype="float32")
    return rows


def stepped(path, arguments, start=None):
    """The trainer after a step, and its parameters before it."""
    config = parse_config(str(path), arguments)
    network = lower(config.model_config)
    trainer = compiled(network, config, 1, None)
    if start is not None:
        write_parameters(trainer, start)
    before = parameter_values(trainer)
    rows = rows_for(network)
    given = {tensor.name: rows[tensor.name] for tensor in trainer.inputs}
    loss = trainer.train_on_batch(given, next(iter(rows.values())))
    assert np.all(np.isfinite(loss))
    return trainer, before


if __name__ == "__main__":
    name, arguments, file = sys.argv[1:]
    trained, _ = stepped(Path(__file__).parent / "networks" / f"{name}.py", arguments, dict(np.load(file)))
    np.savez(f"{file}.after", **parameter_values(trained))
