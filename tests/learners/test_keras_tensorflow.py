"""The learner suite on TensorFlow: in a process of its own, since Keras has one backend a process."""

import keras
import pytest

from tests.conformance.keras_learner_suite import KerasLearnerSuite
from tests.conformance.own_process import passes_on

if keras.config.backend() == "tensorflow":

    class TestKerasTensorFlow(KerasLearnerSuite):
        backend = "tensorflow"

else:

    @pytest.mark.slow
    def test_the_suite_passes_in_a_process_of_its_own():
        passes_on("tensorflow", __file__)
