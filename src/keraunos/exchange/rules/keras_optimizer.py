"""Any Keras optimizer, applied where the parameters live to what workers send. Runs there.

A gradient is applied as it is; an update (weights before the round minus weights after it) counts as one. Float state
such as BatchNorm's statistics is not optimised: see `KerasOptimizer`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from keraunos.errors import PlanError
from keraunos.exchange.rules import sums
from keraunos.exchange.rules.rule import Rule, Sent
from keraunos.exchange.sharding import Slice
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.rule_declaration import RuleDeclaration, RuleOption
from keraunos.job.rule_spec import KERAS_OBJECT, RuleSpec
from keraunos.parameters import Vector, aligned_empty

# Those of Keras that treat every element alone; any other sees whole variables.
_ELEMENTWISE = {"adadelta", "adagrad", "adam", "adamax", "adamw", "ftrl", "lion", "nadam", "rmsprop", "sgd"}


# Options of a Keras optimizer that speak of what happens on a worker, and what to do instead.
_WORKERS_OWN = {
    "gradient_accumulation_steps": "the plan's `every` accumulates gradients: give that number there",
    "loss_scale_factor": "gradients arrive unscaled: set the loss scale on the model's own optimizer",
}


def check_options(spec: RuleSpec) -> None:
    """Refuse what makes no sense on a server; Keras itself checks the other options when the optimizer is made."""
    for name, instead in _WORKERS_OWN.items():
        value = spec.option(name)
        if value is not None:
            raise PlanError(f"`{name}` must not be set on a server's optimizer: {instead}. Received: {value!r}.")
    wrapper = spec.options.get("class_name") if spec.name == KERAS_OBJECT else None
    if wrapper in {"LossScaleOptimizer", "MultiOptimizer", "ScheduleFreeAdamW"}:
        raise PlanError(
            "A server's optimizer must be a single one that trains the weights that workers compute with. "
            f"Received: {wrapper!r}. Give an inner optimizer, or 'adamw'."
        )


class KerasOptimizer(Rule):
    """One step of the optimizer for a round's mean gradient (or update), or for each contribution as it comes.

    The plan's `scale` is a factor on the learning rate of the step that it scales, and so also on what the optimizer
    multiplies by the learning rate, such as decoupled weight decay; moments see the gradient as it was sent.

    Float state moves without the optimizer, as `sums.move_state` says.
    """

    declaration = RuleDeclaration(
        takes=("gradients", "updates"),
        options=(RuleOption("learning_rate"),),
        other_options=True,
        check=check_options,
    )

    def __init__(self, plan: ExchangePlan, part: Slice, workers: int) -> None:
        super().__init__(plan, part, workers)
        # Keras is loaded by a server that needs it, and not where a plan is only asked what it needs.
        from keraunos.learners.keras_optimizers import ServerOptimizer

        self.elementwise = self.is_elementwise(plan)
        self.needs_norm = self.asks_for_norm(plan)
        self._own = threading.local()
        self._optimizer: ServerOptimizer | None = None
        if part.trainable_size:
            shared = plan.meet == "hogwild"
            self._optimizer = ServerOptimizer(plan.rule, _variables(plan.rule, part), part.layout.dtype, shared=shared)

    @classmethod
    def is_elementwise(cls, plan: ExchangePlan) -> bool:
        """Whether the optimizer treats every element alone, and clips none by the norm of its variable."""
        return plan.rule.option("clipnorm") is None and _treats_elements_alone(plan.rule)

    @classmethod
    def asks_for_norm(cls, plan: ExchangePlan) -> bool:
        """Whether the optimizer clips by the norm of the whole gradient."""
        return plan.rule.option("global_clipnorm") is not None

    def apply(
        self, sent: Sequence[Sent], parameters: Vector, result: Vector, *, squared_norm: float | None = None
    ) -> None:
        """Step with what was sent, and move the float state."""
        trainable = self.part.trainable_size
        if self._optimizer is not None:
            scale = 1.0 if self.plan.synchronous else self.plan.factor(self.workers, sent[0].staleness)
            self._optimizer.apply(self._reduced(sent), parameters[:trainable], squared_norm, scale)
        sums.move_state(self.plan, self.workers, sent, parameters[trainable:])

    def squared_norm(self, sent: Sequence[Sent]) -> float:
        """This slice's part of the squared norm of the mean gradient, or of the mean update."""
        return sums.squared_norm(self._reduced(sent)) if self.part.trainable_size else 0.0

    def finish(self, parameters: Vector) -> None:
        """Put the optimizer's average in place of the parameters, where it keeps one."""
        if self._optimizer is not None:
            self._optimizer.finish(parameters[: self.part.trainable_size])

    def state(self) -> list[npt.NDArray[Any]]:
        """The optimizer's variables."""
        return [] if self._optimizer is None else self._optimizer.state()

    def restore(self, state: Sequence[npt.NDArray[Any]]) -> None:
        """Set the optimizer's variables to what `state` gave."""
        if self._optimizer is not None:
            self._optimizer.restore(state)

    @property
    def learning_rate(self) -> float | None:
        """The optimizer's learning rate as it is now."""
        return None if self._optimizer is None else self._optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        if self._optimizer is not None:
            self._optimizer.learning_rate = value

    def _reduced(self, sent: Sequence[Sent]) -> Vector:
        """The mean gradient, or the mean update, of the trainable part, in this thread's own space."""
        trainable = self.part.trainable_size
        reduced: Vector | None = getattr(self._own, "reduced", None)
        if reduced is None:
            self._own.reduced = reduced = aligned_empty(trainable, self.part.layout.dtype)
        sums.reduced(self.plan, sent, trainable, reduced)
        return reduced


def _treats_elements_alone(spec: RuleSpec) -> bool:
    if spec.name != KERAS_OBJECT:
        return spec.name in _ELEMENTWISE
    # A class of somebody's own may have the name of one of Keras's.
    own = spec.options.get("module") == "keras.optimizers" and spec.options.get("registered_name") is None
    return own and str(spec.options["class_name"]).lower() in _ELEMENTWISE


def _variables(spec: RuleSpec, part: Slice) -> list[tuple[str, tuple[int, ...]]]:
    """The variables as the optimizer is to see them."""
    elementwise = spec.option("clipnorm") is None and _treats_elements_alone(spec)
    if elementwise and not spec.options.get("exclude_from_weight_decay"):
        # Nothing depends on where one ends and the next begins, and a single long one is the fastest.
        return [("parameters", (part.trainable_size,))]
    pieces = [piece for piece in part.pieces if piece.trainable]
    return [(piece.name, piece.shape if piece.whole else (piece.size,)) for piece in pieces]
