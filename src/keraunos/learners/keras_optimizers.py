"""Any Keras optimizer on a flat vector, as a server applies it. Runs where the parameters live.

The optimizer sees variables of the names and shapes that it would see in one process, so that what depends on them
(weight decay by name, Muon's matrices, a norm of each variable) comes out the same. On JAX a step is one compiled call;
elsewhere Keras applies it. The global norm of a gradient spans slices, so it is handed in and clipped by here.
"""

from __future__ import annotations

import copy
import importlib
import math
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import keras
import numpy as np
import numpy.typing as npt

from keraunos.errors import JobError, PlanError, one_of
from keraunos.job.rule_spec import KERAS_OBJECT, KERAS_OPTIMIZERS, RuleSpec
from keraunos.learners.instance_patch import replaced
from keraunos.parameters import Layout, Vector

# What a configuration may say besides the optimizer's own arguments.
_EXCLUDED = "exclude_from_weight_decay"


class ServerOptimizer:
    """An optimizer and its state for some variables that lie one behind the other in a vector.

    With `shared`, several threads may apply at once: each computes its step from the state and the parameters as it
    finds them and adds it to the parameters, without waiting for the others. On TensorFlow and torch the computing,
    not the adding, is done by one thread at a time.
    """

    def __init__(
        self, spec: RuleSpec, variables: Sequence[tuple[str, tuple[int, ...]]], dtype: str, *, shared: bool = False
    ) -> None:
        optimizer = optimizer_of(spec)
        self._clip = optimizer.global_clipnorm
        # Done here, with the norm over all slices.
        optimizer.global_clipnorm = None
        # A rate that is computed has no variable.
        self._scheduled = all(variable.name != "learning_rate" for variable in optimizer.variables)
        layout = Layout(
            tuple(each[0] for each in variables), tuple(each[1] for each in variables), len(variables), dtype
        )
        with keras.device("cpu:0"):
            held = [_variable(name, shape, dtype) for name, shape in variables]
            optimizer.build(held)
        self._step = _step_on_this_backend(optimizer, held, layout, shared)

    def apply(
        self, gradient: Vector, parameters: Vector, squared_norm: float | None = None, scale: float = 1.0
    ) -> None:
        """Move `parameters` by one step with its learning rate times `scale`.

        `squared_norm` is that of the whole gradient, of which this may be a part.
        """
        factor = 1.0 if self._clip is None else _clipping(self._clip, squared_norm, gradient)
        self._step.apply(gradient, parameters, factor, scale)

    def finish(self, parameters: Vector) -> None:
        """Put the average in place of the parameters, where the optimizer keeps one."""
        self._step.finish(parameters)

    def state(self) -> list[npt.NDArray[Any]]:
        """The optimizer's variables."""
        return self._step.state()

    def restore(self, state: Sequence[npt.NDArray[Any]]) -> None:
        """Set the optimizer's variables to what `state` gave."""
        self._step.restore(state)

    @property
    def learning_rate(self) -> float:
        """The learning rate as it is now."""
        return self._step.read_learning_rate()

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        if self._scheduled:
            raise JobError(
                "The learning rate of the server's optimizer must not be set: a schedule computes it. "
                f"Received: {value!r}."
            )
        self._step.write_learning_rate(value)


class OptimizerStep(Protocol):
    """A built optimizer on one framework; `factor` is on the gradient, `scale` on the learning rate."""

    def apply(self, gradient: Vector, parameters: Vector, factor: float, scale: float) -> None:
        """Move the parameters by one step."""

    def finish(self, parameters: Vector) -> None:
        """Put the average in place of the parameters, where there is one."""

    def state(self) -> list[npt.NDArray[Any]]:
        """The optimizer's variables."""

    def restore(self, state: Sequence[npt.NDArray[Any]]) -> None:
        """Set the optimizer's variables."""

    def read_learning_rate(self) -> float:
        """The learning rate as it is now."""

    def write_learning_rate(self, value: float) -> None:
        """Set the learning rate, which no schedule computes."""


def optimizer_of(spec: RuleSpec) -> Any:
    """A fresh optimizer as the rule describes it."""
    # Keras puts the objects that it makes into the configuration that it makes them from.
    options = copy.deepcopy(dict(spec.options))
    excluded = options.pop(_EXCLUDED, None)
    made = None if spec.name == KERAS_OBJECT else _class_of(spec.name)
    try:
        optimizer = keras.optimizers.deserialize(options) if made is None else made(**_as_keras_takes_them(options))
    except (TypeError, ValueError, ImportError) as error:
        raise PlanError(
            f"The rule {str(spec)!r} must be an optimizer that Keras can make. Received: {error} "
            "Correct its arguments; a class of your own must be importable wherever a server runs."
        ) from error
    if excluded:
        optimizer.exclude_from_weight_decay(var_names=[excluded] if isinstance(excluded, str) else list(excluded))
    return optimizer


