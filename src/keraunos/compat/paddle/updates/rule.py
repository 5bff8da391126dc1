"""Paddle's parameter server as rules: its learning methods, and its sum of changes. Runs where the parameters live.

`Gradients` is a server to which trainers send gradients, `Changes` one to which they send what local steps changed.
The options of both are plain data: `settings` (an `OptimizationConfig`), `parameters` (by name, what differs from the
defaults of `Attributes`) and `samples_per_pass` (the rows that all trainers read in a pass, where something depends on
the pass: which one it is follows from the rows that have arrived).
"""

from __future__ import annotations

import itertools
import logging
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from keraunos.compat.paddle.model_config import OptimizationConfig, keras_name
from keraunos.compat.paddle.updates import formulas
from keraunos.compat.paddle.updates.averaging import Average
from keraunos.compat.paddle.updates.schedules import rate_at
from keraunos.errors import PlanError
from keraunos.exchange.rules import sums
from keraunos.exchange.rules.elementwise import BLOCK
from keraunos.exchange.rules.rule import Rule, Sent
from keraunos.exchange.sharding import Slice
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.rule_declaration import RuleDeclaration, RuleOption
from keraunos.parameters import Vector

logger = logging.getLogger(__name__)

_OPTIONS = (RuleOption("settings"), RuleOption("samples_per_pass"))

GRADIENTS = f"{__name__}:Gradients"
CHANGES = f"{__name__}:Changes"


class Run(NamedTuple):
    """Neighbouring elements of a slice whose parameters have the same settings."""

    start: int
    stop: int
    own: formulas.Attributes

    def blocks(self) -> Iterator[slice]:
        """Yields the run in pieces that stay in a core's cache."""
        for start in range(self.start, self.stop, BLOCK):
            yield slice(start, min(start + BLOCK, self.stop))


