"""Tests that need a Keras backend other than this process's, run in a process of their own."""

import os
import subprocess
import sys


def passes_on(backend, file, **variables):
    """Run the tests of `file` under `backend`, with these environment variables; show their report where they fail."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file]
    environment = {**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3", **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=560)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
