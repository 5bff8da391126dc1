"""The learner suite on TensorFlow; `convergence/test_on_tensorflow.py` runs it where Keras is on another backend."""

import keras

from keraunos.testing.learner_batches import reduced, rows
from tests.conformance import learner_models as models
from tests.conformance.keras_learner_suite import KerasLearnerSuite

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
