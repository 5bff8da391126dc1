"""Programs one after the other in one process, each as `__main__`: they share a folder and a Spark."""

import os
import subprocess
import sys
from pathlib import Path

ENVIRONMENT = {"KERAS_BACKEND": "jax"}

RUNNER = """
import os, sys, types
programs = sys.argv[1:]
for program in programs:
    sys.argv = [program]
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__file__ = program
    print("##", os.path.basename(program), flush=True)
    with open(program) as source:
        exec(compile(source.read(), program, "exec"), vars(main))
    if "tensorflow" in sys.modules:
        sys.modules["tensorflow"].compat.v1.reset_default_graph()
"""


def run_programs(programs, folder, python=sys.executable, environment=None):
    """Run the files; what each printed, by its name. `environment`: all of it, in place of this process's own."""
    command = [python, "-c", RUNNER, *map(str, programs)]
    variables = os.environ | ENVIRONMENT if environment is None else environment
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    parts = [part.partition("\n") for part in done.stdout.split("## ")[1:]]
    printed = {name: text for name, _, text in parts}
    assert list(printed) == [Path(program).name for program in programs]
    return printed
