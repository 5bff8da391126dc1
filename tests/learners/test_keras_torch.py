"""The learner suite on torch, which `make test-torch` runs."""

import keras
import pytest

from tests.conformance.learner_suite import LearnerSuite

if keras.config.backend() == "torch":

    @pytest.mark.torch
    class TestKerasTorch(LearnerSuite):
        backend = "torch"
