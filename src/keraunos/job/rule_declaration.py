"""What a rule says about itself, so that a plan with it is checked before any work. Runs on the driver and on workers.

A rule's class has a `RuleDeclaration` as its attribute `declaration`. What a plan checks and what the engine asks about
a rule is read from it, for the rules that are built in and for registered ones alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keraunos.errors import PlanError, one_of

if TYPE_CHECKING:
    from keraunos.job.rule_spec import RuleSpec

SENDS = ("gradients", "updates", "weights")
MEETINGS = ("synchronous", "asynchronous", "hogwild", "bounded")
NOT_SYNCHRONOUS = ("asynchronous", "hogwild", "bounded")
STRETCHED = "stretched"
SCALES = ("workers", STRETCHED, "staleness")
NUMBER = "number"
APPLY = "apply"
PULL = "pull"


@dataclass(frozen=True)
class RuleOption:
    """One option of a rule.

    Attributes:
        name: what it is given by.
        default: its value where it is not given, or a function that computes it from the number of workers.
        expected: what a value must be or do, as an error says it after "must".
        holds: whether a value is as `expected` says; without it any value is taken.
    """

    name: str
    default: Any = None
    expected: str = ""
    holds: Callable[[Any], bool] | None = None

    @classmethod
    def number(cls, name: str, default: Any = None, *, at_least: float, at_most: float | None = None) -> RuleOption:
        """An option that is a number in a range, its ends included."""
        span = f"of at least {at_least}" if at_most is None else f"from {at_least} to {at_most}"
        high = float("inf") if at_most is None else at_most
        return cls(name, default, f"be a number {span}", lambda value: is_number(value) and at_least <= value <= high)

    @classmethod
    def between(cls, name: str, default: Any = None, *, low: float, high: float) -> RuleOption:
        """An option that is a number in a range, its ends excluded."""
        expected = f"lie between {low} and {high}, exclusive"
        return cls(name, default, expected, lambda value: is_number(value) and low < value < high)

    @classmethod
    def whole_number(cls, name: str, default: Any = None, *, at_least: int) -> RuleOption:
        """An option that is a whole number."""
        expected = f"be a whole number of at least {at_least}"
        return cls(name, default, expected, lambda value: is_whole(value, at_least=at_least))

    def value(self, given: Any, workers: int) -> Any:
        """What the rule works with: the given value, or the default."""
        if given is not None:
            return given
        return self.default(workers) if callable(self.default) else self.default

    def check(self, rule: str, value: Any) -> None:
        """Refuse a value that the option cannot have; `None` stands for the default."""
        if value is not None and self.holds is not None and not self.holds(value):
            raise PlanError(f"`{self.name}` of the rule {rule!r} must {self.expected}. Received: {value!r}.")


@dataclass(frozen=True)
class RuleDeclaration:
    """What a rule takes, how workers may meet with it, and its options.

    Attributes:
        takes: what workers may send: any of `SENDS`.
        meets: how they may meet: any of `MEETINGS`.
        options: the rule's options, in the order in which they may be given without a name.
        other_options: whether options that are not among them are taken too, unchecked.
        check: what else is to be checked about the options; it raises a `PlanError`.
        scale: the factor on each contribution of a plan that says none: a number, one of `SCALES`, or `None` for 1.
        scales: what a plan may give as `scale`: any of `NUMBER` and `SCALES`.
        scales_together: of which `takes` a synchronous round may be scaled, by a number or stretched.
        moved_by: the option that says how far a contribution moves the parameters, for the message about a `scale`.
        on_workers: which part of the rule workers run: `None`, `APPLY` (each applies what was reduced with the model's
            own optimizer; the servers have no parameters) or `PULL` (each keeps its own weights, and the rule's
            `pull` moves them by the result).
        instead_of_sending: what an error advises where workers send something else.
        instead_of_meeting: what an error advises where workers meet otherwise.
    """

    takes: tuple[str, ...] = SENDS
    meets: tuple[str, ...] = MEETINGS
    options: tuple[RuleOption, ...] = ()
    other_options: bool = False
    check: Callable[[RuleSpec], None] | None = None
    scale: float | str | None = None
    scales: tuple[str, ...] = (NUMBER, *SCALES)
    scales_together: tuple[str, ...] = ()
    moved_by: str | None = None
    on_workers: str | None = None
    instead_of_sending: str = ""
    instead_of_meeting: str = ""

    def __post_init__(self) -> None:
        for name, known in (
            ("takes", SENDS),
            ("meets", MEETINGS),
            ("scales", (NUMBER, *SCALES)),
            ("scales_together", self.takes),
        ):
            for each in getattr(self, name):
                if each not in known:
                    raise PlanError(one_of(f"{name} of a rule", each, known))
        if self.scale is not None and not is_factor(self.scale) and self.scale not in SCALES:
            raise PlanError(one_of("scale of a rule", self.scale, SCALES) + " It may also be a number above 0.")
        if self.on_workers not in (None, APPLY, PULL):
            raise PlanError(one_of("on_workers of a rule", self.on_workers, (APPLY, PULL)))
        if self.on_workers == APPLY and (self.takes, self.meets) != (("gradients",), ("synchronous",)):
            raise PlanError(
                "A rule that workers apply must take gradients, synchronously: all of them hold the same parameters. "
                f"Received: takes={self.takes!r}, meets={self.meets!r}."
            )
        if self.on_workers == PULL and self.takes != ("weights",):
            raise PlanError(f"A rule that pulls at the workers' weights must take weights. Received: {self.takes!r}.")

    @property
    def order(self) -> tuple[str, ...]:
        """The names of the options, in the order in which they may be given without one."""
        return tuple(option.name for option in self.options)

    def value(self, name: str, given: Any, workers: int) -> Any:
        """What the rule works with for an option: the given value, or the default."""
        declared = next((option for option in self.options if option.name == name), RuleOption(name))
        return declared.value(given, workers)

    def check_options(self, rule: str, options: Mapping[str, Any]) -> None:
        """Refuse options that the rule does not have, and values that they cannot have."""
        for name in options:
            if name not in self.order and not self.other_options:
                if not self.options:
                    raise PlanError(f"The rule {rule!r} must be given no arguments. Received: {name!r}.")
                raise PlanError(one_of(f"{rule}'s argument", name, self.order))
        for option in self.options:
            option.check(rule, options.get(option.name))


# What holds for a rule that declares nothing: it is given what the plan says, unchecked.
UNDECLARED = RuleDeclaration(other_options=True)


def is_number(value: object) -> bool:
    """Whether it is a number, and no truth value."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_whole(value: Any, *, at_least: int) -> bool:
    """Whether it is a whole number that is not below another."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= at_least


def is_factor(value: Any) -> bool:
    """Whether it is a finite number above 0."""
    return is_number(value) and 0 < value < float("inf")
