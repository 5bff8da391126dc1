"""Which Python runs what Spark is given. Runs on the driver.

On one machine the driver's own interpreter is the one that has the packages, whether its environment is activated or
not. On a cluster, and where PYSPARK_PYTHON is set, it stays the one that was chosen.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def choose_own_python(context: Any) -> None:
    """From now on, functions that a SparkContext is given run in the driver's own interpreter."""
    if context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable


@contextmanager
def own_python(context: Any) -> Iterator[None]:
    """Functions that Spark wraps in here run in the driver's own interpreter."""
    before = context.pythonExec
    choose_own_python(context)
    try:
        yield
    finally:
        context.pythonExec = before
