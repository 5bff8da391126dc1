"""What a worker does in one round, by what it sends. Runs on workers.

A round takes its batches, contributes, and continues from the round's result. Where the plan overlaps, a worker
continues with its next round while its contribution travels, and takes the result in when that round is over. Rounds
speak to the others through a `Transport` alone, and do not know which one it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import numpy as np

from keraunos.batch import Batch
from keraunos.exchange.rules.registry import needs_norm, puller
from keraunos.exchange.transports.transport import Transport
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.learners.learner import Contribution, Learner
from keraunos.parameters import Vector
from keraunos.worker.divergence import Watch


def rounds_of(plan: ExchangePlan, learner: Learner, transport: Transport, watch: Watch, workers: int) -> Rounds:
    """The rounds of a plan."""
    if plan.send == "gradients":
        return (
            OwnGradientRounds(plan, learner, transport, watch)
            if plan.applies_on_workers
            else GradientRounds(plan, learner, transport, watch)
        )
    if plan.send == "updates":
        return UpdateRounds(plan, learner, transport, watch)
    if plan.pulls_on_workers:
        return ElasticRounds(plan, learner, transport, watch, puller(plan, workers), plan.stretch(workers))
    return WeightRounds(plan, learner, transport, watch)


class Rounds(ABC):
    """One rank's rounds. `run` counts them from where the rank stands; `finish` takes in what is still on its way."""

    def __init__(self, plan: ExchangePlan, learner: Learner, transport: Transport, watch: Watch) -> None:
        self._plan = plan
        self._learner = learner
        self._transport = transport
        self._watch = watch
        self._asks_for_norm = not plan.synchronous and needs_norm(plan)
        self._pending: int | None = None

    def begin(self, parameters: Vector | None) -> None:
        """Start from the server's parameters, or from the model's own."""
        if parameters is not None:
            self._learner.write(parameters)

    def weights(self) -> Vector:
        """The weights as they are before the open round, also where it has begun."""
        return self._learner.read()

    def parameters(self) -> Vector:
        """The shared parameters as this rank got them last, while nothing is on its way."""
        return self.weights()

    @abstractmethod
    def run(self, round_: int, batches: Iterator[Batch]) -> int:
        """Take a round's batches and share; the rows that were in them. Without a batch the round is passed."""

    def finish(self) -> None:
        """Take in the result of a contribution that is still on its way; most have none."""
        assert self._pending is None

    def _norm(self, squared: float) -> float | None:
        return squared if self._asks_for_norm else None


class OwnGradientRounds(Rounds):
    """The gradient of the global batch is applied by each worker's own optimizer."""

    def __init__(self, plan: ExchangePlan, learner: Learner, transport: Transport, watch: Watch) -> None:
        super().__init__(plan, learner, transport, watch)
        self._sum = GradientSum(learner, plan.every == 1)
        self._state: Vector = learner.read()[learner.layout.trainable_size :].copy()

    def begin(self, parameters: Vector | None) -> None:
        """Start from a live worker's parameters, or from the model's own."""
        super().begin(parameters)
        if parameters is not None:
            np.copyto(self._state, parameters[self._learner.layout.trainable_size :])

    def weights(self) -> Vector:
        """The weights as they are before the open round: a gradient moves the float state."""
        vector = self._learner.read()
        np.copyto(vector[self._learner.layout.trainable_size :], self._state)
        return vector

    def run(self, round_: int, batches: Iterator[Batch]) -> int:
        """Share a gradient and apply the mean of all."""
        sent = self._sum.over(batches)
        rows = 0 if sent is None else sent.rows
        good = sent is not None and self._watch.allows(round_, "gradient", sent.values, rows, parts=sent.denominators)
        if sent is None or not good:
            self._transport.pass_round(round_)
        else:
            self._transport.contribute(round_, sent.values, sent.denominators, rows)
        reduced = self._transport.collect(round_)
        if not self._transport.empty and self._watch.allows_result(round_, reduced, rows if good else 0):
            np.copyto(self._state, self._learner.on_host(reduced[self._learner.layout.trainable_size :]))
            self._learner.apply(reduced)
        elif rows:
            # Weights stay as they are; the gradient has moved the float state.
            self._learner.write(self.weights())
            good = False
        if rows and not good:
            self._watch.undo(round_, self.weights())
        return rows


