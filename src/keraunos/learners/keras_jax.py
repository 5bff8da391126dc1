"""Keras on JAX. Runs on workers.

Every operation is one call of a compiled function. The model's state lives on the device as lists of arrays, as
Keras's stateless steps take them; the Keras variables themselves are not written after `prepare`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np
import numpy.typing as npt

from keraunos.batch import Arrays, Batch
from keraunos.learners.compile_cache import compile_cache
from keraunos.learners.instance_patch import replaced
from keraunos.learners.keras_jax_groups import StepGroups
from keraunos.learners.keras_jax_programs import Programs, programs_of
from keraunos.learners.keras_learner import KerasLearner, denominators_of
from keraunos.learners.keras_variables import seed_variables
from keraunos.learners.learner import Contribution
from keraunos.parameters import Layout, Vector, is_aligned


def configure(floatx: str) -> None:
    """Set the process up for models of this float type; called before the model is made."""
    cache = compile_cache()
    if cache is not None and not jax.config.jax_compilation_cache_dir:
        jax.config.update("jax_compilation_cache_dir", str(cache))
        # Small models compile in many short pieces; together they are most of a short fit.
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.05)
    # Small steps end sooner where they run at once in this thread; nothing else is left for it to do meanwhile.
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # noqa: FBT003 - jax's own signature
    if floatx == "float64":
        jax.config.update("jax_enable_x64", True)  # noqa: FBT003 - jax's own signature


class KerasJaxLearner(KerasLearner):
    """A compiled Keras model run by JAX."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        if hasattr(model, "_enforce_jax_state_sharding"):
            # Older releases of Keras pin the state to the devices of a distribution here, which there is none of.
            vars(model)["_enforce_jax_state_sharding"] = _state_as_it_is
        self._on_cpu = jax.default_backend() == "cpu"
        self._trained: list[Any] = []
        self._others: list[Any] = []
        self._optimizer: list[Any] = []
        self._metrics: list[Any] = []
        self._groups = StepGroups()
        self._can_loop: bool | None = None
        if model.built:
            self._programs = Programs(model)
            self._take_weights()

    def prepare(self, example: Batch, *, seed: int, rank: int) -> None:
        """Build what needs to know the batches' shapes, and give this rank its own random numbers."""
        if self._optimizer:
            self._give_back()
        super().prepare(example, seed=seed, rank=rank)

    def read(self, out: Vector | None = None) -> Vector:
        """The parameters as one vector."""
        flat = np.asarray(self._programs.flatten(self._trained, self._others))
        if out is None:
            return np.array(flat)
        np.copyto(out, flat)
        return out

    def write(self, vector: Vector) -> None:
        """Set the parameters from one vector."""
        self._trained, self._others = self._programs.unflatten(self._given(vector), self._others)
        self._settle(self._trained)

    def step(self, batch: Batch) -> None:
        """One step with the model's own optimizer; training metrics accumulate."""
        self._step_through([self._data(batch)])

    def steps(self, batches: Iterable[Batch]) -> int:
        """One step for each batch; on a device those of one form in one call, which waits for nobody in between."""
        if self._on_cpu or not self._programs.compiled:
            return super().steps(batches)
        rows = 0

        def counted() -> Iterator[Any]:
            nonlocal rows
            for batch in batches:
                rows += batch.rows
                yield self._data(batch)

        for group in self._groups.of(counted()):
            self._step_through(group)
        return rows

    def gradient(self, batch: Batch) -> Contribution:
        """The gradient at the current parameters; float state and training metrics move, parameters do not."""
        data = self._given(self._data(batch))
        values, elements, self._others, self._metrics = self._programs.gradient(
            self._trained, self._others, self._optimizer, self._metrics, data
        )
        self._settle([values])
        parts = self._programs.parts[batch.weights is not None]
        return Contribution(values, denominators_of(parts, batch.rows, elements), batch.rows)

    def count_parts(self, batch: Batch) -> int:
        """How many parts the contribution for such a batch has; nothing is computed and nothing changes."""
        state = (self._trained, self._others, self._optimizer, self._metrics)
        jax.eval_shape(self._programs.gradient, *state, self._data(batch))
        return len(self._programs.parts[batch.weights is not None])

    def apply(self, reduced: Vector) -> None:
        """Apply a gradient with the model's own optimizer and set the float state: one vector of the whole layout."""
        self._trained, self._others, self._optimizer = self._programs.apply(
            self._trained, self._others, self._optimizer, self._given(reduced)
        )
        self._settle(self._trained)

    def evaluate(self, batch: Batch) -> None:
        """Accumulate the validation metrics of a batch; nothing else changes."""
        self._metrics = self._programs.test(self._metrics, self._trained, self._others, self._given(self._data(batch)))
        self._settle(self._metrics)

    def predict(self, inputs: Arrays) -> Arrays:
        """The model's outputs in inference mode: one array, or one a name for a model with several outputs."""
        return self._named(self._programs.predict(self._trained, self._others, self._arrays(inputs)))

    def read_metrics(self) -> list[npt.NDArray[np.float64]]:
        """The metrics' state since they were last taken, training and validation alike."""
        return [np.array(value, dtype=np.float64) for value in self._metrics]

    def take_metrics(self) -> list[npt.NDArray[np.float64]]:
        """What `read_metrics` gives; the metrics are then reset."""
        taken = self.read_metrics()
        self._metrics = self._fresh_metrics()
        return taken

    def optimizer_state(self) -> list[npt.NDArray[Any]]:
        """The optimizer's variables."""
        return [np.array(value) for value in self._optimizer]

    def restore_optimizer(self, state: Sequence[npt.NDArray[Any]]) -> None:
        """Set the optimizer's variables to what `optimizer_state` gave."""
        self._optimizer = [jnp.array(value, dtype=now.dtype) for value, now in zip(state, self._optimizer, strict=True)]

    def _read_learning_rate(self) -> float:
        mapping = list(zip(self.model.optimizer.variables, self._optimizer, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            return float(np.asarray(keras.ops.convert_to_tensor(self.model.optimizer.learning_rate)))

    def _metric_value(self, at: int) -> float:
        return float(self._metrics[at])

    def _write_learning_rate(self, value: float) -> None:
        index = self._learning_rate_index()
        self._optimizer[index] = jnp.array(value, dtype=self._optimizer[index].dtype)

    def _give_back(self) -> None:
        """Put the state into the Keras variables, whose own arrays the steps have consumed."""
        variables = [*self.model.trainable_variables, *self.model.non_trainable_variables]
        for variable, value in zip(variables, [*self._trained, *self._others], strict=True):
            variable.assign(value)
        for variable, value in zip(self.model.optimizer.variables, self._optimizer, strict=False):
            variable.assign(value)

    def _seed_states(self) -> list[npt.NDArray[Any]]:
        return [np.array(self._others[index]) for index in self._seed_places()]

    def _set_seed_states(self, states: Sequence[npt.NDArray[Any]]) -> None:
        for index, state in zip(self._seed_places(), states, strict=True):
            self._others[index] = jnp.array(state, dtype=self._others[index].dtype)

    def _seed_places(self) -> list[int]:
        seeds = {id(variable) for variable in seed_variables(self.model)}
        return [place for place, each in enumerate(self.model.non_trainable_variables) if id(each) in seeds]

    def _take_weights(self) -> None:
        model = self.model
        self._trained = [variable.value for variable in model.trainable_variables]
        self._others = [variable.value for variable in model.non_trainable_variables]

    def _prepared(self) -> None:
        self._take_weights()
        model = self.model
        self._optimizer = [variable.value for variable in model.optimizer.variables]
        self._reset = [np.array(variable.value) for variable in model.metrics_variables]
        self._programs = programs_of(model, self)
        self._metrics = self._fresh_metrics()

    def _fresh_metrics(self) -> list[Any]:
        # Arrays of their own every time, which a step may consume.
        return [jnp.array(value) for value in self._reset]

    def _step_through(self, group: Sequence[Any]) -> None:
        """Step with each of some batches of one form, in as few calls as the model admits."""
        state: Any = (self._trained, self._others, self._optimizer, self._metrics)
        if len(group) > 1 and self._can_loop is None:
            self._can_loop = self._programs.can_loop(state, group[0])
        if len(group) > 1 and self._can_loop:
            state = self._programs.steps(state, self._given(self._groups.stacked(group)), len(group))
        else:
            for data in group:
                state = self._programs.step(state, self._given(data))
        self._trained, self._others, self._optimizer, self._metrics = state
        self._settle(self._trained)

    def _given(self, arrays: Any) -> Any:
        """Arrays of the caller, which may change them as soon as the call is over."""
        if self._on_cpu:
            return arrays
        return jax.block_until_ready(jax.device_put(arrays))

    def _settle(self, results: list[Any]) -> None:
        # On the CPU a computation may read the caller's arrays in place, so it has to end before the call does.
        if self._on_cpu and results:
            results[0].block_until_ready()


class CompiledOptimizer:
    """A built optimizer that a server applies to a vector, as one call of a compiled function.

    Its state stays in the arrays of the last step and is consumed by the next. With `shared`, several threads may call
    `apply` at once: nothing is consumed then, and what a step adds to the parameters is added to them as they are.
    """

    def __init__(self, optimizer: Any, variables: list[Any], layout: Layout, *, shared: bool) -> None:
        self._optimizer = optimizer
        self._variables = variables
        self._layout = layout
        self._shared = shared
        self._own = threading.local()
        cpu = jax.local_devices(backend="cpu")[0]
        self._state: list[Any] = [jax.device_put(variable.value, cpu) for variable in optimizer.variables]
        for variable in variables:
            # Steps take the parameters as an argument; the variables stand for their names and shapes alone.
            variable.value.delete()
        self._scalar = np.dtype(layout.dtype).type
        vector = jax.ShapeDtypeStruct((layout.size,), layout.dtype)
        scalar = jax.ShapeDtypeStruct((), layout.dtype)
        # The result of the last step is consumed too, for its memory alone: the next result takes its place.
        donated = () if shared else (0, 1)
        step = jax.jit(self._moved, donate_argnums=donated, keep_unused=True)
        # Compiled here, because threads that share the optimizer must not trace it at once.
        self._step = step.lower(self._state, vector, vector, vector, scalar, scalar).compile()
        self._spare = jax.device_put(np.zeros(layout.size, layout.dtype), cpu)

    def apply(self, gradient: Vector, parameters: Vector, factor: float, scale: float) -> None:
        """Move the parameters by one step; `factor` is on the gradient, `scale` on the learning rate."""
        scalars = self._scalar(factor), self._scalar(scale)
        gradient = self._readable("gradient", gradient)
        if self._shared:
            before = self._readable("parameters", parameters, copied=True)
            moved, self._state = self._step(self._state, self._spare, gradient, before, *scalars)
            np.add(parameters, np.asarray(moved), out=parameters)
            return
        before = self._readable("parameters", parameters)
        self._spare, self._state = self._step(self._state, self._spare, gradient, before, *scalars)
        np.copyto(parameters, np.asarray(self._spare))

    def finish(self, parameters: Vector) -> None:
        """Put the average in place of the parameters, where the optimizer keeps one."""
        if not self._optimizer.use_ema:
            return
        mapping = list(zip(self._optimizer.variables, self._state, strict=True))
        with keras.StatelessScope(state_mapping=mapping) as scope:
            self._optimizer.finalize_variable_values(self._variables)
        self._layout.join([np.asarray(scope.get_current_value(variable)) for variable in self._variables], parameters)

    def state(self) -> list[npt.NDArray[Any]]:
        """The optimizer's variables."""
        return [np.array(value) for value in self._state]

    def restore(self, state: Sequence[npt.NDArray[Any]]) -> None:
        """Set the optimizer's variables to what `state` gave."""
        self._state = [self._placed(value, now) for value, now in zip(state, self._state, strict=True)]

    def read_learning_rate(self) -> float:
        """The learning rate as it is now."""
        mapping = list(zip(self._optimizer.variables, self._state, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            return float(np.asarray(keras.ops.convert_to_tensor(self._optimizer.learning_rate)))

    def write_learning_rate(self, value: float) -> None:
        """Set the learning rate, which no schedule computes."""
        at = [variable.name for variable in self._optimizer.variables].index("learning_rate")
        self._state = [self._placed(value, now) if i == at else now for i, now in enumerate(self._state)]

    def _readable(self, name: str, vector: Vector, *, copied: bool = False) -> Vector:
        """The vector where JAX reads it in place: itself, or a copy in memory that this thread keeps for it."""
        if is_aligned(vector) and not copied:
            return vector
        kept: Vector | None = getattr(self._own, name, None)
        if kept is None:
            kept = self._layout.empty()
            setattr(self._own, name, kept)
        np.copyto(kept, vector)
        return kept

    def _moved(self, state: Any, _: Any, gradient: Any, parameters: Any, factor: Any, scale: Any) -> Any:
        """Traced: the parameters after a step, or what it adds to them, and the state after it."""
        optimizer, layout = self._optimizer, self._layout
        rate = optimizer._get_current_learning_rate
        with replaced(optimizer, _get_current_learning_rate=lambda: keras.ops.convert_to_tensor(rate()) * scale):
            after, state = optimizer.stateless_apply(state, layout.split(gradient * factor), layout.split(parameters))
        vector = jnp.concatenate([jnp.ravel(each) for each in after])
        return vector - parameters if self._shared else vector, list(state)

    @staticmethod
    def _placed(value: Any, like: Any) -> Any:
        # A copy of its own, because the next step consumes it.
        return jax.device_put(np.array(value, dtype=like.dtype), like.sharding, may_alias=False)


def _state_as_it_is(
    trainable_variables: Any = None,
    non_trainable_variables: Any = None,
    optimizer_variables: Any = None,
    metrics_variables: Any = None,
) -> tuple[Any, ...]:
    return trainable_variables, non_trainable_variables, optimizer_variables, metrics_variables
