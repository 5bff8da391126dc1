"""The learner suite on torch, which `make test-torch` runs."""

import keras
import pytest

from tests.conformance.learner_suite import LearnerSuite


@pytest.mark.torch
@pytest.mark.skipif(keras.config.backend() != "torch", reason="this process runs Keras on another backend")
class TestKerasTorch(LearnerSuite):
    backend = "torch"
