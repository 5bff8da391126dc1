"""What every learner must do, whatever framework runs it.

A test class inherits `LearnerSuite` and says what its models are, and what the plain model, stepped in the same process
by its own framework, gives: that one is the judge. `KerasLearnerSuite` does so for Keras, and adds what only it has.
"""

import numpy as np
import pytest

from keraunos.formats.registry import load_learner
from tests.conformance.learner_models import binary_rows, joined, rows, slices


class LearnerSuite:
    models = None
    """A module with the factories `dense`, `batch_norm`, `dropout`, `binary`, `two_inputs` and `two_outputs`."""

    def source(self, model):
        """The model as a worker gets it."""
        raise NotImplementedError

    def vector(self, model):
        """The plain model's parameters as one vector."""
        raise NotImplementedError

    def weights(self, model):
        """The plain model's parameters as arrays, in any order."""
        raise NotImplementedError

    def trained(self, model):
        """How many of its variables are trained by gradients."""
        raise NotImplementedError

    def predicted(self, model, inputs):
        """What the plain model predicts: an array, or a list of them."""
        raise NotImplementedError

    def evaluated(self, model, batch):
        """What the plain model measures, by name."""
        raise NotImplementedError

    def reader(self, model, batch):
        """What makes results of the states that `take_metrics` gives."""
        raise NotImplementedError

    def rows_in(self, state):
        """Over how many rows the loss in such a state was summed."""
        raise NotImplementedError

    def learner(self, model, example, *, rank=0):
        learner = load_learner(self.source(model), getattr(self.models, "CUSTOM", None))
        learner.prepare(example, seed=7, rank=rank)
        return learner

    def test_the_vector_comes_back_as_it_was_written(self):
        model, batch = self.models.batch_norm(), rows(6)
        learner = self.learner(model, batch)
        np.testing.assert_array_equal(learner.read(), self.vector(model))
        vector = np.linspace(-1, 1, learner.layout.size, dtype=learner.layout.dtype)
        learner.write(vector)
        given = vector.copy()
        vector[:] = np.nan
        out = np.empty_like(given)
        assert learner.read(out) is out
        np.testing.assert_array_equal(out, given)

    def test_trainable_variables_come_first_and_random_states_stay_out(self):
        model = self.models.batch_norm()
        layout = self.learner(model, rows(4)).layout
        assert layout.trainable == self.trained(model)
        assert layout.state_size == 2 * 8
        assert layout.size == sum(np.size(weight) for weight in self.weights(model))

    @pytest.mark.parametrize("optimizer", ["sgd", "adam"])
    def test_steps_move_like_the_plain_model(self, optimizer):
        model = self.models.dense(optimizer)
        learner = self.learner(model, rows(8))
        for i in range(20):
            batch = rows(8, seed=i)
            learner.step(batch)
            model.train_on_batch(batch.inputs, batch.targets)
        assert_close(learner.read(), self.vector(model))

    @pytest.mark.parametrize("optimizer", ["sgd", "adam"])
    def test_gradient_and_apply_are_a_step(self, optimizer):
        model = self.models.dense(optimizer)
        stepping, applying = self.learner(model, rows(8)), self.learner(model, rows(8))
        for i in range(5):
            batch = rows(8, seed=i)
            stepping.step(batch)
            before = applying.read()
            contribution = kept(applying.gradient(batch))
            np.testing.assert_array_equal(applying.read(), before)
            applying.apply(reduced([contribution], applying.layout))
        assert_close(applying.read(), stepping.read())
        assert_states_equal(applying.take_metrics(), stepping.take_metrics())

    def test_three_workers_are_one_process(self):
        model = self.models.dense("adam")
        learners = [self.learner(model, rows(4), rank=rank) for rank in range(3)]
        for i in range(4):
            batches = [rows(size, seed=10 * i + size) for size in (4, 1, 3)]
            sums = reduced([learner.gradient(b) for learner, b in zip(learners, batches)], learners[0].layout)
            for learner in learners:
                learner.apply(sums)
            together = joined(batches)
            model.train_on_batch(together.inputs, together.targets)
        for learner in learners:
            assert_close(learner.read(), self.vector(model))

    def test_batch_statistics_travel(self):
        model = self.models.batch_norm()
        learners = [self.learner(model, rows(4), rank=rank) for rank in range(2)]
        batches = [rows(6, seed=1), rows(2, seed=2)]
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

    def test_evaluation_equals_the_plain_model_and_changes_nothing(self):
        model, batch = self.models.binary(), binary_rows(50)
        learner = self.learner(model, batch)
        before, optimizer = learner.read(), learner.optimizer_state()
        for part in slices(batch, 20):
            learner.evaluate(part)
        reader = self.reader(model, batch)
        assert_logs(reader.read([learner.take_metrics()]), self.evaluated(model, batch))
        np.testing.assert_array_equal(learner.read(), before)
        assert_states_equal(learner.optimizer_state(), optimizer)

    def test_metrics_of_three_workers_are_those_of_one_process(self):
        model, batch = self.models.binary(), binary_rows(90)
        parts = slices(batch, 41)
        learners = [self.learner(model, part, rank=rank) for rank, part in enumerate(parts)]
        for learner, part in zip(learners, parts):
            learner.evaluate(part)
        reader = self.reader(model, batch)
        logs = reader.read([learner.take_metrics() for learner in learners])
        assert_logs(logs, self.evaluated(model, batch))
        assert next(iter(logs)) == "loss"

    def test_taking_metrics_resets_them(self):
        learner = self.learner(self.models.dense("sgd"), rows(4))
        learner.step(rows(4))
        first = learner.take_metrics()
        assert self.rows_in(first) == 4
        assert all(np.all(value == 0) for value in learner.take_metrics())
        learner.evaluate(rows(4))
        assert self.rows_in(learner.take_metrics()) == 4

    def test_predictions_equal_the_plain_models(self):
        model, batch = self.models.batch_norm(), rows(9)
        learner = self.learner(model, batch)
        np.testing.assert_allclose(
            learner.predict(batch.inputs), self.predicted(model, batch.inputs), rtol=1e-5, atol=1e-6
        )

    def test_several_outputs_are_predicted_by_name(self):
        model, batches = self.models.two_outputs()
        learner = self.learner(model, batches[0])
        outputs = learner.predict(batches[0].inputs)
        left, right = self.predicted(model, batches[0].inputs)
        assert list(outputs) == ["left", "right"]
        np.testing.assert_allclose(outputs["left"], left, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(outputs["right"], right, rtol=1e-5, atol=1e-6)

    def test_a_learner_that_only_predicts_needs_no_preparation(self):
        model, batch = self.models.dense("sgd"), rows(3)
        learner = load_learner(self.source(model))
        np.testing.assert_allclose(
            learner.predict(batch.inputs), self.predicted(model, batch.inputs), rtol=1e-5, atol=1e-6
        )

    def test_optimizer_state_continues_elsewhere(self):
        model = self.models.dense("adam")
        first, second = self.learner(model, rows(4)), self.learner(model, rows(4), rank=1)
        for i in range(3):
            first.step(rows(4, seed=i))
        second.write(first.read())
        second.restore_optimizer(first.optimizer_state())
        for learner in (first, second):
            learner.step(rows(4, seed=9))
        np.testing.assert_array_equal(first.read(), second.read())

    def test_ranks_draw_their_own_random_numbers_and_one_rank_draws_the_same_again(self):
        model, batch = self.models.dropout(), rows(16)
        vectors = []
        for rank in (0, 0, 1):
            learner = self.learner(model, batch, rank=rank)
            learner.step(batch)
            vectors.append(learner.read())
        np.testing.assert_array_equal(vectors[0], vectors[1])
        assert not np.array_equal(vectors[0], vectors[2])

    def test_inputs_by_name_and_doubles_are_taken(self):
        model, batches = self.models.two_inputs()
        learner = self.learner(model, batches[0])
        for batch in batches:
            learner.step(batch)
            model.train_on_batch(batch.inputs, batch.targets)
        assert_close(learner.read(), self.vector(model))


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
