"""The engine's promises on JAX."""

import os

from tests.conformance.engine_suite import EngineSuite

if os.environ["KERAS_BACKEND"] == "jax":

    class TestEngineOnJax(EngineSuite):
        pass
