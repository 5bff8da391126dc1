"""What every learner of a Keras model must do besides; plain Keras, stepped in the same process, is the judge.

A test class names its backend; the process must run Keras on it.
"""

import keras
import numpy as np
import pytest

from keraunos.batch import BatchSpec
from keraunos.errors import ModelError
from keraunos.formats.registry import load_learner
from keraunos.learners.keras_archive import from_archive, live_source, to_archive
from keraunos.learners.keras_variables import layout_of, read_vector
from keraunos.learners.metric_states import MetricReader
from keraunos.testing.learner_batches import assert_close, joined, kept, reduced, rows
from keraunos.testing.learner_suite import LearnerSuite
from tests.conformance import learner_models as models

# Layers that no loss depends on have no gradient, of which Keras warns on TensorFlow and torch.
NO_GRADIENT = pytest.mark.filterwarnings("ignore:Gradients do not exist for variables:UserWarning")


class KerasLearnerSuite(LearnerSuite):
    backend = ""
    models = models

    def load(self, model):
        return load_learner(live_source(model, backend=self.backend), models.CUSTOM)

    def vector(self, model):
        return read_vector(model)

    def weights(self, model):
        return model.get_weights()

    def trained(self, model):
        return len(model.trainable_variables)

    def predicted(self, model, inputs):
        return model.predict(inputs, verbose=0)

    def evaluated(self, model, batch):
        return model.evaluate(batch.inputs, batch.targets, verbose=0, return_dict=True)

    def reader(self, model, batch):
        return MetricReader(from_archive(to_archive(model), models.CUSTOM), BatchSpec.of(batch))

    def rows_in(self, state):
        return state[1]

    def test_frozen_layers_stay_as_they_were_and_out_of_the_vector(self):
        model, batch = models.batch_norm(), rows(5)
        model.layers[0].trainable = False
        model.compile(keras.optimizers.SGD(0.1), "sparse_categorical_crossentropy")
        learner = self.learner(model, batch)
        moving = sum(int(np.prod(weight.shape)) for weight in model.weights[2:])
        assert learner.layout.size == moving
        before = learner.predict(batch.inputs)
        learner.apply(reduced([learner.gradient(batch)], learner.layout))
        assert not np.allclose(learner.predict(batch.inputs), before)
        assert layout_of(model).shapes == learner.layout.shapes

    @NO_GRADIENT
    @pytest.mark.parametrize("case", models.LOSSES, ids=lambda case: case.__name__)
    def test_contributions_add_up_to_the_global_batch(self, case):
        model, batches = case()
        learner = self.learner(model, batches[0])
        for _ in range(3):
            learner.apply(reduced([kept(learner.gradient(batch)) for batch in batches], learner.layout))
            together = joined(batches)
            model.train_on_batch(together.inputs, models.as_outputs(model, together.targets), together.weights)
        assert_close(learner.read(), read_vector(model))

    @pytest.mark.parametrize("case", [models.mean_over_rows, models.sum_and_regulariser], ids=["one", "two"])
    def test_the_parts_of_a_contribution_can_be_counted_beforehand(self, case):
        model, batches = case()
        learner = self.learner(model, batches[0])
        count = learner.count_parts(batches[0])
        assert all(np.all(value == 0) for value in learner.take_metrics())
        assert count == len(learner.gradient(batches[0]).denominators)

    def test_a_learning_rate_that_is_set_reaches_the_step(self):
        learner = self.learner(models.dense("sgd"), rows(4))
        assert learner.learning_rate == pytest.approx(0.1)
        learner.step(rows(4))
        learner.learning_rate = 0.0
        assert learner.learning_rate == 0.0
        before = learner.read()
        learner.step(rows(4))
        np.testing.assert_array_equal(learner.read(), before)

    def test_a_schedule_is_read_but_not_set(self):
        schedule = keras.optimizers.schedules.ExponentialDecay(0.5, decay_steps=1, decay_rate=0.5)
        learner = self.learner(models.dense(keras.optimizers.SGD(schedule)), rows(4))
        learner.step(rows(4))
        assert learner.learning_rate == pytest.approx(0.25)
        with pytest.raises(ModelError, match="schedule"):
            learner.learning_rate = 0.1

    def test_loss_scaling_is_kept(self):
        model, batch = models.half_precision(), rows(8)
        stepping, applying = self.learner(model, batch), self.learner(model, batch)
        plain = kept(self.learner(models.dense("sgd"), batch).gradient(batch))
        scaled = kept(applying.gradient(batch))
        assert np.linalg.norm(scaled.values) > 1000 * np.linalg.norm(plain.values)
        before = applying.read()
        applying.apply(reduced([scaled], applying.layout))
        stepping.step(batch)
        assert not np.array_equal(applying.read(), before)
        assert_close(applying.read() - before, stepping.read() - before, limit=1e-2)

    def test_a_gradient_that_is_not_finite_is_skipped_and_lowers_the_scale(self):
        model, batch = models.half_precision(), rows(8)
        learner = self.learner(model, batch)
        before, scale = learner.read(), max(float(np.max(value)) for value in learner.optimizer_state())
        learner.apply(np.full(learner.layout.size, np.inf, dtype=learner.layout.dtype))
        np.testing.assert_array_equal(learner.read(), before)
        assert max(float(np.max(value)) for value in learner.optimizer_state()) == scale / 2

    def test_a_custom_train_step_is_used(self):
        batch = rows(8)
        custom, plain = models.clipped_step(), models.dense("sgd")
        custom.set_weights(plain.get_weights())
        stepping, applying, other = (self.learner(model, batch) for model in (custom, custom, plain))
        for learner in (stepping, other):
            learner.step(batch)
        applying.apply(reduced([applying.gradient(batch)], applying.layout))
        assert_close(applying.read(), stepping.read())
        assert not np.allclose(stepping.read(), other.read())

    def test_a_custom_loss_computation_is_used(self):
        batches = [rows(5, seed=1), rows(3, seed=2)]
        model = models.own_loss()
        learner = self.learner(model, batches[0])
        learner.apply(reduced([kept(learner.gradient(batch)) for batch in batches], learner.layout))
        together = joined(batches)
        model.train_on_batch(together.inputs, together.targets)
        assert_close(learner.read(), read_vector(model))

    def test_a_step_that_applies_the_optimizer_twice_is_refused_with_gradients(self):
        batch = rows(8)
        learner = self.learner(models.double_step(), batch)
        before = learner.read()
        learner.step(batch)
        assert not np.array_equal(learner.read(), before)
        with pytest.raises(ModelError, match="exchange='averaging'"):
            learner.gradient(batch)

    @NO_GRADIENT
    @pytest.mark.parametrize("name", ["added_loss", "rebuilding", "unlabelled_step"])
    def test_models_without_labels_train_as_in_plain_keras(self, name):
        model, batches = getattr(models, name)(), [models.unlabelled_rows(6, seed) for seed in (1, 2, 3)]
        stepping, applying = self.learner(model, batches[0]), self.learner(model, batches[0])
        start = stepping.read()
        for batch in batches:
            stepping.step(batch)
            applying.apply(reduced([applying.gradient(batch)], applying.layout))
            model.fit(batch.inputs, batch_size=batch.rows, verbose=0)
        assert_close(stepping.read(), read_vector(model))
        assert_close(applying.read(), read_vector(model))
        assert not np.allclose(stepping.read(), start)

    @NO_GRADIENT
    def test_outputs_without_a_loss_are_still_predicted(self):
        model, batches = models.a_loss_for_one_of_two_outputs()
        learner = self.learner(model, batches[0])
        learner.step(batches[0])
        learner.evaluate(batches[0])
        assert set(learner.predict(batches[0].inputs)) == {"left", "right"}
