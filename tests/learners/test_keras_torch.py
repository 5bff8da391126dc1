"""The learner suite on torch, which `make test-torch` runs."""

import os

import pytest

os.environ.setdefault("KERAS_BACKEND", "jax")

from tests.conformance.learner_suite import LearnerSuite


@pytest.mark.torch
@pytest.mark.skipif(os.environ["KERAS_BACKEND"] != "torch", reason="this process runs Keras on another backend")
class TestKerasTorch(LearnerSuite):
    backend = "torch"
