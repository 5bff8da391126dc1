"""The compiled functions of a Keras model on JAX, apart from its numbers. Runs on workers.

They take a model's state as arguments and give it back, so that one set of them serves every model that was built and
compiled alike. Tracing and loading them takes longer than an epoch of a small model, and Spark's Python workers outlive
a fit: `programs_of` keeps those that were used last.
"""

from __future__ import annotations

import collections
import contextlib
import json
import re
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import keras

from keraunos.errors import ModelError
from keraunos.learners.archive_extras import description
from keraunos.learners.captured_update import capturing
from keraunos.learners.instance_patch import replaced
from keraunos.learners.keras_archive import without_tensorflow
from keraunos.learners.keras_learner import for_step
from keraunos.learners.keras_variables import layout_of, state_variables
from keraunos.learners.loss_parts import ROWS, SUM, LossTerms, Term, has_own_loss, noting

KEPT_PROGRAMS = 4
# Layers that are what their configuration says, and nothing more: others may close over what they were adapted to.
_PLAIN = tuple(
    f"keras.src.layers.{package}."
    for package in (
        "activations",
        "attention",
        "convolutional",
        "core",
        "merging",
        "normalization",
        "pooling",
        "regularization",
        "reshaping",
        "rnn",
    )
)
_CLOSURES = frozenset({"Lambda"})

_kept: collections.OrderedDict[str, tuple[Programs, weakref.ref[Any]]] = collections.OrderedDict()


def programs_of(model: Any, user: Any) -> Programs:
    """The functions of a built and compiled model for `user`, perhaps those that an equal one left behind.

    Nobody else has them until the user is gone: tracing changes the model for a while.
    """
    key = _description(model)
    kept, last_user = _kept.pop(key, (None, None)) if key is not None else (None, None)
    if kept is None or (last_user is not None and last_user() is not None):
        kept = Programs(model)
    if key is not None:
        _kept[key] = kept, weakref.ref(user)
        while len(_kept) > KEPT_PROGRAMS:
            _kept.popitem(last=False)
    return kept


