"""What every learner must do, whatever framework runs it.

A test class inherits `LearnerSuite` and names its backend; the process must run Keras on that backend. The plain
Keras model, stepped in the same process, is the judge.
"""

import keras
import numpy as np
import pytest

from keraunos.batch import Batch, BatchSpec
from keraunos.errors import ModelError
from keraunos.job.training_job import ModelSource
from keraunos.learners.keras_archive import from_archive, to_archive
from keraunos.learners.keras_variables import layout_of, read_vector
from keraunos.learners.metric_states import MetricReader
from keraunos.learners.registry import load_learner
from tests.conformance import learner_models as models


class LearnerSuite:
    backend = ""

    def learner(self, model, example, *, rank=0):
        learner = load_learner(ModelSource(to_archive(model), self.backend, keras.config.floatx()), models.CUSTOM)
        learner.prepare(example, seed=7, rank=rank)
        return learner

    def test_the_vector_comes_back_as_it_was_written(self):
        model, batch = models.batch_norm(), models.rows(6)
        learner = self.learner(model, batch)
        np.testing.assert_array_equal(learner.read(), read_vector(model))
        vector = np.linspace(-1, 1, learner.layout.size, dtype=learner.layout.dtype)
        learner.write(vector)
        given = vector.copy()
        vector[:] = np.nan
        out = np.empty_like(given)
        assert learner.read(out) is out
        np.testing.assert_array_equal(out, given)

    def test_trainable_variables_come_first_and_random_states_stay_out(self):
        model = models.batch_norm()
        layout = self.learner(model, models.rows(4)).layout
        assert layout.trainable == len(model.trainable_variables)
        assert layout.state_size == 2 * 8
        assert layout.size == sum(int(np.prod(weight.shape)) for weight in model.get_weights())

    def test_frozen_layers_stay_as_they_were_and_out_of_the_vector(self):
        model, batch = models.batch_norm(), models.rows(5)
        model.layers[0].trainable = False
        model.compile(keras.optimizers.SGD(0.1), "sparse_categorical_crossentropy")
        learner = self.learner(model, batch)
        moving = sum(int(np.prod(weight.shape)) for weight in model.weights[2:])
        assert learner.layout.size == moving
        before = learner.predict(batch.inputs)
        learner.apply(reduced([learner.gradient(batch)], learner.layout))
        assert not np.allclose(learner.predict(batch.inputs), before)
        assert layout_of(model).shapes == learner.layout.shapes

    @pytest.mark.parametrize("optimizer", ["sgd", "adam"])
    def test_steps_move_like_plain_keras(self, optimizer):
        model = models.dense(optimizer)
        learner = self.learner(model, models.rows(8))
        for i in range(20):
            batch = models.rows(8, seed=i)
            learner.step(batch)
            model.train_on_batch(batch.inputs, batch.targets)
        assert_close(learner.read(), read_vector(model))

    @pytest.mark.parametrize("optimizer", ["sgd", "adam"])
    def test_gradient_and_apply_are_a_step(self, optimizer):
        model = models.dense(optimizer)
        stepping, applying = self.learner(model, models.rows(8)), self.learner(model, models.rows(8))
        for i in range(5):
            batch = models.rows(8, seed=i)
            stepping.step(batch)
            before = applying.read()
            contribution = kept(applying.gradient(batch))
            np.testing.assert_array_equal(applying.read(), before)
            applying.apply(reduced([contribution], applying.layout))
        assert_close(applying.read(), stepping.read())
        assert_states_equal(applying.take_metrics(), stepping.take_metrics())

    @pytest.mark.parametrize("case", models.LOSSES, ids=lambda case: case.__name__)
    def test_contributions_add_up_to_the_global_batch(self, case):
        model, batches = case()
        learner = self.learner(model, batches[0])
        for _ in range(3):
            learner.apply(reduced([kept(learner.gradient(batch)) for batch in batches], learner.layout))
            joined = models.joined(batches)
            model.train_on_batch(joined.inputs, models.as_outputs(model, joined.targets), joined.weights)
        assert_close(learner.read(), read_vector(model))

    @pytest.mark.parametrize("case", [models.mean_over_rows, models.sum_and_regulariser], ids=["one", "two"])
    def test_the_parts_of_a_contribution_can_be_counted_beforehand(self, case):
        model, batches = case()
        learner = self.learner(model, batches[0])
        count = learner.count_parts(batches[0])
        assert all(np.all(value == 0) for value in learner.take_metrics())
        assert count == len(learner.gradient(batches[0]).denominators)

    def test_three_workers_are_one_process(self):
        model = models.dense("adam")
        learners = [self.learner(model, models.rows(4), rank=rank) for rank in range(3)]
        for i in range(4):
            batches = [models.rows(size, seed=10 * i + size) for size in (4, 1, 3)]
            sums = reduced([learner.gradient(b) for learner, b in zip(learners, batches)], learners[0].layout)
            for learner in learners:
                learner.apply(sums)
            joined = models.joined(batches)
            model.train_on_batch(joined.inputs, joined.targets)
        for learner in learners:
            assert_close(learner.read(), read_vector(model))

    def test_batch_statistics_travel(self):
        model = models.batch_norm()
        learners = [self.learner(model, models.rows(4), rank=rank) for rank in range(2)]
        batches = [models.rows(6, seed=1), models.rows(2, seed=2)]
        state = learners[0].layout.trainable_size
        alone = []
        for learner, batch in zip(learners, batches):
            contribution = kept(learner.gradient(batch))
            alone.append((contribution, learner.read()[state:]))
        sums = reduced([contribution for contribution, _ in alone], learners[0].layout)
        expected = (6 * alone[0][1] + 2 * alone[1][1]) / 8
        assert not np.allclose(alone[0][1], alone[1][1])
        for learner in learners:
            learner.apply(sums)
            np.testing.assert_allclose(learner.read()[state:], expected, rtol=1e-5, atol=1e-7)

    def test_evaluation_equals_keras_and_changes_nothing(self):
        model, batch = models.binary(), models.binary_rows(50)
        learner = self.learner(model, batch)
        before, optimizer = learner.read(), learner.optimizer_state()
        for part in models.slices(batch, 20):
            learner.evaluate(part)
        reader = MetricReader(from_archive(to_archive(model), models.CUSTOM), BatchSpec.of(batch))
        assert_logs(reader.read([learner.take_metrics()]), evaluated(model, batch))
        np.testing.assert_array_equal(learner.read(), before)
        assert_states_equal(learner.optimizer_state(), optimizer)

    def test_metrics_of_three_workers_are_those_of_one_process(self):
        model, batch = models.binary(), models.binary_rows(90)
        parts = models.slices(batch, 41)
        learners = [self.learner(model, part, rank=rank) for rank, part in enumerate(parts)]
        for learner, part in zip(learners, parts):
            learner.evaluate(part)
        reader = MetricReader(from_archive(to_archive(model), models.CUSTOM), BatchSpec.of(batch))
        logs = reader.read([learner.take_metrics() for learner in learners])
        assert_logs(logs, evaluated(model, batch))
        assert next(iter(logs)) == "loss"

    def test_taking_metrics_resets_them(self):
        learner = self.learner(models.dense("sgd"), models.rows(4))
        learner.step(models.rows(4))
        first = learner.take_metrics()
        assert first[1] == 4
        assert all(np.all(value == 0) for value in learner.take_metrics())
        learner.evaluate(models.rows(4))
        assert learner.take_metrics()[1] == 4

    def test_predictions_equal_keras(self):
        model, batch = models.batch_norm(), models.rows(9)
        learner = self.learner(model, batch)
        np.testing.assert_allclose(
            learner.predict(batch.inputs), model.predict(batch.inputs, verbose=0), rtol=1e-5, atol=1e-6
        )

    def test_several_outputs_are_predicted_by_name(self):
        model, batches = models.two_outputs()
        learner = self.learner(model, batches[0])
        outputs = learner.predict(batches[0].inputs)
        left, right = model.predict(batches[0].inputs, verbose=0)
        assert list(outputs) == ["left", "right"]
        np.testing.assert_allclose(outputs["left"], left, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(outputs["right"], right, rtol=1e-5, atol=1e-6)

    def test_a_learner_that_only_predicts_needs_no_preparation(self):
        model, batch = models.dense("sgd"), models.rows(3)
        learner = load_learner(ModelSource(to_archive(model), self.backend))
        np.testing.assert_allclose(
            learner.predict(batch.inputs), model.predict(batch.inputs, verbose=0), rtol=1e-5, atol=1e-6
        )

    def test_optimizer_state_continues_elsewhere(self):
        model = models.dense("adam")
        first, second = self.learner(model, models.rows(4)), self.learner(model, models.rows(4), rank=1)
        for i in range(3):
            first.step(models.rows(4, seed=i))
        second.write(first.read())
        second.restore_optimizer(first.optimizer_state())
        for learner in (first, second):
            learner.step(models.rows(4, seed=9))
        np.testing.assert_array_equal(first.read(), second.read())

    def test_a_learning_rate_that_is_set_reaches_the_step(self):
        learner = self.learner(models.dense("sgd"), models.rows(4))
        assert learner.learning_rate == pytest.approx(0.1)
        learner.step(models.rows(4))
        learner.learning_rate = 0.0
        assert learner.learning_rate == 0.0
        before = learner.read()
        learner.step(models.rows(4))
        np.testing.assert_array_equal(learner.read(), before)

    def test_a_schedule_is_read_but_not_set(self):
        schedule = keras.optimizers.schedules.ExponentialDecay(0.5, decay_steps=1, decay_rate=0.5)
        learner = self.learner(models.dense(keras.optimizers.SGD(schedule)), models.rows(4))
        learner.step(models.rows(4))
        assert learner.learning_rate == pytest.approx(0.25)
        with pytest.raises(ModelError, match="schedule"):
            learner.learning_rate = 0.1

    def test_loss_scaling_is_kept(self):
        model, batch = models.half_precision(), models.rows(8)
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
        model, batch = models.half_precision(), models.rows(8)
        learner = self.learner(model, batch)
        before, scale = learner.read(), max(float(np.max(value)) for value in learner.optimizer_state())
        learner.apply(np.full(learner.layout.size, np.inf, dtype=learner.layout.dtype))
        np.testing.assert_array_equal(learner.read(), before)
        assert max(float(np.max(value)) for value in learner.optimizer_state()) == scale / 2

    def test_a_custom_train_step_is_used(self):
        batch = models.rows(8)
        custom, plain = models.clipped_step(), models.dense("sgd")
        custom.set_weights(plain.get_weights())
        stepping, applying, other = (self.learner(model, batch) for model in (custom, custom, plain))
        for learner in (stepping, other):
            learner.step(batch)
        applying.apply(reduced([applying.gradient(batch)], applying.layout))
        assert_close(applying.read(), stepping.read())
        assert not np.allclose(stepping.read(), other.read())

    def test_a_custom_loss_computation_is_used(self):
        batches = [models.rows(5, seed=1), models.rows(3, seed=2)]
        model = models.own_loss()
        learner = self.learner(model, batches[0])
        learner.apply(reduced([kept(learner.gradient(batch)) for batch in batches], learner.layout))
        joined = models.joined(batches)
        model.train_on_batch(joined.inputs, joined.targets)
        assert_close(learner.read(), read_vector(model))

    def test_a_step_that_applies_the_optimizer_twice_is_refused_with_gradients(self):
        batch = models.rows(8)
        learner = self.learner(models.double_step(), batch)
        before = learner.read()
        learner.step(batch)
        assert not np.array_equal(learner.read(), before)
        with pytest.raises(ModelError, match="exchange='averaging'"):
            learner.gradient(batch)

    def test_ranks_draw_their_own_random_numbers_and_one_rank_draws_the_same_again(self):
        model, batch = models.dropout(), models.rows(16)
        vectors = []
        for rank in (0, 0, 1):
            learner = self.learner(model, batch, rank=rank)
            learner.step(batch)
            vectors.append(learner.read())
        np.testing.assert_array_equal(vectors[0], vectors[1])
        assert not np.array_equal(vectors[0], vectors[2])

    def test_inputs_by_name_and_doubles_are_taken(self):
        model, batches = models.two_inputs()
        learner = self.learner(model, batches[0])
        for batch in batches:
            learner.step(batch)
            model.train_on_batch(batch.inputs, batch.targets)
        assert_close(learner.read(), read_vector(model))


def reduced(contributions, layout):
    """What the docstring of `Contribution` says, in float64."""
    size = layout.trainable_size
    rows = sum(contribution.rows for contribution in contributions)
    total = sum(np.asarray(contribution.values, np.float64) for contribution in contributions)
    vector = np.zeros(layout.size)
    parts = len(contributions[0].denominators)
    for part in range(parts):
        numerator = total[part * size : (part + 1) * size]
        denominators = [contribution.denominators[part] for contribution in contributions]
        if denominators[0] is None:
            vector[:size] += numerator
        elif sum(denominators):
            vector[:size] += numerator / sum(denominators)
    vector[size:] = total[parts * size :] / rows
    return vector.astype(layout.dtype)


def kept(contribution):
    """A contribution whose values survive the learner's next call."""
    return type(contribution)(np.array(contribution.values), contribution.denominators, contribution.rows)


def evaluated(model, batch):
    return model.evaluate(batch.inputs, batch.targets, verbose=0, return_dict=True)


def assert_close(vector, expected, limit=2e-5):
    difference = np.linalg.norm(vector - expected) / np.linalg.norm(expected)
    assert difference < limit, difference


def assert_states_equal(state, expected):
    assert len(state) == len(expected)
    for value, other in zip(state, expected):
        np.testing.assert_allclose(value, other, rtol=1e-5, atol=1e-6)


def assert_logs(logs, expected):
    assert set(logs) == set(expected)
    for name, value in expected.items():
        assert logs[name] == pytest.approx(value, rel=1e-5, abs=1e-6), name


__all__ = ["Batch", "LearnerSuite"]
