"""BigDL's schedules of the learning rate of SGD. Runs on the driver and, as plain data, where the parameters live.

`n` below is the number of steps that were taken before, `rate` the method's learning rate. Each schedule is written to
plain data, which the rule that applies it reads with `rate_at`; only `Plateau` is moved by the driver, epoch by epoch.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from keraunos.compat.zoo.bigdl.optim.arguments import float_type, number, whole
from keraunos.errors import JobError, one_of


class LearningRateSchedule(ABC):
    """How a learning rate changes with the steps."""

    def to_json(self) -> dict[str, Any]:
        """Returns the schedule as plain data."""
        return {"name": type(self).__name__, **vars(self)}

    @abstractmethod
    def rate(self, rate: float, decay: float, n: int, skipped: int) -> float:
        """Returns the rate after `n` steps, of which `skipped` came before this schedule's turn."""


class Default(LearningRateSchedule):
    """`rate / (1 + n * learningrate_decay)`."""

    def __init__(self, bigdl_type: str = "float") -> None:
        float_type(bigdl_type)

    def rate(self, rate: float, decay: float, n: int, skipped: int) -> float:
        """Returns the rate after `n` steps."""
        return rate / (1.0 + (n - skipped) * decay)


class Poly(LearningRateSchedule):
    """`rate * (1 - n / max_iteration) ** power`, and zero afterwards; in a sequence, `n` counts from the very start."""

    def __init__(self, power: float, max_iteration: int, bigdl_type: str = "float") -> None:
        float_type(bigdl_type)
        self.power = number("power", power)
        self.max_iteration = whole("max_iteration", max_iteration)

    def rate(self, rate: float, decay: float, n: int, skipped: int) -> float:
        """Returns the rate after `n` steps."""
        if n > self.max_iteration:
            return 0.0
        left = 1.0 - n / self.max_iteration
        return rate * (left**self.power if left or self.power >= 0 else 0.0)


class Exponential(LearningRateSchedule):
    """`rate * decay_rate ** (n / decay_step)`; with `stair_case` the quotient is rounded down."""

    def __init__(self, decay_step: int, decay_rate: float, stair_case: bool = False, bigdl_type: str = "float") -> None:
        float_type(bigdl_type)
        self.decay_step = whole("decay_step", decay_step)
        self.decay_rate = number("decay_rate", decay_rate, above=0)
        self.stair_case = bool(stair_case)

    def rate(self, rate: float, decay: float, n: int, skipped: int) -> float:
        """Returns the rate after `n` steps."""
        power = (n - skipped) / self.decay_step
        return float(rate * self.decay_rate ** (math.floor(power) if self.stair_case else power))