class PaddleRule(Rule):
    """Common base of both servers' rules: the count of rows, the passes, and the average over the last updates."""

    def __init__(self, plan: ExchangePlan, part: Slice, workers: int) -> None:
        super().__init__(plan, part, workers)
        self._opt = OptimizationConfig(**plan.rule.options["settings"])
        self._pass_rows: int | None = plan.rule.option("samples_per_pass")
        self._rate = float(self._opt.learning_rate)
        self._average = Average(self._opt, part.trainable_size) if self._opt.average_window > 0 else None
        # Rows that arrived, rows that moved the parameters, how often those were moved, in all and in this pass.
        self._seen = self._samples = self._batch = self._batch_of_pass = 0
        self._pass = self._dropped = 0

    def apply(
        self, sent: Sequence[Sent], parameters: Vector, result: Vector, *, squared_norm: float | None = None
    ) -> None:
        """Move by what was sent; what lags too far behind others is dropped whole and does not count as trained on."""
        rows = sum(each.rows for each in sent)
        if not rows:
            return
        if self._passes_ended() > self._pass:
            self._pass, self._batch_of_pass = self._passes_ended(), 0
        self._seen += rows
        if self.lags(sent):
            self._dropped += 1
            return
        self._samples += rows
        self._batch += 1
        self._batch_of_pass += 1
        trained = parameters[: self.part.trainable_size]
        if trained.size:
            self.move(sent, trained)
            if self._average is not None:
                self._average.add(trained, self._pass)
        sums.move_state(self.plan, self.workers, sent, parameters[trained.size :])

    @abstractmethod
    def move(self, sent: Sequence[Sent], trained: Vector) -> None:
        """Move the trained parameters in place."""

    def lags(self, sent: Sequence[Sent]) -> bool:
        """Whether the contribution comes too late to be used: Paddle counts it among the steps that it lags behind."""
        most = int(self._opt.async_lagged_grad_discard_ratio * self.workers)
        return not self.plan.synchronous and sent[0].staleness + 1 >= most

    def finish(self, parameters: Vector) -> None:
        """Replace the parameters by their average, if there is one; log how many gradients were too late."""
        if self._dropped:
            total = self._batch + self._dropped
            logger.info("%d of %d contributions lagged too far behind and were dropped", self._dropped, total)
        if self._average is not None:
            self._average.put(parameters[: self.part.trainable_size])

    def state(self) -> list[npt.NDArray[Any]]:
        """Returns the counts, and what the average is made of."""
        counts = np.array([self._seen, self._samples, self._batch, self._batch_of_pass, self._pass], np.int64)
        return [counts, *([] if self._average is None else self._average.state())]

    def restore(self, state: Sequence[npt.NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        self._seen, self._samples, self._batch, self._batch_of_pass, self._pass = (int(each) for each in state[0])
        if self._average is not None:
            self._average.restore(state[1:4])

    def owed(self, every: int) -> float:
        """For how many batches a parameter with periodic regularization is regularized in this one.

        Batches are counted from the start of a pass, and its end settles what is left.
        """
        rest = self._batch_of_pass % every
        if not rest:
            return float(every)
        return float(rest) if self._passes_ended() > self._pass else 0.0

    def _passes_ended(self) -> int:
        return 0 if self._pass_rows is None else self._seen // self._pass_rows


class Gradients(PaddleRule):
    """One update for the sum of a round's gradients, or for each gradient as it comes, by the learning method."""

    declaration = RuleDeclaration(takes=("gradients",), options=(*_OPTIONS, RuleOption("parameters")))

    def __init__(self, plan: ExchangePlan, part: Slice, workers: int) -> None:
        super().__init__(plan, part, workers)
        self._runs = _runs(plan.rule.options["parameters"], part)
        method = self._opt.learning_method
        names = dict.fromkeys(name for run in self._runs for name in formulas.slots_of(method, run.own))
        self._slots = {name: np.zeros(part.trainable_size, part.layout.dtype) for name in names}

    def move(self, sent: Sequence[Sent], trained: Vector) -> None:
        """Update the trained parameters in place."""
        rate = float(rate_at(np, self._opt, self._rate, float(self._samples), self._pass))
        now = formulas.Now(rate, float(self._batch), 1.0 if self._batch == 1 else 0.0, self.owed)
        scratch = np.empty(min(BLOCK, trained.size), trained.dtype)
        for run in self._runs:
            names = formulas.slots_of(self._opt.learning_method, run.own)
            for block in run.blocks():
                gradient = scratch[: block.stop - block.start]
                sums.reduced(self.plan, sent, self.part.trainable_size, gradient, first=block.start)
                slots = {name: self._slots[name][block] for name in names}
                after = formulas.moved(np, self._opt, run.own, now, trained[block], gradient, slots)
                trained[block] = after.value
                for name in names:
                    slots[name][...] = after.slots[name]

    def state(self) -> list[npt.NDArray[Any]]:
        """Returns the slots of the learning method besides."""
        return [*(slot.copy() for slot in self._slots.values()), *super().state()]

    def restore(self, state: Sequence[npt.NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        for slot, kept in zip(self._slots.values(), state, strict=False):
            np.copyto(slot, kept)
        super().restore(state[len(self._slots) :])

    @property
    def learning_rate(self) -> float | None:
        """The rate of the settings, before the schedule and the parameters' own."""
        return self._rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self._rate = float(value)


class Changes(PaddleRule):
    """`w += delta_add_rate / trainers` times what each trainer changed, however many rows it did that with."""

    declaration = RuleDeclaration(takes=("updates",), options=_OPTIONS)

    def move(self, sent: Sequence[Sent], trained: Vector) -> None:
        """Add the scaled changes in the order of the ranks."""
        share = self._opt.delta_add_rate / self.workers
        for each in sent:
            if each.rows:
                # What travels is the weights before minus those after, times rows.
                factor = -share * sums.over_rows(each.rows)
                sums.weighted_sum([each.values[: trained.size]], factor, trained, accumulate=True)


def _runs(parameters: Mapping[str, Mapping[str, Any]], part: Slice) -> list[Run]:
    """Returns the trained elements of a slice, by how their parameters are trained."""
    runs: list[Run] = []
    ends = itertools.accumulate(piece.size for piece in part.pieces if piece.trainable)
    for piece, stop in zip(part.pieces, ends, strict=False):
        own = attributes_of(parameters, piece.name)
        start = stop - piece.size
        if runs and runs[-1].own == own:
            runs[-1] = runs[-1]._replace(stop=stop)
        else:
            runs.append(Run(start, stop, own))
    return runs


def attributes_of(parameters: Mapping[str, Mapping[str, Any]], path: str) -> formulas.Attributes:
    """How the parameter that a variable of that path holds is trained: the path ends in the parameter's name."""
    last = keras_name(path.rpartition("/")[2])
    name = next((each for each in parameters if keras_name(each) == last), None)
    if name is None:
        raise PlanError(
            "Every variable that is trained must be a parameter of the configuration. Expected one of: "
            f"{', '.join(parameters)}. Received: {path!r}. Train models that were made from the configuration only."
        )
    return formulas.Attributes(**parameters[name])
