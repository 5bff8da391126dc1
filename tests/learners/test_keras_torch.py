"""The learner suite on torch, which `make test-torch` runs."""

import keras
import pytest

from tests.conformance.keras_learner_suite import KerasLearnerSuite

if keras.config.backend() == "torch":

    @pytest.mark.torch
    class TestKerasTorch(KerasLearnerSuite):
        backend = "torch"
