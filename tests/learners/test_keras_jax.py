"""The learner suite on JAX."""

import os

import pytest

os.environ.setdefault("KERAS_BACKEND", "jax")

from tests.conformance.learner_suite import LearnerSuite


@pytest.mark.skipif(os.environ["KERAS_BACKEND"] != "jax", reason="this process runs Keras on another backend")
class TestKerasJax(LearnerSuite):
    backend = "jax"
