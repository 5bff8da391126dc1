"""How workers share parameters: the answers to four questions. Runs on the driver and on workers.

What does a worker send, every how many steps, how do the workers meet, and what rule turns what was sent into
new parameters? Every distributed training scheme here is one `ExchangePlan`; the well-known ones have names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from keraunos.errors import PlanError, one_of

SENDS = ("gradients", "updates")
MEETINGS = ("synchronous", "asynchronous")
RULES = ("own", "mean", "add")

# What runs today, as (what is sent, how workers meet, by which rule).
COMBINATIONS = (
    ("gradients", "synchronous", "own"),
    ("updates", "synchronous", "mean"),
    ("updates", "asynchronous", "add"),
)


@dataclass(frozen=True)
class ExchangePlan:
    """The four answers.

    Attributes:
        send: `gradients` (the round's gradient) or `updates` (weights before the round minus weights after it).
        every: the length of a round: a number of steps, or `"epoch"`.
        meet: `synchronous` (a round ends when all have sent) or `asynchronous` (each contribution is applied
            whole, at once, one at a time).
        rule: `own` (the model's own optimizer, on each worker), `mean` or `add`.
        scale: the factor on every contribution under `add`; `None` stands for one over the number of workers.
    """

    send: str
    every: int | str
    meet: str
    rule: str
    scale: float | None = None

    def __post_init__(self) -> None:
        for name, known in (("send", SENDS), ("meet", MEETINGS), ("rule", RULES)):
            if getattr(self, name) not in known:
                raise PlanError(one_of(name, getattr(self, name), known))
        whole = isinstance(self.every, int) and not isinstance(self.every, bool) and self.every >= 1
        if not whole and self.every != "epoch":
            raise PlanError(
                f"`every` must be a whole number of steps of at least 1, or 'epoch'. Received: {self.every!r}."
            )
        if (self.send, self.meet, self.rule) not in COMBINATIONS:
            fitting = "; ".join(f"{send} / {meet} / {rule}" for send, meet, rule in COMBINATIONS)
            raise PlanError(
                f"`send`, `meet` and `rule` must fit together. Expected one of: {fitting}. "
                f"Received: {self.send} / {self.meet} / {self.rule}."
            )
        if self.send == "gradients" and self.every != 1:
            raise PlanError(
                f"`every` must be 1 where gradients are sent. Received: {self.every!r}. "
                "To exchange less often, use exchange='averaging'."
            )
        if self.scale is not None and not self.scale > 0:
            raise PlanError(f"`scale` must be above 0. Received: {self.scale!r}.")

    @classmethod
    def named(cls, name: str, *, every: int | str | None = None) -> ExchangePlan:
        """The preset of that name, with another round length where one is given."""
        if name not in PRESETS:
            raise PlanError(one_of("exchange", name, PRESETS))
        return PRESETS[name].refined(every=every)

    def refined(self, *, every: int | str | None = None) -> ExchangePlan:
        """The same plan with another round length; `None` leaves it."""
        return self if every is None else replace(self, every=every)

    @property
    def synchronous(self) -> bool:
        """Whether all workers must run at once."""
        return self.meet == "synchronous"

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` reads back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ExchangePlan:
        """The plan that `to_json` described."""
        return cls(**data)


PRESETS: Mapping[str, ExchangePlan] = {
    "allreduce": ExchangePlan("gradients", 1, "synchronous", "own"),
    "averaging": ExchangePlan("updates", 50, "synchronous", "mean"),
    "downpour": ExchangePlan("updates", 5, "asynchronous", "add"),
}