class Programs:
    """What a learner calls, each compiled when it is first called with arrays of new shapes.

    State comes as lists of arrays: the trained variables, the others, the optimizer's and the metrics'.

    Attributes:
        compiled: whether they are, and do not run line by line.
        layout: of the model's flat vector.
        parts: of the loss, for batches without and with weights; known once the gradient was traced for such.
    """

    def __init__(self, model: Any) -> None:
        self.compiled = bool(model.jit_compile and not model.run_eagerly)
        jit: Callable[..., Any] = jax.jit if self.compiled else _as_it_is
        self._model = model
        self.layout = layout_of(model)
        self.parts: dict[bool, tuple[str, ...]] = {}
        positions = {id(variable): i for i, variable in enumerate(model.non_trainable_variables)}
        self._state_at = [positions[id(variable)] for variable in state_variables(model)]
        self.flatten = jit(self._joined)
        self.unflatten = jit(self._split)
        self.step = jit(lambda state, data: _lists(model.train_step(state, for_step(data))[1]), donate_argnums=0)
        self.steps = jit(self._stepped, donate_argnums=0)
        self.gradient = jit(self._contribution, donate_argnums=(1, 3))
        self.apply = jit(self._updated, donate_argnums=(0, 1, 2))
        self.predict = jit(lambda trained, others, inputs: model.predict_step((trained, others), (inputs,))[0])
        self.test = jit(
            lambda metrics, trained, others, data: list(
                model.test_step((trained, others, metrics), for_step(data))[1][2]
            ),
            donate_argnums=0,
        )

    def can_loop(self, state: Any, data: Any) -> bool:
        """Whether a step returns the state in the form in which it took it, as the steps of a loop must."""
        before, after = (jax.tree_util.tree_flatten(each) for each in (state, jax.eval_shape(self.step, state, data)))
        forms = ([(value.shape, value.dtype) for value in values] for values in (before[0], after[0]))
        return before[1] == after[1] and next(forms) == next(forms)

    def _stepped(self, state: Any, data: Any, count: Any) -> Any:
        """Traced: so many steps, each with one entry of the arrays in `data`."""

        def step(at: Any, state: Any) -> Any:
            batch = jax.tree_util.tree_map(lambda array: jax.lax.dynamic_index_in_dim(array, at, keepdims=False), data)
            return _lists(self._model.train_step(state, for_step(batch))[1])

        return jax.lax.fori_loop(0, count, step, state)

    def _joined(self, trained: list[Any], others: list[Any]) -> Any:
        return self._concatenated([*trained, *(others[i] for i in self._state_at)])

    def _concatenated(self, arrays: list[Any]) -> Any:
        flat = [jnp.ravel(array).astype(self.layout.dtype) for array in arrays]
        return jnp.concatenate(flat) if flat else jnp.zeros(0, self.layout.dtype)

    def _split(self, vector: Any, others: list[Any]) -> tuple[list[Any], list[Any]]:
        arrays = self.layout.split(vector)
        count = self.layout.trainable
        like = self._model.trainable_variables
        trained = [array.astype(variable.dtype) for array, variable in zip(arrays[:count], like, strict=True)]
        others = list(others)
        for i, array in zip(self._state_at, arrays[count:], strict=True):
            others[i] = array.astype(others[i].dtype)
        return trained, others

    def _updated(self, trained: list[Any], others: list[Any], optimizer: list[Any], reduced: Any) -> Any:
        gradients, others = self._split(reduced, others)
        trained, optimizer = self._model.optimizer.stateless_apply(optimizer, gradients, trained)
        return list(trained), others, list(optimizer)

    def _contribution(
        self, trained: list[Any], others: list[Any], optimizer: list[Any], metrics: list[Any], data: Any
    ) -> Any:
        """Traced: the contribution's values and computed denominators, and the state that moved."""
        state = (trained, others, optimizer, metrics)
        rows = _rows(data)
        traced = _TracedStep(self._model, state, data)
        parts = traced.parts
        self.parts[data[2] is not None] = parts
        numerators, elements = [], []
        for part in parts:
            step = traced if len(parts) == 1 else _TracedStep(self._model, state, data, part)
            numerator = self._concatenated(step.gradients)
            if part == ROWS:
                numerator = numerator * rows
            elif part != SUM:
                denominator = step.denominators[part]
                numerator = numerator * denominator.astype(numerator.dtype)
                elements.append(denominator)
            numerators.append(numerator)
        moved = self._concatenated([traced.others[i] for i in self._state_at]) * rows
        return jnp.concatenate([*numerators, moved]), elements, traced.others, traced.metrics


