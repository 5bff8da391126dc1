"""The learner suite on JAX."""

import keras

from tests.conformance.keras_learner_suite import KerasLearnerSuite

if keras.config.backend() == "jax":

    class TestKerasJax(KerasLearnerSuite):
        backend = "jax"
