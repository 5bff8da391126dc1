"""The learner suite on TensorFlow: in a process of its own, since Keras has one backend a process."""

import keras
import pytest

from tests.conformance.learner_suite import LearnerSuite
from tests.conformance.own_process import passes_on

RUNNING = keras.config.backend() == "tensorflow"


@pytest.mark.skipif(not RUNNING, reason="run in a process of its own by the test below")
class TestKerasTensorFlow(LearnerSuite):
    backend = "tensorflow"


@pytest.mark.slow
@pytest.mark.skipif(RUNNING, reason="this is that process")
def test_the_suite_passes_in_a_process_of_its_own():
    passes_on("tensorflow", __file__)
