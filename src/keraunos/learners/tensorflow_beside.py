"""TensorFlow beside another framework, for the layers that only it can run. Runs on workers.

The layers prepare rows: they need no accelerator, which is the other framework's, and no more threads than a task has.
"""

from __future__ import annotations

import contextlib
import os

from keraunos.learners.framework_imports import import_tensorflow


def load() -> None:
    """Import TensorFlow, quietly, on the CPU alone, with as many threads as this process was told to use."""
    for name, value in (
        ("TF_CPP_MIN_LOG_LEVEL", "3"),
        ("TF_NUM_INTRAOP_THREADS", os.environ.get("OMP_NUM_THREADS", "1")),
        ("TF_NUM_INTEROP_THREADS", "1"),
    ):
        os.environ.setdefault(name, value)
    tf = import_tensorflow()

    # It is too late where the process has used TensorFlow before, and then that was decided already.
    with contextlib.suppress(RuntimeError):
        tf.config.set_visible_devices([], "GPU")
