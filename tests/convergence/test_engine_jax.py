"""The engine's promises on JAX."""

import os

import pytest

from tests.conformance.engine_suite import EngineSuite


@pytest.mark.skipif(os.environ["KERAS_BACKEND"] != "jax", reason="this process runs Keras on another backend")
class TestEngineOnJax(EngineSuite):
    pass
