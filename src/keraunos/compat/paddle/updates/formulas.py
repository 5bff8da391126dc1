"""The formulas of Paddle's learning methods, element by element. Runs where the parameters live, and on workers.

`g` is the gradient summed over the batch and the trainers, `w` the parameter, `rate` the scheduled rate times the
parameter's own, `μ` its momentum and `λ` its decay. Every formula takes the array namespace that it is to compute with,
numpy or `keras.ops`, so that a server and a worker's traced step share one text. Nothing is changed in place, which
is why they share none with `exchange.rules.elementwise_optimizers`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

from keraunos.compat.paddle.model_config import OptimizationConfig, ParameterConfig

Slots = Mapping[str, Any]


@dataclass(frozen=True)
class Attributes:
    """How one parameter is trained: those of Paddle's attributes that its update depends on.

    `is_sparse` stands for `sparse_update` and `sparse_remote_update`: Paddle trains such a parameter row by row, as
    gradients for rows come. Here every row moves in every batch.
    """

    learning_rate: float = 1.0
    momentum: float = 0.0
    decay_rate: float = 0.0
    decay_rate_l1: float = 0.0
    num_batches_regularization: int = 1
    gradient_clipping_threshold: float = 0.0
    is_sparse: bool = False

    @classmethod
    def of(cls, parameter: ParameterConfig) -> Attributes:
        """Returns those of a parameter."""
        same = {each.name: getattr(parameter, each.name) for each in fields(cls) if each.name != "is_sparse"}
        return cls(**same, is_sparse=parameter.sparse_update or parameter.sparse_remote_update)

    @property
    def is_proximal(self) -> bool:
        """Whether decay is its own step behind the update, and no part of the gradient."""
        apart = self.is_sparse or self.num_batches_regularization > 1
        return self.decay_rate_l1 > 0 or (apart and self.decay_rate > 0)

    @property
    def inner_decay(self) -> float:
        """The decay that is part of the gradient."""
        return 0.0 if self.is_proximal else self.decay_rate

    def to_json(self) -> dict[str, Any]:
        """Returns the arguments that differ from the defaults, as plain data."""
        usual = asdict(Attributes())
        return {name: value for name, value in asdict(self).items() if value != usual[name]}


class Now(NamedTuple):
    """Where training is.

    Attributes:
        rate: the scheduled rate, without the parameter's own.
        step: which batch it is, from 1, as a float.
        first: 1.0 in the first batch, 0.0 later.
        owed: for how many batches a parameter with periodic regularization is regularized in this one.
    """

    rate: Any
    step: Any
    first: Any
    owed: Callable[[int], Any]


class Moved(NamedTuple):
    """A parameter and its slots after a batch; `local` is the factor that a method puts on the rate of each element."""

    value: Any
    slots: Slots
    local: Any = 1.0


def slots_of(method: str, own: Attributes) -> tuple[str, ...]:
    """Returns the names of what the method remembers of each element of such a parameter; all start from 0."""
    remembered = _REMEMBERED[method]
    return (*remembered, "momentum") if own.momentum and method not in {"adam", "adamax"} else remembered


def moved(
    xp: Any, opt: OptimizationConfig, own: Attributes, now: Now, value: Any, gradient: Any, slots: Slots
) -> Moved:
    """Returns a parameter after a batch: clipped, updated by the method of the settings, and regularised."""
    limit = own.gradient_clipping_threshold
    if limit > 0:
        gradient = xp.clip(gradient, -limit, limit)
    after = _METHODS[opt.learning_method](xp, opt, own, now, value, gradient, slots)
    return _regularized(xp, own, now, after) if own.is_proximal else after


def _regularized(xp: Any, own: Attributes, now: Now, after: Moved) -> Moved:
    """`w` cut towards 0 by `rate l1`, then divided by `1 + rate λ`; every k batches, k times as much."""
    every = own.num_batches_regularization
    strength = now.rate * own.learning_rate * (1.0 if every == 1 else now.owed(every))
    value = after.value
    if own.decay_rate_l1 > 0:
        kept = xp.maximum(xp.abs(value) - after.local * (strength * own.decay_rate_l1), 0.0)
        value = xp.sign(value) * kept
    if own.decay_rate > 0:
        value = value / (1.0 + after.local * (strength * own.decay_rate))
    return after._replace(value=value)


def _stepped(own: Attributes, rate: Any, value: Any, gradient: Any, slots: Slots, **more: Any) -> Moved:
    """`v = μ v - rate (g + λ w)`; `w += v`."""
    if own.inner_decay:
        gradient = gradient + own.inner_decay * value
    move = -(rate * own.learning_rate) * gradient
    if own.momentum:
        move = own.momentum * slots["momentum"] + move
        more["momentum"] = move
    return Moved(value + move, more)


def _adapted(own: Attributes, now: Now, value: Any, gradient: Any, slots: Slots, local: Any, **more: Any) -> Moved:
    """Returns the same with a factor on the rate of each element."""
    after = _stepped(own, now.rate * local, value, gradient, slots, **more)
    return after._replace(local=local)


def _momentum(
    xp: Any, opt: OptimizationConfig, own: Attributes, now: Now, value: Any, gradient: Any, slots: Slots
) -> Moved:
    del xp, opt
    return _stepped(own, now.rate, value, gradient, slots)


def _torch_momentum(
    xp: Any, opt: OptimizationConfig, own: Attributes, now: Now, value: Any, gradient: Any, slots: Slots
) -> Moved:
    """From the second batch on the rate is times `1 - μ`."""
    del xp, opt
    return _stepped(own, now.rate * (1.0 - own.momentum * (1.0 - now.first)), value, gradient, slots)


def _adagrad(
    xp: Any, opt: OptimizationConfig, own: Attributes, now: Now, value: Any, gradient: Any, slots: Slots
) -> Moved:
    """Returns the factor `1 / √(Σ g² + ε)`."""
    squares = slots["squares"] + gradient * gradient
    local = 1.0 / xp.sqrt(squares + opt.ada_epsilon)
    return _adapted(own, now, value, gradient, slots, local, squares=squares)


def _decayed_adagrad(
    xp: Any, opt: OptimizationConfig, own: Attributes, now: Now, value: Any, gradient: Any, slots: Slots
) -> Moved:
    """`E = r E + (1 - r) g²`, from `E = g²`; the factor is `1 / √(E + ε)`."""
    squares = _mean_square(xp, opt, own, now, gradient, slots)
    local = 1.0 / xp.sqrt(squares + opt.ada_epsilon)
    return _adapted(own, now, value, gradient, slots, local, squares=squares)


def _rmsprop(
    xp: Any, opt: OptimizationConfig, own: Attributes, now: Now, value: Any, gradient: Any, slots: Slots
) -> Moved:
    """`E` as in decayed_adagrad; `M = r M + (1 - r) g`; the factor is `1 / √(E - M² + ε)`."""
    squares = _mean_square(xp, opt, own, now, gradient, slots)
    mean = opt.ada_rou * slots["mean"] + (1.0 - opt.ada_rou) * gradient
    # No variance is negative, but a difference of two large numbers may round to less than 0.
    spread = xp.maximum(squares - mean * mean, 0.0)
    local = 1.0 / xp.sqrt(spread + opt.ada_epsilon)
    return _adapted(own, now, value, gradient, slots, local, squares=squares, mean=mean)


def _adadelta(
    xp: Any, opt: OptimizationConfig, own: Attributes, now: Now, value: Any, gradient: Any, slots: Slots
) -> Moved:
    """`E = r E + (1 - r) g²`; the factor is `√((D + ε) / (E + ε))`; `D = r D + (1 - r) (g factor)²`."""
    rou, epsilon = opt.ada_rou, opt.ada_epsilon
    squares = rou * slots["squares"] + (1.0 - rou) * gradient * gradient
    local = xp.sqrt((slots["moves"] + epsilon) / (squares + epsilon))
    moves = rou * slots["moves"] + (1.0 - rou) * (gradient * local) * (gradient * local)
    return _adapted(own, now, value, gradient, slots, local, squares=squares, moves=moves)


def _adam(
    xp: Any, opt: OptimizationConfig, own: Attributes, now: Now, value: Any, gradient: Any, slots: Slots
) -> Moved:
    """`w -= rate √(1 - β₂ᵗ) / (1 - β₁ᵗ) m / (√s + ε)`, without momentum and decay."""
    beta1, beta2 = opt.adam_beta1, opt.adam_beta2
    mean = beta1 * slots["mean"] + (1.0 - beta1) * gradient
    squares = beta2 * slots["squares"] + (1.0 - beta2) * gradient * gradient
    rate = now.rate * own.learning_rate * (1.0 - beta2**now.step) ** 0.5 / (1.0 - beta1**now.step)
    value = value - rate * mean / (xp.sqrt(squares) + opt.adam_epsilon)
    return Moved(value, {"mean": mean, "squares": squares})


def _adamax(
    xp: Any, opt: OptimizationConfig, own: Attributes, now: Now, value: Any, gradient: Any, slots: Slots
) -> Moved:
    """`u = max(β₂ u, |g|)`; `w -= rate / (1 - β₁ᵗ) m / u`, and if there was no gradient yet nothing moves."""
    beta1, beta2 = opt.adam_beta1, opt.adam_beta2
    mean = beta1 * slots["mean"] + (1.0 - beta1) * gradient
    norm = xp.maximum(beta2 * slots["norm"], xp.abs(gradient))
    rate = now.rate * own.learning_rate / (1.0 - beta1**now.step)
    value = value - rate * mean / xp.where(norm > 0, norm, 1.0)
    return Moved(value, {"mean": mean, "norm": norm})


def _mean_square(xp: Any, opt: OptimizationConfig, own: Attributes, now: Now, gradient: Any, slots: Slots) -> Any:
    squares, square = slots["squares"], gradient * gradient
    if own.is_sparse:
        # A row begins with its own first gradient, whenever that comes.
        return xp.where(squares > 0, opt.ada_rou * squares + (1.0 - opt.ada_rou) * square, square)
    return opt.ada_rou * squares + ((1.0 - opt.ada_rou) + opt.ada_rou * now.first) * square


_METHODS: Mapping[str, Callable[..., Moved]] = {
    "momentum": _momentum,
    "torch_momentum": _torch_momentum,
    # For sparse parameters Paddle keeps sums `u -= a rate g` and `v += t a rate g`, with `a = a / μ`, `t += 1 / a` and
    # `w = t u + v`, so that rows without a gradient need no visit. If every row is visited, that is momentum: it is
    # `u / a`. The sums themselves grow without bound, and Paddle starts them afresh from time to time.
    "sparse_momentum": _momentum,
    "adagrad": _adagrad,
    "adadelta": _adadelta,
    "rmsprop": _rmsprop,
    "decayed_adagrad": _decayed_adagrad,
    "adam": _adam,
    "adamax": _adamax,
}
_REMEMBERED: Mapping[str, tuple[str, ...]] = {
    "momentum": (),
    "torch_momentum": (),
    "sparse_momentum": (),
    "adagrad": ("squares",),
    "adadelta": ("squares", "moves"),
    "rmsprop": ("squares", "mean"),
    "decayed_adagrad": ("squares",),
    "adam": ("mean", "squares"),
    "adamax": ("mean", "norm"),
}

METHODS = tuple(_METHODS)