class Step(LearningRateSchedule):
    """`rate * gamma ** (n // step_size)`."""

    def __init__(self, step_size: int, gamma: float, bigdl_type: str = "float") -> None:
        float_type(bigdl_type)
        self.step_size = whole("step_size", step_size)
        self.gamma = number("gamma", gamma)

    def rate(self, rate: float, decay: float, n: int, skipped: int) -> float:
        """Returns the rate after `n` steps."""
        return float(rate * self.gamma ** ((n - skipped) // self.step_size))


class MultiStep(LearningRateSchedule):
    """`rate * gamma ** k`, where `k` of the `step_sizes`, which are numbers of steps, have been reached."""

    def __init__(self, step_sizes: Sequence[int], gamma: float, bigdl_type: str = "float") -> None:
        float_type(bigdl_type)
        self.step_sizes = [whole("step_sizes", each, least=0) for each in step_sizes]
        self.gamma = number("gamma", gamma)

    def rate(self, rate: float, decay: float, n: int, skipped: int) -> float:
        """Returns the rate after `n` steps."""
        reached = 0
        while reached < len(self.step_sizes) and n - skipped >= self.step_sizes[reached]:
            reached += 1
        return float(rate * self.gamma**reached)


class Warmup(LearningRateSchedule):
    """`rate + delta * n`."""

    def __init__(self, delta: float, bigdl_type: str = "float") -> None:
        float_type(bigdl_type)
        self.delta = number("delta", delta)

    def rate(self, rate: float, decay: float, n: int, skipped: int) -> float:
        """Returns the rate after `n` steps."""
        return rate + self.delta * (n - skipped)


class SequentialSchedule(LearningRateSchedule):
    """One schedule after the other; each begins with the rate that the one before ended with.

    A schedule that was added with `max_iteration` is in force up to and including that many steps after the one before
    it, so that a warm-up reaches `rate + delta * max_iteration`. The last one stays in force.
    """

    def __init__(self, iteration_per_epoch: int, bigdl_type: str = "float") -> None:
        float_type(bigdl_type)
        self.iteration_per_epoch = whole("iteration_per_epoch", iteration_per_epoch)
        self.schedules: list[tuple[LearningRateSchedule, int]] = []

    def add(self, scheduler: LearningRateSchedule, max_iteration: int, bigdl_type: str = "float") -> SequentialSchedule:
        """Put a schedule behind the others, for `max_iteration` steps."""
        float_type(bigdl_type)
        if not isinstance(scheduler, LearningRateSchedule) or isinstance(scheduler, (Plateau, SequentialSchedule)):
            raise JobError(
                "`scheduler` must be a schedule that follows the steps: Default, Exponential, MultiStep, Poly, Step or "
                f"Warmup. Received: {scheduler!r}. Give a Plateau to the method by itself."
            )
        self.schedules.append((scheduler, whole("max_iteration", max_iteration)))
        return self

    def to_json(self) -> dict[str, Any]:
        """Returns the schedule as plain data."""
        steps = [[schedule.to_json(), length] for schedule, length in self.schedules]
        return {
            "name": type(self).__name__,
            "iteration_per_epoch": self.iteration_per_epoch,
            "schedules": steps,
        }

    def rate(self, rate: float, decay: float, n: int, skipped: int) -> float:
        """Returns the rate after `n` steps."""
        if not self.schedules:
            raise JobError("A SequentialSchedule must be given schedules with `add`. Received: none.")
        before = 0
        for index, (schedule, length) in enumerate(self.schedules):
            if n <= before + length or index + 1 == len(self.schedules):
                return schedule.rate(rate, decay, n, before)
            rate = schedule.rate(rate, decay, before + length, before)
            before += length
        raise AssertionError("the last schedule is in force to the end")


class Plateau(LearningRateSchedule):
    """Multiply the rate by `factor` when `monitor` has not improved for more than `patience` epochs.

    `monitor` is `"Loss"` (the epoch's training loss) or `"score"` (the first validation method's result). What
    counts as better is less, or more with `mode="max"`, by more than `epsilon`. After a reduction it waits `cooldown`
    epochs, and the rate never falls below `min_lr`. The driver shows it each epoch's value: see `observe`.
    """

    def __init__(
        self,
        monitor: str,
        factor: float = 0.1,
        patience: int = 10,
        mode: str = "min",
        epsilon: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0.0,
        bigdl_type: str = "float",
    ) -> None:
        float_type(bigdl_type)
        if monitor not in {"Loss", "score"}:
            raise JobError(one_of("monitor", monitor, ("Loss", "score")))
        if mode not in {"min", "max"}:
            raise JobError(one_of("mode", mode, ("min", "max")))
        self.monitor = monitor
        self.factor = number("factor", factor, above=0, below=1)
        self.patience = whole("patience", patience, least=0)
        self.mode = mode
        self.epsilon = number("epsilon", epsilon, least=0)
        self.cooldown = whole("cooldown", cooldown, least=0)
        self.min_lr = number("min_lr", min_lr, least=0)
        self._best: float | None = None
        self._waited = 0
        self._cooling = 0

    def to_json(self) -> dict[str, Any]:
        """Returns the schedule as plain data."""
        return {key: value for key, value in super().to_json().items() if not key.startswith("_")}

    def rate(self, rate: float, decay: float, n: int, skipped: int) -> float:
        """Returns the rate unchanged: the driver changes it between epochs."""
        return rate

    def reset(self) -> None:
        """Forget what was observed, as before a first epoch."""
        self._best, self._waited, self._cooling = None, 0, 0

    def observe(self, rate: float, value: float) -> float:
        """Returns the rate for the next epoch, from the present one and what the monitored quantity is now."""
        if self._cooling:
            self._cooling -= 1
            self._waited = 0
        if self._is_better(value):
            self._best = value
            self._waited = 0
        elif not self._cooling:
            if self._waited >= self.patience and rate > self.min_lr * (1 + 1e-4):
                rate = max(rate * self.factor, self.min_lr)
                self._cooling = self.cooldown
                self._waited = 0
            self._waited += 1
        return rate

    def _is_better(self, value: float) -> bool:
        if self._best is None:
            return not math.isnan(value)
        return value < self._best - self.epsilon if self.mode == "min" else value > self._best + self.epsilon


_KINDS: Mapping[str, type[LearningRateSchedule]] = {
    each.__name__: each for each in (Default, Poly, Exponential, Step, MultiStep, Warmup, SequentialSchedule, Plateau)
}


def from_json(data: Mapping[str, Any]) -> LearningRateSchedule:
    """Returns the schedule that `to_json` described."""
    arguments = dict(data)
    kind = _KINDS[arguments.pop("name")]
    parts = arguments.pop("schedules", [])
    schedule = kind(**arguments)
    if isinstance(schedule, SequentialSchedule):
        for part, length in parts:
            schedule.add(from_json(part), length)
    return schedule
