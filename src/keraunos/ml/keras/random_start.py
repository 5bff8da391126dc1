"""Initial weights that follow from a seed, without touching the user's random numbers. Runs on the driver."""

from __future__ import annotations

import contextlib
import importlib
import random
import threading
from collections.abc import Iterator

import numpy as np

# The states below belong to the whole process, and fits may run side by side on the driver.
_one_at_a_time = threading.Lock()


@contextlib.contextmanager
def drawn_from(seed: int) -> Iterator[None]:
    """Whatever draws its initial weights in here draws them from `seed`; afterwards all states are as before.

    Keras's initializers draw a seed from Python's `random` when they are made; initializers of users may draw from
    numpy's old global state, or from Keras without a seed. `keras.utils.set_random_seed` would leave all of them, and
    the framework's, changed.
    """
    # No public way leads to Keras's global generator. It makes itself anew, from `random`, when it is missed.
    state = importlib.import_module("keras.src.backend.common.global_state")
    name = importlib.import_module("keras.src.random.seed_generator").GLOBAL_SEED_GENERATOR
    with _one_at_a_time:
        # Numpy has two ways to draw; what initializers may have used is the old one, whose state is global.
        python, numpy, keras = random.getstate(), np.random.get_state(), state.get_global_attribute(name)  # noqa: NPY002
        # As a text, since `random` makes no difference between a number and its negative.
        random.seed(f"keraunos {seed}")
        np.random.seed(np.random.SeedSequence(seed % (1 << 64)).generate_state(4))  # noqa: NPY002 - as above
        state.set_global_attribute(name, None)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002 - as above
            state.set_global_attribute(name, keras)
