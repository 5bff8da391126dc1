"""What importing Keras and TensorFlow brings into a worker's process, and that the rest comes when it is used."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

KERAS = """
import sys
from keraunos.learners.framework_imports import import_keras

keras = import_keras()
assert keras is import_keras() is sys.modules["keras"]
assert not any(type(each).__module__.startswith("keraunos") for each in sys.meta_path)
print([name for name in {unused!r} if name in sys.modules])
from keras.wrappers import SKLearnClassifier
assert SKLearnClassifier is keras.wrappers.SKLearnClassifier
print(SKLearnClassifier.__mro__[-2].__module__.partition(".")[0])
print("matplotlib" in sys.modules, keras.visualization.plot_image_gallery.__module__, "matplotlib" in sys.modules)
"""

TENSORFLOW = """
import sys
from keraunos.learners.framework_imports import import_tensorflow

tf = import_tensorflow()
assert tf is import_tensorflow() is sys.modules["tensorflow"]
assert not any(type(each).__module__.startswith("keraunos") for each in sys.meta_path)
print([name for name in ("jax", "keras", "matplotlib", "sklearn", "tf_keras") if name in sys.modules])
from tensorflow.lite.python import lite, util
print("jax" in sys.modules, lite._jit is util._jit, lite._jit(lambda x: x + 1)(1), "jax" in sys.modules)
print(tf.keras.layers.Dense.__module__, tf.keras.optimizers.SGD is sys.modules["keras"].optimizers.SGD)
"""


def told(program, **environment):
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ | environment
    )
    return done.stdout.splitlines()


needs_tensorflow = pytest.mark.skipif(find_spec("tensorflow") is None, reason="TensorFlow is not installed here")


@pytest.mark.parametrize("backend", ["jax", pytest.param("tensorflow", marks=needs_tensorflow)])
def test_plots_and_scikit_learn_come_with_the_first_who_asks_for_them(backend):
    unused = ["matplotlib", "sklearn"] + ["jax"] * (backend != "jax")
    before, base, plots = told(KERAS.format(unused=unused), KERAS_BACKEND=backend)
    assert before == "[]"
    assert base == "sklearn"
    assert plots == "False keras.src.visualization.plot_image_gallery True"


@needs_tensorflow
def test_tensorflow_comes_without_keras_until_it_is_used():
    before, jax, keras = told(TENSORFLOW, KERAS_BACKEND="tensorflow")
    assert before == "[]"
    assert keras == "keras.src.layers.core.dense True"
    assert jax == "False True 2 True"
