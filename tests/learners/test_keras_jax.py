"""The learner suite on JAX."""

import keras
import pytest

from tests.conformance.learner_suite import LearnerSuite


@pytest.mark.skipif(keras.config.backend() != "jax", reason="this process runs Keras on another backend")
class TestKerasJax(LearnerSuite):
    backend = "jax"
