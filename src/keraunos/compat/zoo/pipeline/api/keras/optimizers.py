"""`zoo.pipeline.api.keras.optimizers`: optim methods of Analytics Zoo's own. Runs on the driver.

What they compute is in `compat.zoo.adam_rules`.
"""

from __future__ import annotations

from typing import Any, NoReturn

from keraunos.compat.zoo import adam_rules as _adam_rules
from keraunos.compat.zoo.bigdl.optim.arguments import float_type, number
from keraunos.compat.zoo.bigdl.optim.methods import OptimMethod, ScheduledMethod
from keraunos.compat.zoo.bigdl.optim.schedules import Default, LearningRateSchedule
from keraunos.compat.zoo.bigdl.util import common as _bigdl
from keraunos.errors import JobError, one_of

__all__ = ["Adam", "AdamWeightDecay", "Default", "OptimMethod", "PolyEpochDecay"]
# Imported from BigDL; a star import of this module re-exported them.
__all__ += _bigdl.__all__


def __getattr__(name: str) -> Any:
    return _bigdl.passed_on("zoo.pipeline.api.keras.optimizers", name)


_WARMUPS = ("constant", "cosine", "linear")


class _Unsaved(OptimMethod):
    """A method that BigDL's files cannot contain."""

    def save(self, path: str, overWrite: bool = False) -> NoReturn:
        """Refused."""
        del overWrite
        raise JobError(
            f"`save` must be called on one of bigdl.optim.optimizer's methods. Received: {type(self).__name__} of "
            f"zoo.pipeline.api.keras.optimizers, for {str(path)!r}. Make it again where it is needed."
        )


class Adam(_Unsaved, ScheduledMethod):
    """Adam (arXiv 1412.6980) with a schedule of the learning rate and a weight decay."""

    name = "zoo_adam"

    def __init__(
        self,
        lr: float = 1e-3,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        decay: float = 0.0,
        schedule: LearningRateSchedule | None = None,
        weight_decay: float = 0.0,
        bigdl_type: str = "float",
    ) -> None:
        float_type(bigdl_type)
        if schedule is not None and not isinstance(schedule, LearningRateSchedule):
            raise JobError(
                "`schedule` of Adam must be one of bigdl.optim.optimizer's: Default, Poly, Exponential, Step, "
                f"MultiStep, Plateau, Warmup, SequentialSchedule. Received: {schedule!r}."
            )
        self.learningrate = number("lr", lr, least=0)
        self.learningrate_decay = number("decay", decay, least=0)
        self.beta1 = number("beta_1", beta_1, least=0, below=1)
        self.beta2 = number("beta_2", beta_2, least=0, below=1)
        self.epsilon = number("epsilon", epsilon, least=0)
        self.weightdecay = number("weight_decay", weight_decay, least=0)
        self.leaningrate_schedule = Default() if schedule is None else schedule


class AdamWeightDecay(_Unsaved):
    """BERT's Adam: no correction of the moments' bias, the weights' decay beside the step, a rate that warms up.

    Args:
        lr: the learning rate.
        warmup_portion: the share of `total` in which the rate grows from 0; -1 for none.
        total: over how many steps the rate changes; -1 for a rate that stays.
        schedule: how it falls after that: "linear", "cosine", or "constant" for not at all.
        beta1: how much of the gradient's mean stays in a step.
        beta2: the same, of its square.
        epsilon: what is added to the root of the squares.
        weight_decay: what share of a weight is taken off, times the rate.
        bigdl_type: must be "float".
    """

    name = "zoo_adam_weight_decay"

    def __init__(
        self,
        lr: float = 1e-3,
        warmup_portion: float = -1.0,
        total: int = -1,
        schedule: str = "linear",
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        weight_decay: float = 0.01,
        bigdl_type: str = "float",
    ) -> None:
        float_type(bigdl_type)
        if schedule.lower() not in _WARMUPS:
            raise JobError(one_of("schedule", schedule, _WARMUPS))
        self.learningrate = number("lr", lr, least=0)
        self.warmup_portion = number("warmup_portion", warmup_portion)
        self.total = int(total)
        self.schedule = schedule.lower()
        self.beta1 = number("beta1", beta1, least=0, below=1)
        self.beta2 = number("beta2", beta2, least=0, below=1)
        self.epsilon = number("epsilon", epsilon, least=0)
        self.weight_decay = number("weight_decay", weight_decay, least=0)

    def rate_at(self, step: int) -> float:
        """Returns the learning rate of a step, counted from 1."""
        return _adam_rules.warmed(self.options(), self.learningrate, step - 1)


def PolyEpochDecay(power: float, max_epochs: int, bigdl_type: str = "float") -> Any:
    """Refused: rates follow the steps."""
    float_type(bigdl_type)
    raise JobError(
        "`PolyEpochDecay` must be replaced: a schedule of Adam follows the steps here. Received: "
        f"power={power!r}, max_epochs={max_epochs!r}. Use bigdl.optim.optimizer.Poly(power, max_epochs * steps of an "
        "epoch)."
    )
