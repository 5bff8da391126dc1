"""Runs the programs in `examples/`, and the snippets of the documents on Keras, as a user would."""

import re

import pytest

from tests.docs.one_process import run_programs
from tests.docs.snippets import INSTALLED, ON_KERAS, ROOT, write_programs

EXAMPLES = ROOT / "examples"
NAMES = ["digits.py", "exchange_plans.py", "ink_regression.py"]
ELEPHAS_EXAMPLES = f"""
import sys
sys.path.insert(0, {str(EXAMPLES / "elephas")!r})
import mllib_mlp, ml_mlp_classification, ml_mlp_regression, ml_pipeline_otto
import mnist_mlp_spark, mnist_mlp_spark_asynchronous, mnist_mlp_spark_synchronous
mnist_mlp_spark.main()
mnist_mlp_spark_asynchronous.main()
mnist_mlp_spark_synchronous.main()
mllib_mlp.main()
ml_mlp_classification.main()
ml_mlp_regression.main()
ml_pipeline_otto.main()
"""

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("examples")


@pytest.fixture(scope="module")
def printed(folder):
    """What each example and each document printed; all of them share a process and its Spark."""
    files = [*(EXAMPLES / name for name in NAMES), *write_programs(ON_KERAS, folder)]
    if INSTALLED:  # elsewhere nothing of older systems is tested
        files.append(folder / "elephas_examples.py")
        files[-1].write_text(ELEPHAS_EXAMPLES)
    return run_programs(files, folder)


def test_digits(printed, folder):
    assert "History of 8 epochs" in printed["digits.py"]
    assert float(re.search(r"accuracy (0\.\d+|1\.0+)$", printed["digits.py"], re.MULTILINE).group(1)) > 0.9
    assert (folder / "models/digits/metadata").exists()


def test_ink_regression(printed):
    found = re.search(r"(\d+) epochs, mean absolute error ([\d.]+)", printed["ink_regression.py"])
    assert 1 < int(found.group(1)) <= 60
    assert float(found.group(2)) < 22  # always guessing the mean is off by about 27


def test_exchange_plans(printed):
    rows = re.findall(r"^(\w[\w ]*?) {2,}([\d.]+) +[\d.]+$", printed["exchange_plans.py"], re.MULTILINE)
    assert [name for name, _ in rows] == ["allreduce", "elastic", "Adam on the servers"]
    assert all(float(accuracy) > 0.9 for _, accuracy in rows)


def test_every_example_has_a_test():
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == NAMES


@pytest.mark.parametrize("document", ON_KERAS)
def test_the_snippets_on_keras_run(document, printed):
    assert document.rpartition("/")[2].replace(".md", ".py") in printed


@pytest.mark.skipif(not INSTALLED, reason="nothing of older systems is tested without TensorFlow")
def test_the_examples_of_elephas(printed):
    told = printed["elephas_examples.py"]
    found = re.findall(r"^([\w ]+),.*accuracy (\d\.\d+)", told, re.MULTILINE)
    assert [name for name, _ in found] == [
        "asynchronous",
        "hogwild",
        "synchronous",
        "LabeledPoints",
        "classification",
        "pipeline",
    ]
    assert all(float(accuracy) > 0.85 for _, accuracy in found), told
    error = re.search(r"^regression, mean absolute error ([\d.]+)", told, re.MULTILINE).group(1)
    assert float(error) < 22  # always guessing the mean is off by about 27


def test_every_example_of_elephas_is_run():
    names = {path.stem for path in (EXAMPLES / "elephas").glob("*.py")} - {"digits"}
    assert all(f"{name}.main(" in ELEPHAS_EXAMPLES for name in names)
