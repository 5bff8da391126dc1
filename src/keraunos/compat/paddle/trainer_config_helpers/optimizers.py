"""`settings` and the optimizers, regularisation, averaging and clipping that it takes. On the driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keraunos.compat.paddle import config_parser as raw
from keraunos.errors import ModelError

__all__ = [
    "AdaDeltaOptimizer",
    "AdaGradOptimizer",
    "AdamOptimizer",
    "AdamaxOptimizer",
    "BaseRegularization",
    "BaseSGDOptimizer",
    "DecayedAdaGradOptimizer",
    "GradientClippingThreshold",
    "L2Regularization",
    "ModelAverage",
    "MomentumOptimizer",
    "Optimizer",
    "RMSPropOptimizer",
    "settings",
]


class Optimizer:
    """Something that `settings` takes: words for the raw `Settings`, and defaults for parameters made afterwards."""

    def to_setting_kwargs(self) -> dict[str, Any]:
        """Returns its arguments for `Settings`."""
        return {}

    def extra_settings(self) -> None:
        """Sets the defaults that parameters made afterwards start from."""


class BaseSGDOptimizer(Optimizer):
    """A learning method by gradients of batches."""


class MomentumOptimizer(BaseSGDOptimizer):
    """Gradient descent with momentum, which is the default of every parameter without its own value.

    Args:
        momentum: between 0 and 1; without it the parameters' own, or 0.
        sparse: keep the momentum of rows that no sample touches exact without touching them.
    """

    def __init__(self, momentum: float | None = None, sparse: bool = False) -> None:
        self.momentum = momentum
        self.sparse = sparse

    def to_setting_kwargs(self) -> dict[str, Any]:
        """`learning_method`."""
        return {"learning_method": "sparse_momentum" if self.sparse else "momentum"}

    def extra_settings(self) -> None:
        """`default_momentum`."""
        if self.momentum is not None:
            raw.default_momentum(self.momentum)


class AdamOptimizer(BaseSGDOptimizer):
    """Adam. As in Paddle, it ignores schedules, momentum and decay."""

    def __init__(self, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8) -> None:
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon

    def to_setting_kwargs(self) -> dict[str, Any]:
        """`learning_method`, `adam_beta1`, `adam_beta2` and `adam_epsilon`."""
        return {
            "learning_method": "adam",
            "adam_beta1": self.beta1,
            "adam_beta2": self.beta2,
            "adam_epsilon": self.epsilon,
        }


class AdamaxOptimizer(BaseSGDOptimizer):
    """Adamax. As in Paddle, it ignores schedules, momentum and decay."""

    def __init__(self, beta1: float = 0.9, beta2: float = 0.999) -> None:
        self.beta1 = beta1
        self.beta2 = beta2

    def to_setting_kwargs(self) -> dict[str, Any]:
        """`learning_method`, `adam_beta1` and `adam_beta2`."""
        return {"learning_method": "adamax", "adam_beta1": self.beta1, "adam_beta2": self.beta2}


class AdaGradOptimizer(BaseSGDOptimizer):
    """AdaGrad."""

    def to_setting_kwargs(self) -> dict[str, Any]:
        """`learning_method`."""
        return {"learning_method": "adagrad"}


class _MeanSquares(BaseSGDOptimizer):
    """A method that keeps a running mean of squared gradients."""

    learning_method = ""

    def __init__(self, rho: float = 0.95, epsilon: float = 1e-6) -> None:
        self.rho = rho
        self.epsilon = epsilon

    def to_setting_kwargs(self) -> dict[str, Any]:
        """`learning_method`, `ada_rou` and `ada_epsilon`."""
        return {"learning_method": self.learning_method, "ada_rou": self.rho, "ada_epsilon": self.epsilon}


class RMSPropOptimizer(_MeanSquares):
    """RMSProp, centred."""

    learning_method = "rmsprop"


class DecayedAdaGradOptimizer(_MeanSquares):
    """AdaGrad over a running mean instead of a sum."""

    learning_method = "decayed_adagrad"


class AdaDeltaOptimizer(_MeanSquares):
    """AdaDelta."""

    learning_method = "adadelta"


class BaseRegularization(Optimizer):
    """A pull on the parameters."""


class L2Regularization(BaseRegularization):
    """Decay by `rate` of every parameter made after `settings` without its own value."""

    def __init__(self, rate: float) -> None:
        self.decay_rate = rate

    def extra_settings(self) -> None:
        """`default_decay_rate`."""
        raw.default_decay_rate(self.decay_rate)


class ModelAverage(Optimizer):
    """Predict and save with parameters averaged over the last updates.

    Args:
        average_window: the share of all updates so far that is averaged.
        max_average_window: the most updates that are averaged.
        do_average_in_cpu: where Paddle keeps the sums.
    """

    def __init__(
        self, average_window: float, max_average_window: int | None = None, do_average_in_cpu: bool = False
    ) -> None:
        self.average_window = average_window
        self.max_average_window = max_average_window
        self.do_average_in_cpu = do_average_in_cpu

    def to_setting_kwargs(self) -> dict[str, Any]:
        """`average_window`, `max_average_window` and `do_average_in_cpu`."""
        longest = {} if self.max_average_window is None else {"max_average_window": self.max_average_window}
        return {"average_window": self.average_window, "do_average_in_cpu": self.do_average_in_cpu, **longest}


class GradientClippingThreshold(Optimizer):
    """The largest gradient, element by element, of every parameter made after `settings` without its own value."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def extra_settings(self) -> None:
        """`default_gradient_clipping_threshold`."""
        raw.default_gradient_clipping_threshold(self.threshold)


