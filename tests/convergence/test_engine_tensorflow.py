"""The engine's promises on TensorFlow, in a process of its own where this one runs Keras on another backend."""

import os

import pytest

from tests.conformance.own_process import passes_on

if os.environ["KERAS_BACKEND"] == "tensorflow":
    from tests.conformance.engine_suite import EngineSuite

    class TestEngineOnTensorFlow(EngineSuite):
        pass

else:

    @pytest.mark.slow
    def test_the_engine_suite_passes_on_tensorflow():
        passes_on("tensorflow", __file__)