class _TracedStep:
    """One training step as JAX sees it, its gradient captured; of one part of the loss where a part is named."""

    def __init__(self, model: Any, state: Any, data: Any, part: str | None = None) -> None:
        self._model = model
        self._part = part
        self._noted: LossTerms | None = None
        self._computed: tuple[str, ...] = ()
        with contextlib.ExitStack() as stack:
            captured = stack.enter_context(capturing(model))
            if not has_own_loss(model):
                stack.enter_context(self._noting())
            _, (_, others, _, metrics) = model.train_step(state, for_step(data))
        count = len(model.non_trainable_variables)
        self.gradients = self._complete(captured.gradients(), state[0])
        self.others = list(others[:count])
        self.metrics = list(metrics)
        self.denominators = dict(zip(self._computed, others[count:], strict=True))
        self.parts = (ROWS,) if self._noted is None else self._noted.parts

    @contextlib.contextmanager
    def _noting(self) -> Any:
        """Note the parts of the loss, and let their denominators come out of the differentiated function.

        They have to leave it as results. The step hands the second of its results, the values of the variables that
        are not trained, through to its own, so they ride at its end.
        """
        model = self._model
        compute, call = model.compute_loss_and_updates, model.stateless_call

        def compute_loss_and_updates(*args: Any, **kwargs: Any) -> Any:
            with noting(model, self._chosen) as noted:
                loss, (unscaled, outputs, others, metrics) = compute(*args, **kwargs)
            self._noted = noted
            self._computed = tuple(part for part in noted.parts if part not in {ROWS, SUM})
            riding = [noted.denominator(part) for part in self._computed]
            return loss, (unscaled, outputs, [*others, *riding], metrics)

        def stateless_call(*args: Any, **kwargs: Any) -> Any:
            result = call(*args, **kwargs)
            if self._part in {None, ROWS} or not kwargs.get("return_losses"):
                return result
            outputs, others, losses = result
            return outputs, others, [jax.lax.stop_gradient(loss) for loss in losses]

        with replaced(model, compute_loss_and_updates=compute_loss_and_updates, stateless_call=stateless_call):
            yield

    def _chosen(self, term: Term) -> Any:
        return term.value if self._part in {None, term.part} else jax.lax.stop_gradient(term.value)

    def _complete(self, gradients: list[Any], trained: list[Any]) -> list[Any]:
        if len(gradients) != len(trained):
            raise ModelError(
                f"`train_step` of {type(self._model).__name__} must hand the optimizer one gradient for each trainable "
                f"variable. Expected: {len(trained)}. Received: {len(gradients)}. Use exchange='averaging'."
            )
        return [
            jnp.zeros_like(value) if gradient is None else gradient
            for gradient, value in zip(gradients, trained, strict=True)
        ]


def _rows(data: Any) -> int:
    return int(jax.tree_util.tree_leaves(data)[0].shape[0])


def _lists(state: Any) -> tuple[list[Any], ...]:
    # A custom step may return tuples; another structure would be compiled anew.
    return tuple(list(part) for part in state)


def _as_it_is(function: Callable[..., Any], **_: Any) -> Callable[..., Any]:
    return function


def _description(model: Any) -> str | None:
    """All that the functions depend on, as text; `None` where that cannot be told."""
    if type(model) not in (keras.Sequential, keras.Model, keras.src.models.Functional) or model.run_eagerly:
        return None
    if any(not _is_plain(layer) for layer in model._flatten_layers(include_self=False)):
        return None
    parts = (model.optimizer, *keras.tree.flatten(model.loss), *model.metrics)
    if any(not (isinstance(part, str) or type(part).__module__.startswith("keras.src.")) for part in parts):
        return None
    # Batches of several inputs or outputs go by their names.
    names = _made_up_names(model) if len(model.inputs) == len(model.outputs) == 1 else {}
    with without_tensorflow():
        told = _without_made_up_names(keras.saving.serialize_keras_object(model), names)
    try:
        return json.dumps([told, model.jit_compile, keras.config.floatx(), description(model)], sort_keys=True)
    except (TypeError, ValueError):
        return None


def _is_plain(layer: Any) -> bool:
    return type(layer).__module__.startswith(_PLAIN) and type(layer).__name__ not in _CLOSURES


def _without_made_up_names(value: Any, names: Mapping[str, str]) -> Any:
    """The configuration with names that Keras made up, which count the models of a process, put in a common form."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, Mapping):
        return {key: _without_made_up_names(each, names) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_made_up_names(each, names) for each in value]
    return value


def _made_up_names(model: Any) -> dict[str, str]:
    owners = [model, model.optimizer, *model._flatten_layers(include_self=False)]
    names = {}
    for at, owner in enumerate(owners):
        made_up = keras.src.utils.naming.to_snake_case(type(owner).__name__)
        if re.fullmatch(rf"{re.escape(made_up)}(_\d+)?", owner.name):
            names[owner.name] = f"{made_up}#{at}"
    return names
