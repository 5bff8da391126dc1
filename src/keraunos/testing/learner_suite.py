"""Tests for a learner of any framework.

A test class inherits `LearnerSuite` and defines its models. The suite compares the learner with the plain model, which
its own framework trains in the same process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pytest

from keraunos.batch import Array, Arrays, Batch
from keraunos.learners.learner import Learner
from keraunos.parameters import Vector
from keraunos.testing.learner_batches import (
    assert_close,
    assert_states_equal,
    binary_rows,
    joined,
    kept,
    reduced,
    rows,
    slices,
)


class PlainModels(Protocol):
    """The models that a learner is tested with. Each call returns a new model with the same initial parameters.

    Any module or object with these functions can be used. A plain model is an object of the framework with a method
    `train_on_batch(inputs, targets)`. Except for models with several inputs or outputs, it takes `FEATURES` numbers per
    row and has a softmax over `CLASSES` classes, a sparse cross entropy, and the accuracy as a metric.
    """

    def dense(self, optimizer: str, /) -> Any:
        """Returns two dense layers; `optimizer` is `"sgd"` with a learning rate of 0.1, or `"adam"`."""

    def batch_norm(self) -> Any:
        """Returns a dense layer of 8 units, batch normalization and dropout, with SGD."""

    def dropout(self) -> Any:
        """Returns a model with dropout of half of a layer, with SGD."""

    def binary(self) -> Any:
        """Returns a model with metrics besides the loss, for targets 0 and 1."""

    def two_inputs(self) -> tuple[Any, Sequence[Batch]]:
        """Returns a model whose inputs have names, and batches for it; some inputs are doubles."""

    def two_outputs(self) -> tuple[Any, Sequence[Batch]]:
        """Returns a model with the outputs `left` and `right`, and batches for it."""


class MetricsReader(Protocol):
    """Computes results from metric states, as the driver does."""

    def read(self, states: Sequence[Any], /) -> Mapping[str, float]:
        """Returns the metrics over all states by name; the loss is the first."""


class LearnerSuite:
    """Inherit it and define `models` and the methods that raise `NotImplementedError`."""

    models: PlainModels

    def load(self, model: Any) -> Learner:
        """Returns a new learner of the model, not prepared yet, as a worker gets it."""
        raise NotImplementedError

    def vector(self, model: Any) -> Vector:
        """Returns the plain model's parameters as one vector."""
        raise NotImplementedError

    def weights(self, model: Any) -> Sequence[Array]:
        """Returns the plain model's parameters as arrays, in any order."""
        raise NotImplementedError

    def trained(self, model: Any) -> int:
        """Returns how many variables gradients train."""
        raise NotImplementedError

    def predicted(self, model: Any, inputs: Arrays) -> Any:
        """Returns the plain model's predictions: an array, or a list of arrays."""
        raise NotImplementedError

    def evaluated(self, model: Any, batch: Batch) -> Mapping[str, float]:
        """Returns the plain model's metrics by name."""
        raise NotImplementedError

    def reader(self, model: Any, batch: Batch) -> MetricsReader:
        """Returns an object that computes results from the states that `take_metrics` returns."""
        raise NotImplementedError

    def rows_in(self, state: Sequence[Array]) -> float:
        """Returns over how many rows the loss in a state was summed."""
        raise NotImplementedError

    def learner(self, model: Any, example: Batch, *, rank: int = 0) -> Learner:
        """Returns a learner of the model that is prepared to step."""
        learner = self.load(model)
        learner.prepare(example, seed=7, rank=rank)
        return learner

    def test_the_vector_comes_back_as_it_was_written(self) -> None:
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

    def test_trainable_variables_come_first_and_random_states_stay_out(self) -> None:
        model = self.models.batch_norm()
        layout = self.learner(model, rows(4)).layout
        assert layout.trainable == self.trained(model)
        assert layout.state_size == 2 * 8
        assert layout.size == sum(np.size(weight) for weight in self.weights(model))

    @pytest.mark.parametrize("optimizer", ["sgd", "adam"])
    def test_steps_move_like_the_plain_model(self, optimizer: str) -> None:
        model = self.models.dense(optimizer)
        learner = self.learner(model, rows(8))
        for i in range(20):
            batch = rows(8, seed=i)
            learner.step(batch)
            model.train_on_batch(batch.inputs, batch.targets)
        assert_close(learner.read(), self.vector(model))

    @pytest.mark.parametrize("name", ["adam", "dropout", "batch statistics"])
    def test_several_steps_in_one_call_are_those_steps_to_the_bit(self, name: str) -> None:
        made = {
            "adam": lambda: self.models.dense("adam"),
            "dropout": self.models.dropout,
            "batch statistics": self.models.batch_norm,
        }[name]
        # A learner may take batches of one shape in one call; the last batches of an epoch differ.
        batches = [rows(size, seed=seed) for seed, size in enumerate([8] * 70 + [5, 8, 8, 3])]
        # One after the other: random numbers may be those of the process, from when a learner is prepared.
        together = self.learner(made(), batches[0])
        together.step(batches[0])
        assert together.steps(iter(batches)) == sum(batch.rows for batch in batches)
        single = self.learner(made(), batches[0])
        for batch in [batches[0], *batches]:
            single.step(batch)
        np.testing.assert_array_equal(together.read(), single.read())
        for ours, theirs in zip(together.optimizer_state(), single.optimizer_state(), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(together.take_losses(), single.take_losses())
        for ours, theirs in zip(together.take_metrics(), single.take_metrics(), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        assert together.steps(iter([])) == 0

    def test_vectors_from_the_host_and_from_the_device_are_the_same(self) -> None:
        model, batch = self.models.batch_norm(), rows(8)
        device = self.learner(model, batch)
        there = device.gradient(batch)
        host = self.learner(model, batch)
        here = host.gradient(batch)
        vector = host.on_host(here.values)
        assert isinstance(vector, np.ndarray)
        assert host.on_host(vector) is vector
        assert device.is_finite(there.values)
        assert host.is_finite(vector)
        for learner in (device, host):
            assert not learner.is_finite(np.full(3, np.inf, learner.layout.dtype))
            assert not learner.is_finite(np.full(3, 1e30, learner.layout.dtype), factor=1e300)
        np.testing.assert_array_equal(device.on_host(there.values), vector)
        # Once as the learner returned it, and once from host memory: as a gradient, and as parameters.
        for learner, given in ((device, there.values), (host, vector.copy())):
            learner.apply(given)
        np.testing.assert_array_equal(device.read(), host.read())
        there = device.gradient(batch)
        vector = device.on_host(there.values).copy()
        for learner, given in ((device, there.values), (host, vector)):
            learner.write(given)
        np.testing.assert_array_equal(device.read(), host.read())

    @pytest.mark.parametrize("optimizer", ["sgd", "adam"])
    def test_gradient_and_apply_are_a_step(self, optimizer: str) -> None:
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

    def test_three_workers_are_one_process(self) -> None:
        model = self.models.dense("adam")
        learners = [self.learner(model, rows(4), rank=rank) for rank in range(3)]
        for i in range(4):
            batches = [rows(size, seed=10 * i + size) for size in (4, 1, 3)]
            sums = reduced(
                [learner.gradient(b) for learner, b in zip(learners, batches, strict=True)], learners[0].layout
            )
            for learner in learners:
                learner.apply(sums)
            together = joined(batches)
            model.train_on_batch(together.inputs, together.targets)
        for learner in learners:
            assert_close(learner.read(), self.vector(model))

    def test_batch_statistics_travel(self) -> None:
        model = self.models.batch_norm()
        learners = [self.learner(model, rows(4), rank=rank) for rank in range(2)]
        batches = [rows(6, seed=1), rows(2, seed=2)]
        state = learners[0].layout.trainable_size
        alone = []
        for learner, batch in zip(learners, batches, strict=True):
            contribution = kept(learner.gradient(batch))
            alone.append((contribution, learner.read()[state:]))
        sums = reduced([contribution for contribution, _ in alone], learners[0].layout)
        expected = (6 * alone[0][1] + 2 * alone[1][1]) / 8
        assert not np.allclose(alone[0][1], alone[1][1])
        for learner in learners:
            learner.apply(sums)
            np.testing.assert_allclose(learner.read()[state:], expected, rtol=1e-5, atol=1e-7)

    def test_evaluation_equals_the_plain_model_and_changes_nothing(self) -> None:
        model, batch = self.models.binary(), binary_rows(50)
        learner = self.learner(model, batch)
        before, optimizer = learner.read(), learner.optimizer_state()
        for part in slices(batch, 20):
            learner.evaluate(part)
        reader = self.reader(model, batch)
        assert_logs(reader.read([learner.take_metrics()]), self.evaluated(model, batch))
        np.testing.assert_array_equal(learner.read(), before)
        assert_states_equal(learner.optimizer_state(), optimizer)

    def test_metrics_of_three_workers_are_those_of_one_process(self) -> None:
        model, batch = self.models.binary(), binary_rows(90)
        parts = slices(batch, 41)
        learners = [self.learner(model, part, rank=rank) for rank, part in enumerate(parts)]
        for learner, part in zip(learners, parts, strict=True):
            learner.evaluate(part)
        reader = self.reader(model, batch)
        logs = reader.read([learner.take_metrics() for learner in learners])
        assert_logs(logs, self.evaluated(model, batch))
        assert next(iter(logs)) == "loss"

    def test_taking_metrics_resets_them(self) -> None:
        learner = self.learner(self.models.dense("sgd"), rows(4))
        learner.step(rows(4))
        first = learner.take_metrics()
        assert self.rows_in(first) == 4
        assert all(np.all(value == 0) for value in learner.take_metrics())
        learner.evaluate(rows(4))
        assert self.rows_in(learner.take_metrics()) == 4

    def test_predictions_equal_the_plain_models(self) -> None:
        model, batch = self.models.batch_norm(), rows(9)
        learner = self.learner(model, batch)
        outputs: Any = learner.predict(batch.inputs)
        np.testing.assert_allclose(outputs, self.predicted(model, batch.inputs), rtol=1e-5, atol=1e-6)

    def test_several_outputs_are_predicted_by_name(self) -> None:
        model, batches = self.models.two_outputs()
        learner = self.learner(model, batches[0])
        outputs: Any = learner.predict(batches[0].inputs)
        left, right = self.predicted(model, batches[0].inputs)
        assert list(outputs) == ["left", "right"]
        np.testing.assert_allclose(outputs["left"], left, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(outputs["right"], right, rtol=1e-5, atol=1e-6)

    def test_a_learner_that_only_predicts_needs_no_preparation(self) -> None:
        model, batch = self.models.dense("sgd"), rows(3)
        learner = self.load(model)
        outputs: Any = learner.predict(batch.inputs)
        np.testing.assert_allclose(outputs, self.predicted(model, batch.inputs), rtol=1e-5, atol=1e-6)

    def test_optimizer_state_continues_elsewhere(self) -> None:
        model = self.models.dense("adam")
        first, second = self.learner(model, rows(4)), self.learner(model, rows(4), rank=1)
        for i in range(3):
            first.step(rows(4, seed=i))
        second.write(first.read())
        second.restore_optimizer(first.optimizer_state())
        for learner in (first, second):
            learner.step(rows(4, seed=9))
        np.testing.assert_array_equal(first.read(), second.read())

    def test_ranks_draw_their_own_random_numbers_and_one_rank_draws_the_same_again(self) -> None:
        model, batch = self.models.dropout(), rows(16)
        vectors = []
        for rank in (0, 0, 1):
            learner = self.learner(model, batch, rank=rank)
            learner.step(batch)
            vectors.append(learner.read())
        np.testing.assert_array_equal(vectors[0], vectors[1])
        assert not np.array_equal(vectors[0], vectors[2])

    def test_inputs_by_name_and_doubles_are_taken(self) -> None:
        model, batches = self.models.two_inputs()
        learner = self.learner(model, batches[0])
        for batch in batches:
            learner.step(batch)
            model.train_on_batch(batch.inputs, batch.targets)
        assert_close(learner.read(), self.vector(model))


def assert_logs(logs: Mapping[str, float], expected: Mapping[str, float]) -> None:
    """Fail if the names or values of metrics differ from the expected ones."""
    assert set(logs) == set(expected)
    for name, value in expected.items():
        assert logs[name] == pytest.approx(value, rel=1e-5, abs=1e-6), name
