"""BigDL's optim methods that see more than single elements, and methods by variables' names.

Runs where the parameters live.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.compat.zoo.rules import BigDLRule
from keraunos.errors import PlanError
from keraunos.exchange.rules import sums
from keraunos.exchange.rules.registry import rule_class
from keraunos.exchange.rules.rule import Rule, Sent
from keraunos.exchange.sharding import Slice
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.rule_declaration import RuleDeclaration
from keraunos.job.rule_spec import RuleSpec
from keraunos.parameters import Layout, Vector


class VectorRule(BigDLRule):
    """A method that steps with the slice's whole gradient; one thread at a time, so not under `hogwild`."""

    declaration = RuleDeclaration(
        takes=("gradients", "updates"),
        meets=("synchronous", "asynchronous", "bounded"),
        other_options=True,
        instead_of_meeting="It must see gradients one at a time.",
    )
    elementwise = False

    def __init__(self, plan: ExchangePlan, part: Slice, workers: int) -> None:
        super().__init__(plan, part, workers)
        self._gradient: Vector = np.zeros(part.trainable_size, part.layout.dtype)

    @abstractmethod
    def step(self, parameters: Vector, gradient: Vector, rate: float) -> None:
        """Move the trainable parameters in place; `gradient` may be overwritten."""

    def take_step(
        self, sent: Sequence[Sent], parameters: Vector, rate: float, step: int, squared_norm: float | None
    ) -> None:
        """Move the trainable parameters in place, by a clipped gradient."""
        sums.reduced(self.plan, sent, parameters.size, self._gradient)
        self._clipping.clip(self._gradient, self._clipping.factor(squared_norm))
        self.step(parameters, self._gradient, rate)

    def squared_norm(self, sent: Sequence[Sent]) -> float:
        """Returns this slice's part of the squared norm of the mean gradient, or of the mean update."""
        sums.reduced(self.plan, sent, self.part.trainable_size, self._gradient)
        return sums.squared_norm(self._gradient)


class BigDLLarsSGD(VectorRule):
    """For each variable `x`: `v = momentum v + trust rate / s (g + weightdecay x)`; `x -= v`.

    `s = (|g| + weightdecay |x|) / |x|`, with 10000 in place of infinity, at least 1e-4, and 1 if both are zero.
    """

    def first_slots(self) -> Sequence[float]:
        """Returns the velocity."""
        return [0.0]

    def step(self, parameters: Vector, gradient: Vector, rate: float) -> None:
        """Move the trainable parameters in place, variable by variable."""
        (velocity,), start = self._slots, 0
        for piece in self.part.pieces:
            if piece.trainable:
                stop = start + piece.size
                self._step_one(parameters[start:stop], gradient[start:stop], velocity[start:stop], rate)
                start = stop

    def _step_one(self, parameters: Vector, gradient: Vector, velocity: Vector, rate: float) -> None:
        decay = self.option("weightdecay")
        size, slope = (float(np.sqrt(sums.squared_norm(each))) for each in (parameters, gradient))
        scale = (10000.0 if slope else 1.0) if not size else max((slope + decay * size) / size, 1e-4)
        np.multiply(velocity, self.option("momentum"), out=velocity)
        if decay:
            gradient += parameters * parameters.dtype.type(decay)
        np.multiply(gradient, rate * self.option("trust") / scale, out=gradient)
        np.add(velocity, gradient, out=velocity)
        np.subtract(parameters, velocity, out=parameters)