class GradientRounds(Rounds):
    """The servers apply gradients and give parameters back."""

    def __init__(self, plan: ExchangePlan, learner: Learner, transport: Transport, watch: Watch) -> None:
        super().__init__(plan, learner, transport, watch)
        self._sum = GradientSum(learner, plan.every == 1)

    def run(self, round_: int, batches: Iterator[Batch]) -> int:
        """Share a gradient and continue from the parameters that come back."""
        sent = self._sum.over(batches)
        if sent is None and not self._plan.synchronous:
            return 0
        good = sent is not None and self._watch.allows(
            round_, "gradient", sent.values, sent.rows, parts=sent.denominators
        )
        if sent is None or not good:
            self._transport.pass_round(round_)
        else:
            norm = self._norm(self._squared(sent))
            self._transport.contribute(round_, sent.values, sent.denominators, sent.rows, norm)
        result = self._transport.collect(round_)
        self._learner.write(result)
        if sent is None:
            return 0
        if not good:
            self._watch.undo(round_, result)
        return sent.rows

    def _squared(self, sent: Contribution) -> float:
        if not self._asks_for_norm:
            return 0.0
        size = self._learner.layout.trainable_size
        values = self._learner.on_host(sent.values)
        gradient = np.zeros(size, dtype=np.float64)
        for part, denominator in enumerate(sent.denominators):
            divisor = 1.0 if denominator is None else denominator
            if divisor:
                gradient += values[part * size : (part + 1) * size] / divisor
        return float(gradient @ gradient)


class UpdateRounds(Rounds):
    """Local steps; what they changed is shared, times the rows."""

    def __init__(self, plan: ExchangePlan, learner: Learner, transport: Transport, watch: Watch) -> None:
        super().__init__(plan, learner, transport, watch)
        self._base: Vector = learner.read()
        self._update: Vector = learner.layout.empty()
        self._sent: Vector = learner.layout.empty()

    def begin(self, parameters: Vector | None) -> None:
        """Start from the server's parameters, or from the model's own."""
        super().begin(parameters)
        if parameters is not None:
            np.copyto(self._base, parameters)

    def run(self, round_: int, batches: Iterator[Batch]) -> int:
        """Step, share what changed, and continue from the parameters that come back."""
        rows = self._learner.steps(batches)
        if not rows:
            if self._plan.synchronous:
                self._transport.pass_round(round_)
                self._adopt(self._transport.collect(round_))
            return 0
        self._learner.read(out=self._update)
        np.subtract(self._base, self._update, out=self._update)
        if not self._watch.allows(round_, "update", self._update, rows, factor=rows):
            self.finish()
            self._transport.pass_round(round_)
            self._adopt(self._transport.collect(round_))
            self._watch.undo(round_, self._base)
            return rows
        self._merge_pending()
        np.multiply(self._update, self._update.dtype.type(rows), out=self._sent)
        norm = self._norm(self._squared() if self._asks_for_norm else 0.0)
        self._transport.contribute(round_, self._sent, (float(rows),), rows, norm)
        self._pending = round_
        if not self._plan.overlaps:
            self.finish()
        return rows

    def finish(self) -> None:
        """Adopt the parameters of the contribution that was sent last."""
        if self._pending is not None:
            self._adopt(self._transport.collect(self._pending))
            self._pending = None

    def parameters(self) -> Vector:
        """What the round that is next begins with."""
        return self._base

    def _squared(self) -> float:
        trained = self._update[: self._learner.layout.trainable_size].astype(np.float64)
        return float(trained @ trained)

    def _merge_pending(self) -> None:
        """Take the last result in without losing the steps that were taken while it was on its way."""
        if self._pending is not None:
            np.subtract(self._transport.collect(self._pending), self._update, out=self._base)
            self._learner.write(self._base)
            self._pending = None
        else:
            np.subtract(self._base, self._update, out=self._base)

    def _adopt(self, parameters: Vector) -> None:
        np.copyto(self._base, parameters)
        self._learner.write(self._base)