def settings(
    batch_size: int,
    learning_rate: float = 1e-3,
    learning_rate_decay_a: float = 0.0,
    learning_rate_decay_b: float = 0.0,
    learning_rate_schedule: str = "poly",
    learning_rate_args: str = "",
    learning_method: BaseSGDOptimizer | None = None,
    regularization: BaseRegularization | Sequence[BaseRegularization] | None = None,
    is_async: bool = False,
    model_average: ModelAverage | None = None,
    gradient_clipping_threshold: float | None = None,
) -> None:
    """How the network is trained; defaults that it sets hold for layers defined after it.

    Args:
        batch_size: rows of one trainer in one batch.
        learning_rate: before the schedule and the parameters' own rates.
        learning_rate_decay_a: the schedule's first number.
        learning_rate_decay_b: the schedule's second number.
        learning_rate_schedule: `constant`, `poly`, `caffe_poly`, `exp`, `discexp`, `linear`, `manual`, `pass_manual`.
        learning_rate_args: the steps of `manual` and `pass_manual`.
        learning_method: `MomentumOptimizer()` by default.
        regularization: one, or several.
        is_async: each trainer's gradient is applied when it arrives instead of with the others'.
        model_average: averaging of parameters.
        gradient_clipping_threshold: the largest gradient, element by element.
    """
    method = MomentumOptimizer() if learning_method is None else learning_method
    if not isinstance(method, BaseSGDOptimizer):
        raise ModelError(
            f"`learning_method` must be one of this package's optimizers, such as MomentumOptimizer(momentum=0.9) or "
            f"AdamOptimizer(). Received: {learning_method!r}."
        )
    pulls = [regularization] if isinstance(regularization, BaseRegularization) else list(regularization or ())
    for pull in pulls:
        if not isinstance(pull, BaseRegularization):
            raise ModelError(
                f"`regularization` must be L2Regularization(rate), or a list of such. Received: {pull!r}. "
                "For an L1 pull give the parameter a ParamAttr(l1_rate=…)."
            )
    parts: list[Optimizer] = [method, *pulls]
    if model_average is not None:
        parts.append(model_average)
    if gradient_clipping_threshold is not None:
        parts.append(GradientClippingThreshold(gradient_clipping_threshold))
    words: dict[str, Any] = {
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "learning_rate_decay_a": learning_rate_decay_a,
        "learning_rate_decay_b": learning_rate_decay_b,
        "learning_rate_schedule": learning_rate_schedule,
        "learning_rate_args": learning_rate_args,
        "algorithm": "async_sgd" if is_async else "sgd",
    }
    for part in parts:
        words.update(part.to_setting_kwargs())
        part.extra_settings()
    raw.Settings(**words)
