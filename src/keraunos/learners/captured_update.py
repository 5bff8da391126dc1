"""The gradient that a training step hands to its optimizer, captured instead of applied. Runs on workers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import keras

from keraunos.errors import ModelError
from keraunos.learners.instance_patch import replaced


class CapturedUpdate:
    """What the optimizers of a model were asked to apply."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._gradients: list[list[Any]] = []

    def gradients(self) -> list[Any]:
        """The gradient of each trainable variable, `None` where there is none; there must have been one update."""
        if len(self._gradients) != 1:
            raise ModelError(
                f"`train_step` of {type(self._model).__name__} must apply the model's optimizer exactly once, because "
                "the gradients of all workers are summed before they are applied. Received: "
                f"{len(self._gradients)} applications. Use exchange='averaging', which lets each worker take whole "
                "steps."
            )
        return self._gradients[0]

    def take(self, gradients: Sequence[Any], variables: Sequence[Any] | None, *, own: bool) -> None:
        """Keep one application of an optimizer, of the model's `own` one or of another."""
        trainable = self._model.trainable_variables
        if variables is None or not own:
            self._gradients.append(list(gradients))
            return
        given = {id(variable): gradient for variable, gradient in zip(variables, gradients, strict=True)}
        self._gradients.append([given.get(id(variable)) for variable in trainable])


@contextlib.contextmanager
def capturing(model: Any) -> Iterator[CapturedUpdate]:
    """Let the model's optimizers, in this context, hand over gradients and change nothing."""
    captured = CapturedUpdate(model)
    others = [each for each in vars(model).values() if isinstance(each, keras.optimizers.Optimizer)]
    optimizers = {id(each): each for each in (model.optimizer, *others)}.values()
    with contextlib.ExitStack() as stack:
        for optimizer in optimizers:
            stack.enter_context(_handing_over(optimizer, captured, own=optimizer is model.optimizer))
        yield captured


@contextlib.contextmanager
def _handing_over(optimizer: Any, captured: CapturedUpdate, *, own: bool) -> Iterator[None]:
    def apply(grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> None:
        captured.take(grads, trainable_variables, own=own)

    def apply_gradients(grads_and_vars: Any) -> Any:
        pairs = list(grads_and_vars)
        captured.take([pair[0] for pair in pairs], [pair[1] for pair in pairs], own=own)
        return optimizer.iterations

    def stateless_apply(optimizer_variables: Any, grads: Sequence[Any], trainable_variables: Any) -> Any:
        captured.take(grads, None, own=own)
        return list(trainable_variables), list(optimizer_variables)

    with replaced(optimizer, apply=apply, apply_gradients=apply_gradients, stateless_apply=stateless_apply):
        yield
