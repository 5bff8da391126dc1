"""The files whose Keras runs on TensorFlow: all in one process of their own, since Keras has one backend a process."""

from pathlib import Path

import keras
import pytest

from tests.conformance.own_process import Run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(keras.config.backend() == "tensorflow", reason="the files are collected themselves"),
]

TESTS = Path(__file__).parents[1]
FILES = [
    "convergence/test_engine_tensorflow.py",
    "launch/test_text.py",
    "learners/test_keras_front.py",
    "learners/test_keras_tensorflow.py",
]


@pytest.fixture(scope="module")
def run(request):
    marked = "not extended" if "not extended" in request.config.option.markexpr else ""
    return Run("tensorflow", [TESTS / file for file in FILES], marked=marked)


@pytest.mark.parametrize("file", FILES)
def test_a_file_passes_on_tensorflow(file, run):
    run.passed(file)
