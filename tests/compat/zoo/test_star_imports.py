"""What programs took with `from … import *` beside a module's own names."""

import json
import os
import subprocess
import sys

import pytest

from keraunos.compat.run_unchanged.systems import SYSTEMS

PASSED_ON = {"DOUBLEMAX", "JTensor", "RDD", "SQLContext", "Sample", "SparkConf", "SparkContext", "np", "os", "sys"}
MODULES = [
    "bigdl.nn.layer",
    "bigdl.optim.optimizer",
    "bigdl.transform.vision.image",
    "bigdl.util.common",
    "zoo.common.nncontext",
    "zoo.feature.common",
    "zoo.feature.image.imagePreprocessing",
    "zoo.feature.image.imageset",
    "zoo.pipeline.api.keras.metrics",
    "zoo.pipeline.api.keras.optimizers",
]
# In a process of its own: some of the names need Keras on TensorFlow.
TAKES = """
import json, sys
found = {}
for module in sys.argv[1:]:
    taken = {}
    exec(f"from {module} import *", taken)
    try:
        exec(f"from {module} import nobody", taken)
    except ImportError:
        found[module] = sorted(taken.keys() - {"__builtins__"})
print(json.dumps(found))
"""


def home(module):
    package, _, rest = module.partition(".")
    return f"{SYSTEMS['zoo'].aliases[package]}.{rest}"


@pytest.fixture(scope="module")
def taken():
    environment = os.environ | {"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-c", TAKES, *map(home, MODULES)]
    return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("module", MODULES)
def test_modules_pass_on_what_they_took_from_bigdl(taken, module):
    expected = {"DOUBLEMAX", "JTensor", "np", "sys"} if module == "bigdl.nn.layer" else PASSED_ON
    assert expected <= set(taken[home(module)])
