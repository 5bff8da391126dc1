"""The learner suite on JAX."""

import keras
import numpy as np
import pytest

from tests.conformance import learner_models as models
from tests.conformance.keras_learner_suite import KerasLearnerSuite

if keras.config.backend() == "jax":
    import jax

    from keraunos.learners import keras_jax_groups

    def state_of(learner):
        return learner._trained, learner._others, learner._optimizer, learner._metrics

    class TestKerasJax(KerasLearnerSuite):
        backend = "jax"

    class TestKerasJaxAsOnADevice(KerasLearnerSuite):
        """The way of steps and vectors on a device, run on the CPU: arrays are copied there, and steps go in groups."""

        backend = "jax"

        def learner(self, model, example, *, rank=0):
            learner = super().learner(model, example, rank=rank)
            learner._on_cpu = False
            given = learner._given
            # A CPU's arrays would be those of the caller, where they are aligned.
            learner._given = lambda arrays: given(jax.tree_util.tree_map(np.array, arrays))
            return learner

        @pytest.mark.parametrize("most", [1, 7, 64])
        def test_batches_of_one_form_are_one_call(self, monkeypatch, most):
            monkeypatch.setattr(keras_jax_groups, "_MOST_BATCHES", most)
            model, batches = models.dense("adam"), [models.rows(8, seed=seed) for seed in range(50)]
            learner, called = self.learner(model, batches[0]), []
            monkeypatch.setattr(learner, "_step_through", lambda group: called.append(len(group)))
            for _ in range(2):
                assert learner.steps([*batches, models.rows(3), batches[0]]) == 50 * 8 + 3 + 8
            whole, rest = divmod(50, most)
            assert called == [*[most] * whole, *[rest] * bool(rest), 1, 1] * 2

        def test_large_batches_travel_one_by_one(self, monkeypatch):
            monkeypatch.setattr(keras_jax_groups, "_LARGE_BATCH_BYTES", 100)
            batch = models.rows(8)
            learner, called = self.learner(models.dense("adam"), batch), []
            monkeypatch.setattr(learner, "_step_through", lambda group: called.append(len(group)))
            learner.steps([batch] * 3)
            assert called == [1, 1, 1]

        def test_a_model_whose_state_changes_its_form_in_a_step_takes_single_steps(self, monkeypatch):
            model, batch = models.dense("sgd"), models.rows(8)
            looping, single = (self.learner(model, batch) for _ in range(2))
            programs = single._programs
            # Metrics that a step returns in another precision, say.
            monkeypatch.setattr(programs, "step", lambda state, data: (*state[:3], [each * 1j for each in state[3]]))
            assert not programs.can_loop(state_of(single), single._data(batch))
            monkeypatch.undo()
            monkeypatch.setattr(programs, "can_loop", lambda state, data: False)
            monkeypatch.setattr(programs, "steps", None)
            for learner in (looping, single):
                assert learner.steps([batch] * 5) == 40
            np.testing.assert_array_equal(looping.read(), single.read())
