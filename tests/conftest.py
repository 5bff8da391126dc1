"""What Spark tests share: one local session for the whole run."""

from __future__ import annotations

import collections
import importlib.util
import os
import sys
import uuid
import warnings
from pathlib import Path

import pytest
from hypothesis import settings

from tests import fast
from tests.java import java_options

TESTS = Path(__file__).parent

# Examples share a machine with Spark; how long one takes says nothing. HYPOTHESIS_PROFILE chooses another profile:
# `make test-all` takes `long`, and `thorough` looks at many more.
settings.register_profile("keraunos", deadline=None, max_examples=40)
settings.register_profile("long", deadline=None, max_examples=160)
settings.register_profile("thorough", deadline=None, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "keraunos"))

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("JDK_JAVA_OPTIONS", java_options())
# What JAX compiles is kept for other processes and other runs, as workers keep theirs: it is half of many tests' time.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", f"{sys.prefix}/jax")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

# Environments without TensorFlow (torch's own, the oldest) could not even import these.
NEED_TENSORFLOW = [
    "compat/sparkflow",
    "compat/tensorflow1_facts.py",
    "compat/tensorspark",
    "compat/test_run_unchanged.py",
    "compat/test_tensorflow1.py",
    "compat/zoo",
    "convergence/test_engine_graph.py",
    "convergence/test_on_tensorflow.py",
    "formats/test_graph_format.py",
    "integration/test_text.py",
    "launch/test_graph_cores.py",
    "launch/test_graph_return.py",
    "launch/test_predict.py",
    "launch/test_text.py",
    "learners/test_graph_source.py",
    "learners/test_keras_front.py",
    "learners/test_tensorflow_graph.py",
    "ml/test_strings.py",
    "security/test_graphs.py",
    "tuning/test_search.py",
    "worker/test_record_predictions.py",
]
# torch's own has neither Optuna nor Jupyter.
NEED_OPTUNA = [
    "compat/elephas/test_hyper_draws.py",
    "compat/elephas/test_hyper_templates.py",
    "compat/elephas/test_hyperparam.py",
    "tuning/test_objective_search.py",
    "tuning/test_proposals.py",
]
NEED_JUPYTER = ["cli/test_notebook.py", "notebook"]
collect_ignore = [
    path
    for package, paths in (("ipykernel", NEED_JUPYTER), ("optuna", NEED_OPTUNA), ("tensorflow", NEED_TENSORFLOW))
    if importlib.util.find_spec(package) is None
    for path in paths
]

# A file with so few tests, one of them slow, is a program or a cluster of its own.
FEW = 6


def pytest_ignore_collect(collection_path, config):
    """Of the fast tests, other files need not be read."""
    if fast.is_asked_for(config) and not fast.is_fast_file(collection_path, TESTS, NEED_TENSORFLOW):
        return True
    return None  # others may have a reason


def pytest_itemcollected(item):
    """Whether it is one of the fast tests."""
    fast.mark(item, TESTS, NEED_TENSORFLOW)


def pytest_collection_modifyitems(items):
    """Files that take long for their few tests come first, then others with slow tests, and quick ones at the end.

    A process that began such a file last would be the only one at work in the end.
    """
    count = collections.Counter(item.path for item in items)
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path not in slow, count[item.path] > FEW, -count[item.path], str(item.path)))


@pytest.fixture(scope="session")
def spark():
    """One small local Spark; the tests of the whole run share it."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    with warnings.catch_warnings():
        # PySpark forks to start its JVM, which it then executes at once; JAX warns of any fork once it runs.
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        session = _started(SparkSession)
    yield session
    session.stop()


@pytest.fixture
def mounted(spark, tmp_path):
    """The address of `tmp_path` on a file system that only Hadoop reads."""
    name = f"mounted-{tmp_path.name}"
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set(f"fs.viewfs.mounttable.{name}.link./data", tmp_path.as_uri())
    return f"viewfs://{name}/data"


@pytest.fixture
def jobs_run(spark):
    """A function that gives the ids of the Spark jobs this test has run so far."""
    context = spark.sparkContext
    group = f"test-{uuid.uuid4().hex}"
    context.setJobGroup(group, "the jobs of one test")
    yield lambda: context.statusTracker().getJobIdsForGroup(group)
    context.setLocalProperty("spark.jobGroup.id", None)
    context.setLocalProperty("spark.job.description", None)


def _started(SparkSession):
    session = (
        SparkSession.builder.master("local[2]")
        .appName("keraunos-tests")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", "-Dlog4j2.level=error")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    return session
