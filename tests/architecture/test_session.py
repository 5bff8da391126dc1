"""Spark's own context and its JVM are reached through the session alone."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "src/keraunos"
MODULES = sorted(each for each in ROOT.rglob("*.py") if ROOT / "session" not in each.parents)
# What a SparkSession, a DataFrame, an RDD and a SparkContext have of the SparkContext and the JVM.
NAMES = {"sparkContext", "SparkContext", "_active_spark_context", "_gateway", "_is_barrier", "_is_pipelinable"}
OF_AN_RDD = "context"
ALLOWED = {
    # Functions and classes that take or hand out a SparkContext, as the older system's did.
    "compat/elephas/constructor.py": {"SparkContext"},
    "compat/elephas/hyperparam.py": {"sparkContext"},
    "compat/elephas/ml/adapter.py": {"SparkContext"},
    "compat/elephas/ml_model.py": {"SparkContext"},
    "compat/elephas/utils/rdd_utils.py": {"SparkContext"},
    "compat/tensorspark/example/spark_mnist.py": {"SparkContext", "_active_spark_context"},
    "compat/zoo/__init__.py": {"SparkContext"},
    "compat/zoo/bigdl/util/common.py": {"SparkContext"},
    "compat/zoo/common/nncontext.py": {"SparkContext", "sparkContext"},
    "compat/zoo/orca/common.py": {"SparkContext", "_active_spark_context"},
    "compat/zoo/tfpark/tf_dataset.py": {"SparkContext"},
    # A program's `sc`.
    "compat/run_unchanged/lazy_names.py": {"SparkContext"},
    # ZeroMQ's context.
    "exchange/hosting.py": {"context"},
    "exchange/server.py": {"context"},
    "exchange/transports/slices.py": {"context"},
    # A module of JAX's, which has nothing to do with Spark.
    "learners/framework_imports.py": {"_jit"},
}


def reached_in(text):
    """The names of Spark's context and of objects of the JVM that a module uses; its own attributes are none."""
    tree, found = ast.parse(text), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pyspark"):
            found |= {each.name for each in node.names} & NAMES
        if isinstance(node, ast.Attribute) and not is_own(node):
            found |= {node.attr} & (NAMES | {OF_AN_RDD})
            if node.attr.startswith("_j"):
                found.add(node.attr)
        # getattr(spark, "sparkContext"), and the names of a module's lazy imports.
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and is_name(node.value):
            found.add(node.value)
    return found


def is_own(attribute):
    return isinstance(attribute.value, ast.Name) and attribute.value.id in {"self", "cls"}


def is_name(text):
    return text in NAMES or text in {"_jvm", "_jsc", "_jdf", "_jrdd", "_jsparkSession", "_jconf"}


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def test_only_the_session_reaches_into_spark():
    reached = {name_of(path): reached_in(path.read_text()) for path in MODULES}
    assert {name: found for name, found in reached.items() if found} == ALLOWED


def test_each_exception_is_of_a_module():
    assert set(ALLOWED) <= set(map(name_of, MODULES))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("spark.sparkContext.parallelize([1])", {"sparkContext"}),
        ("frame._jdf.queryExecution()", {"_jdf"}),
        ("rdd.context.broadcast(1)", {"context"}),
        ("from pyspark import RDD, SparkContext", {"SparkContext"}),
        ("getattr(spark, '_jvm')", {"_jvm"}),
        ("self._context._jsc.sc()", {"_jsc"}),
        ("self._job.schedule", set()),
    ],
)
def test_what_reaches_into_spark_is_seen(text, found):
    assert reached_in(text) == found
