import builtins
import importlib
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from keraunos.compat.run_unchanged import aliases, shadows
from keraunos.compat.run_unchanged.lazy_names import LazyBuiltins
from keraunos.compat.run_unchanged.original_modules import all_modules
from keraunos.compat.run_unchanged.spark_settings import settings_for, with_defaults
from keraunos.compat.run_unchanged.systems import PLAIN, SYSTEMS, System, system_named
from keraunos.errors import JobError
from tests.extended import extended

ENVIRONMENT = {
    "PYSPARK_SUBMIT_ARGS": "--conf spark.ui.enabled=false --conf spark.log.level=ERROR pyspark-shell",
    "SPARK_LOCAL_IP": "127.0.0.1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}


def run(*arguments, cwd, **environment):
    return subprocess.run(
        [sys.executable, "-m", "keraunos.cli.main", "run", *map(str, arguments)],
        cwd=cwd,
        env=os.environ | ENVIRONMENT | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def is_there(module):
    """Whether there is a module, which is not imported for that: some of ours change how a process computes."""
    if not module.startswith("keraunos."):
        return find_spec(module) is not None
    place = Path(aliases.__file__).parents[3] / module.replace(".", "/")
    return place.with_suffix(".py").exists() or (place / "__init__.py").exists()


# The table of systems


@pytest.mark.parametrize("name", SYSTEMS)
def test_everything_in_the_table_exists(name):
    system = SYSTEMS[name]
    targets = [*system.aliases.values(), *system.fallbacks.values(), *system.shadows.values()]
    targets += [target.partition(":")[0] for target in system.names.values()]
    assert system.name == name
    assert all(is_there(target) for target in targets)


def test_an_unknown_system_lists_the_known_ones():
    known = r"must be one of 'elephas', 'paddle', 'sparkflow', .*"
    with pytest.raises(JobError, match=known + r"Received: 'spark-flow'. Did you mean 'sparkflow'"):
        system_named("spark-flow")


# Aliases


@pytest.fixture
def installed(monkeypatch):
    """A function that installs a system's names for the length of a test."""
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(builtins, "__import__", builtins.__import__)
    monkeypatch.setattr(importlib, "import_module", importlib.import_module)
    monkeypatch.setattr(shadows, "_shadows", {})
    before = set(sys.modules)
    yield aliases.install
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("oldtimer", "sample"):
            del sys.modules[name]


def test_an_alias_is_the_module_itself(installed):
    installed(System("oldtimer", aliases={"oldtimer": "keraunos.telemetry"}))
    import oldtimer.history
    from oldtimer import progress

    from keraunos.telemetry import history
    from keraunos.telemetry import progress as ours

    assert oldtimer.history is history
    assert progress is ours
    assert history.__name__ == history.__spec__.name == "keraunos.telemetry.history"
    assert importlib.import_module("oldtimer.history") is history


def test_a_part_that_is_missing_names_the_ones_that_are_there(installed):
    installed(System("oldtimer", aliases={"oldtimer": "keraunos.telemetry"}))
    with pytest.raises(
        ModuleNotFoundError, match="no part of oldtimer of that name. There are: .*oldtimer.history"
    ) as e:
        importlib.import_module("oldtimer.server")
    assert e.value.name == "oldtimer.server"


def test_a_part_that_is_missing_is_answered_with_what_programs_imported(installed):
    installed(System("zoo", aliases={"zoo": "keraunos.compat.zoo"}))
    with pytest.raises(ModuleNotFoundError, match=r"There are: .*zoo\.tfpark\.tf_dataset") as e:
        importlib.import_module("zoo.tfpark.text")
    assert "row_sources" not in str(e.value)


def test_every_module_that_is_offered_is_there():
    packages = {}
    for system in SYSTEMS.values():
        packages |= {**system.aliases, **system.fallbacks}
    for name in all_modules():
        root, _, rest = name.partition(".")
        assert is_there(f"{packages[root]}.{rest}"), name


@pytest.mark.parametrize("own", ["sample.py", "sample/__init__.py"])
def test_a_programs_own_module_comes_before_a_fallback(installed, tmp_path, monkeypatch, own):
    (tmp_path / own).parent.mkdir(exist_ok=True)
    (tmp_path / own).write_text("whose = 'mine'\n")
    monkeypatch.syspath_prepend(tmp_path)
    installed(System("oldtimer", fallbacks={"sample": "keraunos.telemetry"}))
    assert importlib.import_module("sample").whose == "mine"


def test_a_mere_folder_does_not_come_before_a_fallback(installed, tmp_path, monkeypatch):
    (tmp_path / "sample").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    installed(System("oldtimer", fallbacks={"sample": "keraunos.telemetry"}))
    assert importlib.import_module("sample").__name__ == "keraunos.telemetry"


# Shadows: `colorsys`, which nobody needs here, stands for TensorFlow, and `keraunos.errors` for TensorFlow 1.x.


def imported_by(statement, **namespace):
    exec(statement, namespace)
    return namespace["found"]


@pytest.fixture
def shadowed(installed):
    installed(System("oldtimer", shadows={"colorsys": "keraunos.errors"}))


@pytest.mark.parametrize(
    "statement",
    [
        "import colorsys as found",
        "found = __import__('colorsys')",
        "import importlib; found = importlib.import_module('colorsys')",
        "exec('import colorsys'); found = colorsys",
        "exec('import colorsys', here := {}); found = here['colorsys']",
        "def inner():\n    import colorsys\n    return colorsys\nfound = inner()",
    ],
)
def test_the_program_sees_the_shadow_and_packages_what_is_installed(shadowed, tmp_path, statement):
    mine = str(tmp_path / "program.py")
    theirs = str(tmp_path / "lib" / "site-packages" / "package" / "module.py")
    assert imported_by(statement, __name__="helper", __file__=mine).__name__ == "keraunos.errors"
    assert imported_by(statement, __name__="__main__").__name__ == "keraunos.errors"
    assert imported_by(statement, __name__="package.module", __file__=theirs).__name__ == "colorsys"
    assert imported_by(statement, __name__="tensorflow.python.x", __file__=mine).__name__ == "colorsys"
    assert imported_by(statement, __name__="json.decoder").__name__ == "colorsys"


def test_names_are_taken_from_the_shadow(shadowed):
    assert imported_by("from colorsys import JobError as found", __name__="__main__") is JobError
    with pytest.raises(ImportError, match="cannot import name 'rgb_to_hsv' from 'colorsys'"):
        imported_by("from colorsys import rgb_to_hsv", __name__="__main__")
    with pytest.raises(ModuleNotFoundError, match="No module named 'colorsys.deep'"):
        imported_by("import colorsys.deep", __name__="__main__")


def test_other_imports_are_as_ever(shadowed):
    found = imported_by("import os.path; import json.decoder as d; found = os, d", __name__="__main__")
    assert found == (os, json.decoder)
    with pytest.raises(ModuleNotFoundError, match="No module named 'nowhere'"):
        imported_by("import nowhere", __name__="__main__")


# Names that are made when they are used


def names_in(program, **makers):
    namespace = {}
    namespace["__builtins__"] = LazyBuiltins(namespace, makers)
    exec(program, namespace)
    return namespace


def test_a_name_is_made_once_when_a_function_uses_it():
    made = []

    def maker():
        made.append(1)
        return "a session"

    namespace = names_in("def use():\n    return spark, len(spark)\nunused = 1", spark=maker)
    assert not made
    assert namespace["use"]() == ("a session", 9)
    assert namespace["use"]()[0] == "a session"
    assert made == [1]


def test_a_programs_own_name_comes_first():
    namespace = names_in("spark = 'mine'\ndef use():\n    return spark\nseen = use()", spark=pytest.fail)
    assert namespace["seen"] == "mine"


def test_everything_else_of_a_module_works():
    namespace = names_in(
        "import math\nclass Point: pass\nseen = [len('ab'), math.pi, Point().__class__ is Point]\n"
        "also = __builtins__.len('abc')\ntry:\n    nowhere\nexcept NameError as error:\n    missing = str(error)"
    )
    assert namespace["seen"] == [2, pytest.approx(3.14159), True]
    assert namespace["also"] == 3
    assert namespace["missing"] == "name 'nowhere' is not defined"


# What Spark is told


def test_workers_are_told_the_system_and_the_folder():
    assert settings_for(SYSTEMS["zoo"], "/programs") == {
        "spark.python.daemon.module": "keraunos.compat.run_unchanged.worker_daemon",
        "spark.executorEnv.KERAUNOS_RUN_AS": "zoo",
        "spark.executorEnv.KERAUNOS_PROGRAM_FOLDER": "/programs",
    }
    assert set(settings_for(PLAIN, "")) == {"spark.python.daemon.module"}


def test_what_the_user_chose_stays():
    assert with_defaults({"MASTER": "yarn", "PYSPARK_PYTHON": "python3", "A": "b"}) == {
        "MASTER": "yarn",
        "PYSPARK_PYTHON": "python3",
        "A": "b",
    }
    assert with_defaults({})["PYSPARK_PYTHON"] == sys.executable
    assert int(with_defaults({})["MASTER"].removeprefix("local[").removesuffix("]")) >= 2


# Scripts, as Python runs them

SCRIPTS = {
    "itself": '"A docstring."\nimport sys\nimport helper\nx: int = 1\n'
    "print(__name__, __file__, __doc__, sys.argv, sys.path[0], __annotations__, helper.__file__)\n"
    "print(sys.modules['__main__'].x, __spec__, __package__, __loader__.get_filename())",
    "exit code": "import sys\nprint('before')\nsys.exit(3)",
    "exit message": "raise SystemExit('a reason')",
    "error": "def fail():\n    try:\n        1 / 0\n    except ZeroDivisionError as error:\n"
    "        raise ValueError('bad') from error\nfail()",
    "error in a module": "import broken",
    "no such module": "import nowhere",
    "syntax error": "print('never')\nx = = 1\n",
    "own hook": "import sys\nsys.excepthook = lambda *told: print('caught', told[1])\nraise ValueError('bad')",
    "exit handler": "import atexit\natexit.register(lambda: print('bye', x))\nx = 5",
    "annotations of its own time": "def f(x: 1 + 1): pass\nprint(f.__annotations__)",
}


@pytest.mark.parametrize("what", SCRIPTS)
def test_a_script_runs_as_python_runs_it(tmp_path, what):
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "helper.py").write_text("")
    (folder / "broken.py").write_text("def deep():\n    raise KeyError('lost')\n\ndeep()\n")
    (folder / "script.py").write_text(SCRIPTS[what])
    arguments = ["programs/script.py", "--as", "x", "-v", "--help", "--"]
    plain = subprocess.run(
        [sys.executable, *arguments], cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=False
    )
    ours = run("--as", "sparkflow", *arguments, cwd=tmp_path)
    assert ours.stdout == plain.stdout
    assert ours.stderr == plain.stderr
    assert ours.returncode == plain.returncode


def test_a_script_that_is_not_there(tmp_path):
    done = run("missing.py", cwd=tmp_path)
    assert done.returncode == 2
    assert "Received: 'missing.py'" in done.stderr


ERRORS = {
    "import tensorflow.contrib.nothing": "No module named 'tensorflow.contrib.nothing': tf.contrib.nothing is not part",
    "import tensorflow as tf; tf.train.Nothing": "module 'tensorflow.train' has no attribute 'Nothing'",
    "from tensorspark.core.spark_session import Nothing": "name 'Nothing' from 'tensorspark.core.spark_session'",
    "import tensorspark.core as c; c.nothing": "module 'tensorspark.core' has no attribute 'nothing'",
}


@pytest.mark.parametrize("program", [extended(each) if "tensorflow as" in each else each for each in ERRORS])
def test_errors_name_what_the_program_imports(tmp_path, program):
    (tmp_path / "program.py").write_text(program)
    done = run("--as", "tensorspark", "program.py", cwd=tmp_path)
    assert done.returncode == 1
    assert ERRORS[program] in done.stderr
    assert "keraunos.compat" not in done.stderr.splitlines()[-1]


def test_without_java_a_program_that_starts_spark_is_told_what_to_install(tmp_path):
    (tmp_path / "program.py").write_text("print('before', flush=True)\nspark.range(3).count()\n")
    done = run("--as", "elephas", "program.py", cwd=tmp_path, JAVA_HOME=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "before\n")
    assert f"no `java` was found under JAVA_HOME={tmp_path}. Install Java 17 or later: `apt-get install" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_java_a_program_that_starts_no_spark_runs(tmp_path):
    (tmp_path / "program.py").write_text("print('done')\n")
    done = run("program.py", cwd=tmp_path, JAVA_HOME=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "done\n")


PROGRAM = """
import json
import sys

import tensorflow as tf
import tensorflow.contrib.slim as slim
from tensorflow.contrib.layers import xavier_initializer
from tensorflow.keras.layers import Dense
from tensorflow.python.framework import ops

import networks
import tensorspark.core.weight_combiner as combiners

from core.partitioner import RandomPartitioner
from tensorflow.examples.tutorials.mnist import input_data


def on_executors(rows):
    import tensorflow as inside
    from tensorflow.contrib import slim as also
    from tensorspark.core.weight_combiner import DeltaWeightCombiner

    yield [inside.__version__, tf.__version__, also.__name__, DeltaWeightCombiner.__module__, *networks.answer(rows)]


def parallel(rows):
    return sc.parallelize(rows, 1)


x = tf.placeholder(tf.float32, [None, 3])
found = {
    "shape": networks.network(x).shape.as_list(),
    "same": slim is tf.contrib.slim is networks.slim,
    "keras": Dense.__module__.split(".")[0],
    "insides": ops.__name__,
    "examples": input_data.read_data_sets.__name__,
    "core": RandomPartitioner.__module__,
    "combiner": combiners.DeltaWeightCombiner.__module__,
    "executors": parallel([1, 2]).mapPartitions(on_executors).collect()[0],
    "rows": spark.range(3).count() + sqlContext.sql("select 1").count(),
    "master": sc.master,
    "ui": sc.getConf().get("spark.ui.enabled"),
    "sps": sps.SparkSession.__module__,
}

import keras  # a package: what it sees of TensorFlow is none of this

found["keras 3"] = keras.__version__.split(".")[0]
print(json.dumps(found))
"""

NETWORKS = """
import tensorflow as tf
from tensorflow.contrib import slim


def network(x):
    return slim.batch_norm(slim.fully_connected(x, 4))


def answer(rows):
    import tensorflow

    return [tensorflow.__name__, tf.__name__, sum(rows)]
"""


@pytest.mark.spark
@pytest.mark.slow
def test_aliases_hold_in_the_script_in_its_modules_and_on_executors(tmp_path):
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "program.py").write_text(PROGRAM)
    (folder / "networks.py").write_text(NETWORKS)
    done = run("--as", "tensorspark", folder / "program.py", cwd=tmp_path, MASTER="local[2]")
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout)
    ours = "keraunos.compat.tensorflow1"
    assert found == {
        "shape": [None, 4],
        "same": True,
        "keras": "tf_keras",
        "insides": "tensorflow.python.framework.ops",
        "examples": "read_data_sets",
        "core": "keraunos.compat.tensorspark.core.partitioner",
        "combiner": "keraunos.compat.tensorspark.core.weight_combiner",
        "executors": [
            "1.15.5",
            "1.15.5",
            f"{ours}.contrib.slim",
            "keraunos.compat.tensorspark.core.weight_combiner",
            ours,
            ours,
            3,
        ],
        "rows": 4,
        "master": "local[2]",
        "ui": "false",
        "sps": "keraunos.compat.tensorspark.core.spark_session",
        "keras 3": "3",
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["programs"]


# Names of numpy


def test_names_that_numpy_had(tmp_path):
    program = """
import numpy as np
assert np.zeros(2, np.int).dtype == np.int64 and np.float is float and np.object is object and np.unicode is str
assert np.Inf == -np.NINF == np.infty and np.isnan(np.NaN) and np.product([2, 3]) == 6
assert np.asscalar(np.ones(1)) == 1.0
assert np.ones(1).astype(np.bool).dtype == bool and np.bool_ is not bool
print("done")
"""
    (tmp_path / "program.py").write_text(program)
    done = run("--as", "sparkflow", "program.py", cwd=tmp_path)
    assert done.stdout == "done\n", done.stderr
