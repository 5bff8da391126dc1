"""The engine's promises on torch; `make test-torch` runs them in an environment that has it."""

import os

import pytest

if os.environ["KERAS_BACKEND"] == "torch":
    from tests.conformance.engine_suite import EngineSuite

    @pytest.mark.torch
    class TestEngineOnTorch(EngineSuite):
        pass
