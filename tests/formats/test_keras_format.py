"""The format suite on Keras archives."""

import keras
import numpy as np

from keraunos.learners.keras_archive import to_archive
from keraunos.learners.keras_variables import read_vector
from tests.conformance import learner_models as models
from tests.conformance.format_suite import FormatSuite


class Doubling(keras.layers.Layer):
    def call(self, inputs):
        return 2 * inputs


class TestKerasFormat(FormatSuite):
    name = "keras"
    features = models.FEATURES

    def backend(self):
        return keras.config.backend()

    def model(self):
        return models.dense("adam")

    def vector(self, model):
        return read_vector(model)

    def targets(self, inputs):
        return (inputs[:, 0] > 0).astype("int64") + (inputs[:, 1] > 0)

    def untrusted(self):
        model = keras.Sequential([keras.Input((2,)), Doubling(), keras.layers.Dense(1)])
        return to_archive(model, {"Doubling": Doubling}), Doubling.__module__

    def test_an_optimizers_state_is_left_out(self):
        model = self.model()
        batch = self.batch()
        model.train_on_batch(batch.inputs, batch.targets)
        archive = self.kind.write(model).archive
        assert len(self.kind.without_optimizer(archive)) < len(archive)
        np.testing.assert_allclose(
            self.kind.read(self.kind.without_optimizer(archive)).predict_on_batch(batch.inputs),
            model.predict_on_batch(batch.inputs),
            rtol=1e-6,
        )

    def test_its_title_is_its_class_and_name(self):
        assert self.kind.title(self.source().archive).startswith("Sequential 'sequential")
        assert self.kind.title(b"nonsense") == "a model"
