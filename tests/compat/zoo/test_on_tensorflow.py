"""The files whose Keras runs on TensorFlow, in one process of their own."""

from pathlib import Path

import keras
import pytest

from keraunos.errors import JobError
from tests.compat.zoo.conftest import ON_TENSORFLOW
from tests.conformance.own_process import Run

pytestmark = pytest.mark.skipif(keras.config.backend() == "tensorflow", reason="the files are collected themselves")


@pytest.fixture(scope="module")
def run(request):
    files = [Path(__file__).with_name(name) for name in ON_TENSORFLOW]
    # Without oneDNN TensorFlow has fewer kernels, as on older processors.
    return Run("tensorflow", files, marked=request.config.option.markexpr, TF_ENABLE_ONEDNN_OPTS="0")


@pytest.mark.slow
@pytest.mark.parametrize("file", ON_TENSORFLOW)
def test_a_file_passes(file, run):
    run.passed(file)


def test_another_backend_is_refused_by_name():
    with pytest.raises(JobError, match="must run on 'tensorflow'.*Received: 'jax'"):
        import keraunos.compat.zoo.tfpark.tfnet  # noqa: F401
