"""What programs took with `from … import *` beside a module's own names."""

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


def home(module):
    package, _, rest = module.partition(".")
    return f"{SYSTEMS['zoo'].aliases[package]}.{rest}"


def taken_from(module):
    """The names that `import *` brings from a module that refuses others."""
    taken = {}
    exec(f"from {module} import *", taken)
    with pytest.raises(ImportError):
        exec(f"from {module} import nobody", taken)
    return set(taken)


@pytest.mark.parametrize("module", MODULES)
def test_modules_pass_on_what_they_took_from_bigdl(module):
    expected = {"DOUBLEMAX", "JTensor", "np", "sys"} if module == "bigdl.nn.layer" else PASSED_ON
    assert expected <= taken_from(home(module))
