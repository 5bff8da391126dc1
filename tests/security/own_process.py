"""A program of the tests in a process of its own, for what needs another backend of Keras than this process's."""

import json
import os
import subprocess
import sys


def run_alone(module, *arguments):
    """What the module prints as its last line, read as JSON."""
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])
