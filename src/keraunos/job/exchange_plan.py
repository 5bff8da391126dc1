"""How workers share parameters: the answers to four questions. Runs on the driver and on workers.

What does a worker send, every how many steps, how do the workers meet, and what rule turns what was sent into
new parameters? Every distributed training scheme here is one `ExchangePlan`; the well-known ones have names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from keraunos.errors import PlanError, one_of
from keraunos.job.rule_declaration import (
    APPLY,
    MEETINGS,
    NOT_SYNCHRONOUS,
    NUMBER,
    PULL,
    SCALES,
    SENDS,
    STRETCHED,
    RuleDeclaration,
    is_factor,
    is_whole,
)
from keraunos.job.rule_spec import RuleSpec, parse_call

COMPRESSIONS = ("bfloat16", "int8")

# A round in which every worker goes all the way to where its rows pull it would overshoot with 2 and never settle.
_FURTHEST = 1.5


@dataclass(frozen=True, init=False)
class ExchangePlan:
    """The four answers, and how contributions are scaled and travel.

    Attributes:
        send: `gradients` (the round's gradient), `updates` (weights before the round minus weights after it) or
            `weights`.
        every: the length of a round: a number of steps, or `"epoch"`. Gradients of a longer round are accumulated at
            the same weights.
        meet: `synchronous` (a round ends when all have sent), `asynchronous` (each contribution is applied whole, at
            once, one at a time), `hogwild` (applied without locks) or `bounded` (asynchronous, but nobody runs more
            than `bound` rounds ahead; also written `"bounded(4)"`).
        rule: what is done with contributions, as a `RuleSpec`; given as its name, as in `"mean"` or `"elastic(0.1)"`,
            or as a Keras optimizer.
        bound: how many rounds a worker may run ahead of the slowest, with `bounded`; 0 is lock-step.
        scale: the factor on each contribution of a plan that is not synchronous: a number, `"workers"` (one over
            their number), `"stretched"` (so that the workers together move by more than their mean update: by its
            square-root-of-workers-fold, at most 1.5-fold), `"staleness"` (one over 1 + the contributions of others
            that were applied since the sender got its parameters), or `None` for the rule's own: `"workers"` for `add`
            and `delayed_nesterov`, 1 for the others that are built in. On an optimizer it is the learning rate that is
            scaled. A mean of updates may be stretched too, or be scaled by a number; with `elastic` that is done to a
            worker's own move in a round.
        compression: how vectors travel: `None` (as they are), `"bfloat16"` or `"int8"`.
    """

    send: str
    every: int | str
    meet: str
    rule: RuleSpec
    bound: int | None = None
    scale: float | str | None = None
    compression: str | None = None

    def __init__(
        self,
        send: str,
        every: int | str,
        meet: str,
        rule: Any,
        bound: int | None = None,
        scale: float | str | None = None,
        compression: str | None = None,
    ) -> None:
        meet, bound = _meeting(meet, bound)
        values = (send, every, meet, RuleSpec.of(rule), bound, scale, compression)
        for each, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, each.name, value)
        _check_answers(self)
        self._check_rule(self.rule.declared_here)

    @classmethod
    def named(cls, name: str, **answers: Any) -> ExchangePlan:
        """The preset of that name, with the answers that are given in place of its own, as `refined` takes them."""
        if name not in PRESETS:
            raise PlanError(one_of("exchange", name, PRESETS))
        return cls(**PRESETS[name]._asdict()).refined(**answers)

    def refined(
        self,
        *,
        every: int | str | None = None,
        meet: str | None = None,
        rule: Any = None,
        bound: int | None = None,
        scale: float | str | None = None,
        compression: str | None = None,
    ) -> ExchangePlan:
        """The same plan with other answers; `None` leaves one as it is. Another rule is not stretched."""
        kept = self.bound if meet is None or (meet == "bounded" and bound is None) else None
        scaled = None if rule is not None and self.scale == STRETCHED else self.scale
        return ExchangePlan(
            send=self.send,
            every=self.every if every is None else every,
            meet=self.meet if meet is None else meet,
            rule=self.rule if rule is None else rule,
            bound=kept if bound is None else bound,
            scale=scaled if scale is None else scale,
            compression=self.compression if compression is None else compression,
        )

    @property
    def synchronous(self) -> bool:
        """Whether a round ends for all at once."""
        return self.meet == "synchronous"

    @property
    def applies_on_workers(self) -> bool:
        """Whether each worker applies what was shared with the model's own optimizer, so that they hold the state."""
        return self.rule.declared.on_workers == APPLY

    @property
    def pulls_on_workers(self) -> bool:
        """Whether each worker keeps its own weights, and the rule pulls at them there."""
        return self.rule.declared.on_workers == PULL

    @property
    def waits(self) -> bool:
        """Whether a worker may have to wait for others, so that all of them must run at once."""
        return self.meet in {"synchronous", "bounded"}

    @property
    def overlaps(self) -> bool:
        """Whether a worker continues with its next round while its contribution travels.

        Only with updates: there a worker has taken its own steps already. A gradient that overlaps lacks the worker's
        last one, and Adam with gradients of every step may then diverge.
        """
        if self.send != "updates":
            return False
        return self.meet in {"asynchronous", "hogwild"} or (self.meet == "bounded" and bool(self.bound))

    @property
    def scaled_by(self) -> float | str | None:
        """The plan's scale, or the rule's own; `None` for 1."""
        return self.rule.declared.scale if self.scale is None else self.scale

    def factor(self, workers: int, staleness: int = 0) -> float:
        """The factor on one contribution, or on the mean of a synchronous round to which `workers` have contributed."""
        scale = self.scaled_by
        alone = 1.0 if self.synchronous else 1.0 / workers
        if scale is None:
            return 1.0
        if scale == STRETCHED:
            return alone * self.stretch(workers)
        if isinstance(scale, str):
            return alone if scale == "workers" else 1.0 / (1 + staleness)
        return float(scale)

    def stretch(self, workers: int) -> float:
        """How much further workers move than by their steps alone, under a plan that says so."""
        scale = self.scaled_by
        if isinstance(scale, (int, float)):
            return float(scale)
        return min(math.sqrt(workers), _FURTHEST) if scale == STRETCHED else 1.0

    def check(self) -> None:
        """Refuse a rule that does not fit the other answers; its class is imported, or it is an error."""
        self.rule.check()
        self._check_rule(self.rule.declared)

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` reads back."""
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"rule": self.rule.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ExchangePlan:
        """The plan that `to_json` described."""
        return cls(**data)

    def _check_rule(self, declared: RuleDeclaration) -> None:
        _check_fit(self, declared)
        _check_scale(self, declared)


def _meeting(meet: Any, bound: int | None) -> tuple[str, int | None]:
    """`meet` and the bound that may be written with it."""
    if not isinstance(meet, str) or "(" not in meet:
        return meet, bound
    name, positional, named = parse_call(meet, "meet")
    if name != "bounded" or named or len(positional) != 1:
        raise PlanError(
            "`meet` must be one of 'synchronous', 'asynchronous', 'hogwild' or, with how many rounds a worker may run "
            f"ahead, 'bounded(4)'. Received: {meet!r}."
        )
    if bound not in (None, positional[0]):
        raise PlanError(f"`bound` must be given once. Received: {bound!r}, with meet={meet!r}.")
    return name, positional[0]


def _check_answers(plan: ExchangePlan) -> None:
    for name, known in (("send", SENDS), ("meet", MEETINGS)):
        if getattr(plan, name) not in known:
            raise PlanError(one_of(name, getattr(plan, name), known))
    if plan.every != "epoch" and not is_whole(plan.every, at_least=1):
        raise PlanError(f"`every` must be a whole number of steps of at least 1, or 'epoch'. Received: {plan.every!r}.")
    if plan.meet == "bounded":
        if not is_whole(plan.bound, at_least=0):
            raise PlanError(
                "meet='bounded' must come with `bound`, a whole number of rounds of at least 0 that a worker may run "
                f"ahead of the slowest. Received: {plan.bound!r}. Write 'bounded(4)'."
            )
    elif plan.bound is not None:
        raise PlanError(
            f"`bound` must be given with meet='bounded' only. Received: {plan.bound!r}, with meet={plan.meet!r}."
        )
    if plan.compression not in (None, *COMPRESSIONS):
        raise PlanError(one_of("compression", plan.compression, COMPRESSIONS))


def _check_fit(plan: ExchangePlan, declared: RuleDeclaration) -> None:
    """Whether the rule can work on what is sent, as the workers meet."""
    rule, send = plan.rule, plan.send
    if send not in declared.takes:
        expected = " or ".join(f"send={each!r}" for each in declared.takes)
        nearest = declared.instead_of_sending or _NEAREST[send]
        raise PlanError(f"The rule {str(rule)!r} needs {expected}. Received: send={send!r}. {nearest}")
    if plan.meet not in declared.meets:
        needs = "needs " + " or ".join(f"meet={each!r}" for each in declared.meets)
        if declared.meets == NOT_SYNCHRONOUS:
            needs = "applies contributions one at a time and needs a `meet` other than 'synchronous'"
        message = f"The rule {rule.name!r} {needs}. Received: meet={plan.meet!r}. {declared.instead_of_meeting}"
        raise PlanError(message.rstrip())


# What combines what is sent, where a rule does not.
_NEAREST: Mapping[str, str] = {
    "gradients": "Gradients are applied by the workers' optimizers, rule='own', or by one here, such as rule='sgd'.",
    "weights": "Weights are combined by rule='mean', 'moving_average(4)' or 'elastic(0.1)'.",
    "updates": "Updates are combined by rule='mean', 'sum' or 'add', or by an optimizer such as 'sgd'.",
}


def _check_scale(plan: ExchangePlan, declared: RuleDeclaration) -> None:
    scale = plan.scale
    if scale is None:
        return
    if not is_factor(scale) and scale not in SCALES:
        raise PlanError(one_of("scale", scale, SCALES) + " It may also be a number above 0.")
    if plan.synchronous and (plan.send not in declared.scales_together or scale in {"workers", "staleness"}):
        raise PlanError(
            "`scale` must be left out where workers meet synchronously: the rule sees all of a round at once. Only a "
            f"mean of updates, or elastic weights, may be scaled, by a number or {STRETCHED!r}. Received: {scale!r}."
        )
    if (scale if isinstance(scale, str) else NUMBER) in declared.scales:
        return
    known = [repr(each) for each in SCALES if each in declared.scales]
    admitted = " or ".join(["a number above 0"] * (NUMBER in declared.scales) + known)
    must = f"be {admitted}" if admitted else "be left out"
    why = f", whose `{declared.moved_by}` says how far a contribution moves the parameters" if declared.moved_by else ""
    raise PlanError(f"`scale` must {must} with the rule {plan.rule.name!r}{why}. Received: {scale!r}.")


class Preset(NamedTuple):
    """The answers of a plan that has a name."""

    send: str
    every: int
    meet: str
    rule: str
    bound: int | None = None
    scale: str | None = None


# "diloco": the paper's momentum of 0.9 moves the parameters by seven times the mean update in the long run, which suits
# training that decays its rate over many thousand steps; at a constant rate it overshoots (half a point on MNIST).
#
# The stretched ones: the mean of n workers' updates takes them no further than one worker gets in its share of the
# steps, so that four come up short in the epochs that are enough for one (0.6 points on MNIST). The mean has less
# noise, and can bear more.
PRESETS: Mapping[str, Preset] = {
    "allreduce": Preset("gradients", 1, "synchronous", "own"),
    "averaging": Preset("updates", 50, "synchronous", "mean", scale=STRETCHED),
    "downpour": Preset("updates", 5, "asynchronous", "add", scale=STRETCHED),
    "hogwild": Preset("updates", 5, "hogwild", "add", scale=STRETCHED),
    "bounded": Preset("updates", 5, "bounded", "add", bound=4, scale=STRETCHED),
    "elastic": Preset("weights", 10, "asynchronous", "elastic", scale=STRETCHED),
    "diloco": Preset("updates", 100, "synchronous", "sgd(learning_rate=0.7, momentum=0.6, nesterov=True)"),
}
