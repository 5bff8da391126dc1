"""The learner suite on JAX."""

import keras

from tests.conformance.learner_suite import LearnerSuite

if keras.config.backend() == "jax":

    class TestKerasJax(LearnerSuite):
        backend = "jax"
