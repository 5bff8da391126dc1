"""TensorSpark's combiners as rules of the engine. Runs where the parameters live, which is on the driver.

The mean is the engine's own moving average and the delta its sum of updates. The other two rules are here: the one
that halves the distance, and the one that calls a combiner of the user's. That combiner stays in this process and keeps
its state between runs; only a key for it is in the plan.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.compat.tensorspark.core.weight_combiner import (
    DeltaWeightCombiner,
    MeanWeightCombiner,
    UpdateMeanWeightCombiner,
)
from keraunos.errors import JobError, PlanError
from keraunos.exchange.rules import sums
from keraunos.exchange.rules.rule import Rule, Sent
from keraunos.exchange.sharding import Slice
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.rule_declaration import RuleDeclaration, RuleOption
from keraunos.job.rule_spec import RuleSpec, register_rule
from keraunos.parameters import Vector

UPDATE_MEAN = "tensorspark_update_mean"
COMBINER = "tensorspark_combiner"

# The combiners of users that a run has lent to its rule, by key.
_lent: dict[str, Any] = {}


@contextmanager
def plan_with(combiner: Any, sync_interval: int, *, begun: bool = False) -> Iterator[ExchangePlan]:
    """The plan that combines weights as `combiner` does; a combiner of the user's is available until the context ends.

    Args:
        combiner: a combiner, or `None` for the mean over all workers.
        sync_interval: how many steps a worker takes between two exchanges.
        begun: whether contributions of an earlier run count as taken by the same server.
    """
    kind = type(combiner)
    if combiner is None:
        yield ExchangePlan("weights", sync_interval, "asynchronous", RuleSpec("moving_average"))
    elif kind is MeanWeightCombiner and int(combiner.num) == combiner.num:
        rule = RuleSpec("moving_average", {"n": int(combiner.num)})
        yield ExchangePlan("weights", sync_interval, "asynchronous", rule)
    elif kind is DeltaWeightCombiner:
        yield ExchangePlan("updates", sync_interval, "asynchronous", RuleSpec("add"), scale=1.0)
    elif kind is UpdateMeanWeightCombiner:
        yield ExchangePlan("weights", sync_interval, "asynchronous", RuleSpec(UPDATE_MEAN, {"version": int(begun)}))
    else:
        with _lending(combiner) as rule:
            yield ExchangePlan("weights", sync_interval, "asynchronous", rule)


class UpdateMean(Rule):
    """The first contribution takes the parameters' place; each later one moves them half of the way to it."""

    declaration = RuleDeclaration(takes=("weights",), options=(RuleOption("version", 0),))

    def __init__(self, plan: ExchangePlan, part: Slice, workers: int) -> None:
        super().__init__(plan, part, workers)
        self._version = int(self.option("version"))

    def apply(
        self, sent: Sequence[Sent], parameters: Vector, result: Vector, *, squared_norm: float | None = None
    ) -> None:
        """Move `parameters` towards what each worker sent."""
        for each in sent:
            if not each.rows:
                continue
            if self._version == 0:
                sums.weighted_sum([each.values], sums.over_rows(each.rows), parameters, accumulate=False)
            else:
                sums.add_difference(each.values, sums.over_rows(each.rows), parameters, 0.5, parameters)
            self._version += 1

    def state(self) -> list[npt.NDArray[Any]]:
        """Returns the number of contributions."""
        return [np.array(self._version)]

    def restore(self, state: Sequence[npt.NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        self._version = int(state[0])


class Combining(Rule):
    """Calls `compute` of the user's combiner for each variable of each contribution.

    The combiner is given its own arrays, the sender's rank as `worker_id` and the variable's name as TensorFlow
    writes it, such as `Variable:0`.
    """

    declaration = RuleDeclaration(takes=("weights",), options=(RuleOption("key"),))
    elementwise = False

    def __init__(self, plan: ExchangePlan, part: Slice, workers: int) -> None:
        super().__init__(plan, part, workers)
        key = self.option("key")
        if key not in _lent:
            raise PlanError(
                f"The rule {COMBINER!r} must run in the process whose combiner it calls. Received: a combiner that is "
                "not here. Let the parameters live on the driver, with servers='driver'."
            )
        self._combiner = _lent[key]

    def apply(
        self, sent: Sequence[Sent], parameters: Vector, result: Vector, *, squared_norm: float | None = None
    ) -> None:
        """Set `parameters` to the combiner's result for each worker's weights."""
        for each in sent:
            if each.rows:
                self._combine(each.values * parameters.dtype.type(sums.over_rows(each.rows)), each.rank, parameters)

    def _combine(self, weights: Vector, rank: int, parameters: Vector) -> None:
        start = 0
        for piece in self.part.pieces:
            shared = parameters[start : start + piece.size].reshape(piece.shape)
            new = weights[start : start + piece.size].reshape(piece.shape)
            name = f"{piece.name}:0"
            combined = np.asarray(self._combiner.compute(shared.copy(), new, worker_id=rank, name=name))
            if combined.shape != shared.shape:
                raise ValueError(
                    f"`compute` must give a weight of the shape of {name!r}. Expected: {shared.shape}. Received: "
                    f"{combined.shape} from {type(self._combiner).__name__}."
                )
            np.copyto(shared, combined, casting="same_kind")
            start += piece.size


@contextmanager
def _lending(combiner: Any) -> Iterator[RuleSpec]:
    """The rule that calls this very object."""
    if isinstance(combiner, type) or not callable(getattr(combiner, "compute", None)):
        raise JobError(
            "`weight_combiner` must be an object with the method `compute(origin_weight, new_weight, worker_id, "
            f"name)`, such as MeanWeightCombiner(4), or None. Received: {combiner!r}."
        )
    key = uuid.uuid4().hex
    _lent[key] = combiner
    try:
        yield RuleSpec(COMBINER, {"key": key})
    finally:
        del _lent[key]


register_rule(UPDATE_MEAN, f"{__name__}:UpdateMean")
register_rule(COMBINER, f"{__name__}:Combining")