def _class_of(name: str) -> Any:
    found = getattr(keras.optimizers, KERAS_OPTIMIZERS[name], None)
    if found is None:
        known = [each for each, title in KERAS_OPTIMIZERS.items() if hasattr(keras.optimizers, title)]
        raise PlanError(f"{one_of('rule', name, known)} Keras {keras.__version__} has no {KERAS_OPTIMIZERS[name]}.")
    return found


def _as_keras_takes_them(options: Mapping[str, Any]) -> dict[str, Any]:
    """Keras refuses a learning rate that is written as a whole number, and takes a schedule as an object."""
    taken = dict(options)
    rate = taken.get("learning_rate")
    if isinstance(rate, int) and not isinstance(rate, bool):
        taken["learning_rate"] = float(rate)
    elif isinstance(rate, Mapping):
        taken["learning_rate"] = keras.optimizers.schedules.deserialize(dict(rate))
    return taken


def _variable(path: str, shape: tuple[int, ...], dtype: str) -> Any:
    variable = keras.Variable(np.zeros(shape, dtype), dtype=dtype, name=path.rsplit("/", 1)[-1])
    # Optimizers look at the path; Keras makes it from the scopes that a model opens while it is built.
    variable._path = path
    return variable


def _clipping(clip: float, squared_norm: float | None, gradient: Vector) -> float:
    """The factor that brings the norm down to `clip`; no number where the norm is none, as in Keras."""
    norm = math.sqrt(float(np.dot(gradient, gradient)) if squared_norm is None else squared_norm)
    if not math.isfinite(norm):
        return math.nan
    return 1.0 if norm <= clip else clip / norm


def _step_on_this_backend(optimizer: Any, variables: list[Any], layout: Layout, shared: bool) -> OptimizerStep:
    if keras.config.backend() == "jax":
        # Only that module may import JAX.
        module = importlib.import_module("keraunos.learners.keras_jax")
        step: OptimizerStep = module.CompiledOptimizer(optimizer, variables, layout, shared=shared)
        return step
    return _AppliedByKeras(optimizer, variables, layout, shared)


class _AppliedByKeras:
    """The optimizer applied to variables that hold copies of the parameters."""

    def __init__(self, optimizer: Any, variables: list[Any], layout: Layout, shared: bool) -> None:
        self._optimizer = optimizer
        self._variables = variables
        self._layout = layout
        self._shared = shared
        self._one_at_a_time = threading.Lock()

    def apply(self, gradient: Vector, parameters: Vector, factor: float, scale: float) -> None:
        if self._shared:
            before = parameters.copy()
            after = before.copy()
            with self._one_at_a_time:
                self._move(gradient, after, factor, scale)
            np.subtract(after, before, out=after)
            np.add(parameters, after, out=parameters)
        else:
            self._move(gradient, parameters, factor, scale)

    def _move(self, gradient: Vector, parameters: Vector, factor: float, scale: float) -> None:
        optimizer = self._optimizer
        rate = optimizer._get_current_learning_rate
        given = gradient if factor == 1.0 else gradient * gradient.dtype.type(factor)
        with keras.device("cpu:0"):
            for variable, values in zip(self._variables, self._layout.split(parameters), strict=True):
                variable.assign(values)
            gradients = [keras.ops.convert_to_tensor(each) for each in self._layout.split(given)]
            with replaced(optimizer, _get_current_learning_rate=lambda: keras.ops.convert_to_tensor(rate()) * scale):
                optimizer.apply(gradients, self._variables)
        self._read(parameters)

    def finish(self, parameters: Vector) -> None:
        if self._optimizer.use_ema:
            self._optimizer.finalize_variable_values(self._variables)
            self._read(parameters)

    def state(self) -> list[npt.NDArray[Any]]:
        return [np.array(keras.ops.convert_to_numpy(variable.value)) for variable in self._optimizer.variables]

    def restore(self, state: Sequence[npt.NDArray[Any]]) -> None:
        for variable, value in zip(self._optimizer.variables, state, strict=True):
            variable.assign(value)

    def read_learning_rate(self) -> float:
        return float(keras.ops.convert_to_numpy(keras.ops.convert_to_tensor(self._optimizer.learning_rate)))

    def write_learning_rate(self, value: float) -> None:
        self._optimizer.learning_rate = value

    def _read(self, parameters: Vector) -> None:
        self._layout.join([keras.ops.convert_to_numpy(variable.value) for variable in self._variables], parameters)