class WeightRounds(Rounds):
    """Local steps; the weights they led to are shared, times the rows, and the servers' take their place."""

    def __init__(self, plan: ExchangePlan, learner: Learner, transport: Transport, watch: Watch) -> None:
        super().__init__(plan, learner, transport, watch)
        self._weights: Vector = learner.layout.empty()
        self._sent: Vector = learner.layout.empty()

    def run(self, round_: int, batches: Iterator[Batch]) -> int:
        """Step, share the weights, and continue from what comes back."""
        rows = self._learner.steps(batches)
        if rows:
            self._moved()
        good = bool(rows) and self._watch.allows(round_, "weights", self._weights, rows, factor=rows)
        if good:
            np.multiply(self._weights, self._weights.dtype.type(rows), out=self._sent)
            self._transport.contribute(round_, self._sent, (float(rows),), rows)
        elif rows or self._plan.synchronous:
            self._transport.pass_round(round_)
        else:
            return 0
        result = self._transport.collect(round_)
        self._continue_from(result, rows if good else 0)
        if rows and not good:
            self._watch.undo(round_, result)
        return rows

    def _moved(self) -> None:
        """Take the weights that the round's steps led to."""
        self._learner.read(out=self._weights)

    def _continue_from(self, result: Vector, rows: int) -> None:
        self._learner.write(result)


class ElasticRounds(WeightRounds):
    """The worker keeps its own weights: its steps move them, stretched where the plan says so, and the center pulls."""

    def __init__(
        self,
        plan: ExchangePlan,
        learner: Learner,
        transport: Transport,
        watch: Watch,
        pull: Callable[[Vector, Vector], None],
        stretch: float,
    ) -> None:
        super().__init__(plan, learner, transport, watch)
        self._pull = pull
        self._stretch = stretch
        self._base: Vector = learner.read()
        self._center: Vector = self._base.copy()

    def begin(self, parameters: Vector | None) -> None:
        """Start from the server's parameters, or from the model's own."""
        super().begin(parameters)
        if parameters is not None:
            np.copyto(self._base, parameters)
            np.copyto(self._center, parameters)

    def parameters(self) -> Vector:
        """The center."""
        return self._center

    def _moved(self) -> None:
        super()._moved()
        if self._stretch != 1.0:
            trainable = self._learner.layout.trainable_size
            weights, base = self._weights[:trainable], self._base[:trainable]
            np.subtract(weights, base, out=weights)
            np.multiply(weights, weights.dtype.type(self._stretch), out=weights)
            np.add(weights, base, out=weights)

    def _continue_from(self, result: Vector, rows: int) -> None:
        self._center = result
        if rows:
            self._pull(self._weights, result)
            np.copyto(self._base, self._weights)
        self._learner.write(self._base)


class GradientSum:
    """The gradient over all batches of a round, at one set of weights."""

    def __init__(self, learner: Learner, single: bool) -> None:
        self._learner = learner
        self._single = single
        self._values: Vector | None = None

    def over(self, batches: Iterator[Batch]) -> Contribution | None:
        """One contribution for all batches, good until the learner's next call; `None` without a batch."""
        total: Contribution | None = None
        for batch in batches:
            sent = self._learner.gradient(batch)
            if self._single:
                return sent
            total = self._added(total, sent)
        return total

    def _added(self, total: Contribution | None, sent: Contribution) -> Contribution:
        values = self._learner.on_host(sent.values)
        if self._values is None or self._values.size != values.size:
            self._values = np.empty_like(values)
        if total is None:
            np.copyto(self._values, values)
            return Contribution(self._values, sent.denominators, sent.rows)
        gradients = self._learner.layout.trainable_size * len(sent.denominators)
        rows = total.rows + sent.rows
        np.add(self._values[:gradients], values[:gradients], out=self._values[:gradients])
        # The float state has moved with every batch, so the last is the one; it travels times the rows.
        factor = self._values.dtype.type(rows / sent.rows)
        np.multiply(values[gradients:], factor, out=self._values[gradients:])
        denominators = tuple(
            None if before is None or now is None else before + now
            for before, now in zip(total.denominators, sent.denominators, strict=True)
        )
        return Contribution(self._values, denominators, rows)
