"""What programs took with `from … import *` beside a module's own names."""

import pytest

from keraunos.compat.run_unchanged.systems import SYSTEMS

PASSED_ON = {"DOUBLEMAX", "JTensor", "RDD", "SQLContext", "Sample", "SparkConf", "SparkContext", "np", "os", "sys"}
MODULES = [
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


@pytest.mark.parametrize("module", MODULES)
def test_modules_pass_on_what_they_took_from_bigdl(module):
    package, _, rest = module.partition(".")
    taken = {}
    exec(f"from {SYSTEMS['zoo'].aliases[package]}.{rest} import *", taken)
    assert taken.keys() >= PASSED_ON
    with pytest.raises(ImportError, match=f"{module}|cannot import name"):
        exec(f"from {SYSTEMS['zoo'].aliases[package]}.{rest} import nobody", taken)