class BigDLLBFGS(VectorRule):
    """One iteration of L-BFGS with a fixed step for each gradient, over the vector as a whole.

    The direction comes from the last `ncorrection` pairs of moves and changes of the gradient. There is no move where
    the gradient's absolute sum is below `tolfun`, or where the direction does not lead down by more than `tolx`. The
    first move is of length 1 at most, times the rate.
    """

    def __init__(self, plan: ExchangePlan, part: Slice, workers: int) -> None:
        super().__init__(plan, part, workers)
        if not plan.synchronous:
            raise PlanError(f"The rule 'bigdl_lbfgs' must be run with meet='synchronous'. Received: {plan.meet!r}.")
        if part.trainable_size != part.layout.trainable_size:
            raise PlanError(
                "The rule 'bigdl_lbfgs' must see all parameters at once. Received: a slice of them. Use "
                "servers='driver'."
            )
        self._pairs: list[tuple[Vector, Vector]] = []
        self._before: tuple[Vector, Vector] | None = None
        self._moved = 0.0
        self._diagonal = 1.0

    def step(self, parameters: Vector, gradient: Vector, rate: float) -> None:
        """Move the trainable parameters along the direction."""
        slope = float(np.abs(gradient).sum(dtype=np.float64))
        if slope < self.option("tolfun"):
            return
        first = self._before is None
        direction = self._direction(gradient)
        length = min(1.0, 1.0 / slope) * rate if first else rate
        if _dot(gradient, direction) > -self.option("tolx"):
            length = 0.0
        self._before, self._moved = (gradient.copy(), direction), length
        parameters += direction * parameters.dtype.type(length)

    def state(self) -> list[npt.NDArray[Any]]:
        """Returns the counters, the last gradient and direction, and the pairs."""
        before = [] if self._before is None else list(self._before)
        counters = np.array([self._steps, self._moved, self._diagonal])
        return [counters, *before, *(each.copy() for pair in self._pairs for each in pair)]

    def restore(self, state: Sequence[npt.NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        steps, self._moved, self._diagonal = (float(each) for each in state[0])
        self._steps = int(steps)
        vectors = [np.array(each, self.part.layout.dtype) for each in state[1:]]
        self._before = (vectors[0], vectors[1]) if vectors else None
        self._pairs = list(zip(vectors[2::2], vectors[3::2], strict=True))

    def _direction(self, gradient: Vector) -> Vector:
        if self._before is not None:
            self._remember(gradient, *self._before)
        direction = -gradient
        shares = []
        for move, change in reversed(self._pairs):
            share = _dot(move, direction) / _dot(change, move)
            direction -= change * change.dtype.type(share)
            shares.append(share)
        direction *= direction.dtype.type(self._diagonal)
        for (move, change), share in zip(self._pairs, reversed(shares), strict=True):
            back = _dot(change, direction) / _dot(change, move)
            direction += move * move.dtype.type(share - back)
        return direction

    def _remember(self, gradient: Vector, gradient_before: Vector, direction: Vector) -> None:
        move, change = direction * direction.dtype.type(self._moved), gradient - gradient_before
        curvature = _dot(change, move)
        if curvature > 1e-10:
            self._pairs = [*self._pairs, (move, change)][-int(self.option("ncorrection")) :]
            self._diagonal = curvature / _dot(change, change)


class ByPrefix(Rule):
    """Each variable by the method of the longest beginning of its name that is given; clipping is common to all."""

    declaration = RuleDeclaration(takes=("gradients", "updates"), other_options=True)

    def __init__(self, plan: ExchangePlan, part: Slice, workers: int) -> None:
        super().__init__(plan, part, workers)
        self.elementwise = self.is_elementwise(plan)
        self.needs_norm = self.asks_for_norm(plan)
        self._rules: list[tuple[Rule, int]] = []
        start = 0
        for spec, layout in _runs(plan.rule, part):
            inner = ExchangePlan(plan.send, plan.every, plan.meet, spec, plan.bound, plan.scale, plan.compression)
            rule = rule_class(spec)(inner, Slice(layout, 0, layout.size), workers)
            self._rules.append((rule, start))
            start += layout.size

    @classmethod
    def is_elementwise(cls, plan: ExchangePlan) -> bool:
        """Returns whether all of the methods treat every element alone."""
        return all(rule_class(spec).elementwise for spec in _methods(plan.rule).values())

    @classmethod
    def asks_for_norm(cls, plan: ExchangePlan) -> bool:
        """Returns whether the gradient is clipped by its norm."""
        return plan.rule.option("clip_norm") is not None

    def apply(
        self, sent: Sequence[Sent], parameters: Vector, result: Vector, *, squared_norm: float | None = None
    ) -> None:
        """Step with what was sent, and move the float state."""
        trainable = self.part.trainable_size
        for rule, start in self._rules:
            mine = parameters[start : start + rule.part.size]
            rule.apply(self._parts_of(sent, start, rule.part.size), mine, mine, squared_norm=squared_norm)
        sums.move_state(self.plan, self.workers, sent, parameters[trainable:])

    def squared_norm(self, sent: Sequence[Sent]) -> float:
        """Returns this slice's part of the squared norm of the mean gradient, or of the mean update."""
        return sum(rule.squared_norm(self._parts_of(sent, start, rule.part.size)) for rule, start in self._rules)

    def state(self) -> list[npt.NDArray[Any]]:
        """Returns the states of the methods, concatenated, each preceded by its length."""
        found: list[npt.NDArray[Any]] = []
        for rule, _ in self._rules:
            kept = rule.state()
            found += [np.array(len(kept)), *kept]
        return found

    def restore(self, state: Sequence[npt.NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        place = 0
        for rule, _ in self._rules:
            length = int(state[place])
            rule.restore(state[place + 1 : place + 1 + length])
            place += 1 + length

    def _parts_of(self, sent: Sequence[Sent], start: int, size: int) -> list[Sent]:
        return [self._part_of(each, start, size) for each in sent]

    def _part_of(self, sent: Sent, start: int, size: int) -> Sent:
        trainable, parts = self.part.trainable_size, len(sent.denominators)
        views = [sent.values[part * trainable + start : part * trainable + start + size] for part in range(parts)]
        values = views[0] if parts == 1 else np.concatenate(views)
        return Sent(values, sent.denominators, sent.rows, sent.staleness, sent.squared_norm)


def method_for(name: str, prefixes: Sequence[str]) -> str:
    """Returns the longest of the beginnings that a variable's name has."""
    fitting = [prefix for prefix in prefixes if name.startswith(prefix)]
    if not fitting:
        raise PlanError(
            f"Every variable must have a method. Expected: a beginning of {name!r}. Received: methods for "
            f"{', '.join(map(repr, prefixes))}. Give one for '' for all others."
        )
    return max(fitting, key=len)


def _methods(rule: RuleSpec) -> dict[str, RuleSpec]:
    clipping = {name: value for name, value in rule.options.items() if name != "methods"}
    methods: Mapping[str, Any] = rule.options["methods"]
    specs = {prefix: RuleSpec.from_json(data) for prefix, data in methods.items()}
    return {prefix: RuleSpec(spec.name, {**spec.options, **clipping}, spec.home) for prefix, spec in specs.items()}


def _runs(rule: RuleSpec, part: Slice) -> list[tuple[RuleSpec, Layout]]:
    """Returns the slice's variables in rows of neighbours that have one method."""
    methods = _methods(rule)
    runs: list[tuple[str, list[tuple[str, tuple[int, ...]]]]] = []
    for piece in part.pieces:
        if piece.trainable:
            prefix = method_for(piece.name, list(methods))
            if not runs or runs[-1][0] != prefix:
                runs.append((prefix, []))
            runs[-1][1].append((piece.name, piece.shape if piece.whole else (piece.size,)))
    return [
        (
            methods[prefix],
            Layout(
                tuple(name for name, _ in variables),
                tuple(shape for _, shape in variables),
                len(variables),
                part.layout.dtype,
            ),
        )
        for prefix, variables in runs
    ]


def _dot(left: Vector, right: Vector) -> float:
    """Returns the product in double precision, block by block."""
    block = 1 << 16
    return sum(
        float(np.dot(left[start : start + block], right[start : start + block])) for start in range(0, left.size, block)
    )
