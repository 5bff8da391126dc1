"""The learner suite on TensorFlow: in a process of its own, since Keras has one backend a process."""

import keras
import pytest

from keraunos.testing.learner_batches import reduced, rows
from tests.conformance import learner_models as models
from tests.conformance.keras_learner_suite import KerasLearnerSuite
from tests.conformance.own_process import passes_on

if keras.config.backend() == "tensorflow":

    class TestKerasTensorFlow(KerasLearnerSuite):
        backend = "tensorflow"

        def test_models_one_after_the_other_in_one_process_are_not_told_to_retrace(self, caplog):
            """A worker's process trains the model of one fit after the other: each is traced once, as it has to be."""
            with caplog.at_level("WARNING", logger="tensorflow"):
                for _ in range(6):
                    batch = rows(6)
                    learner = self.learner(models.dense("adam"), batch)
                    for count in (6, 6, 4):  # the last batch of an epoch is shorter
                        contribution = learner.gradient(rows(count))
                        learner.apply(reduced([contribution], learner.layout))
                    learner.write(learner.read())
                    learner.take_metrics()
            assert "retracing" not in caplog.text

else:

    @pytest.mark.slow
    def test_the_suite_passes_in_a_process_of_its_own():
        passes_on("tensorflow", __file__)
