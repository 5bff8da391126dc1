"""BigDL's modules without weights that are functions of single elements or rows. Runs on the driver."""

from __future__ import annotations

import math
import sys
from typing import Any

from keraunos.compat.zoo.bigdl.nn.module import Layer
from keraunos.compat.zoo.own_layers import activations
from keraunos.compat.zoo.own_layers.computed import Computed
from keraunos.compat.zoo.own_layers.drawn import RReLU as _RReLU
from keraunos.compat.zoo.tensorflow_mode import in_tensorflow_2
from keraunos.errors import JobError
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled

__all__ = [
    "ELU",
    "Abs",
    "AddConstant",
    "Clamp",
    "Contiguous",
    "Dropout",
    "Exp",
    "GaussianDropout",
    "GaussianNoise",
    "HardShrink",
    "HardSigmoid",
    "HardTanh",
    "Identity",
    "LeakyReLU",
    "Log",
    "LogSigmoid",
    "LogSoftMax",
    "MulConstant",
    "Negative",
    "Normalize",
    "Power",
    "RReLU",
    "ReLU",
    "ReLU6",
    "Sigmoid",
    "SoftMax",
    "SoftMin",
    "SoftPlus",
    "SoftShrink",
    "SoftSign",
    "Sqrt",
    "Square",
    "Tanh",
    "TanhShrink",
    "Threshold",
]


class Function(Layer):
    """A function of its input, by its name among those of `Computed`."""

    @in_tensorflow_2
    def __init__(self, function: str, **options: Any) -> None:
        super().__init__(Computed(function, options))
        dims = [
            options.get("dim", -1),
            *options.get("dims", ()),
            *(each for pair in options.get("pairs", ()) for each in pair),
        ]
        places = max(dims) >= 0 or options.get("pos", 0) > 0
        row = options.get("row")
        self._counts_batch = places and (row is None or row < 1)

    def counts_batch(self) -> bool:
        """Returns whether its dimensions are counted from the batch."""
        return self._counts_batch


class OfKeras(Layer):
    """A layer of Keras without weights."""

    @in_tensorflow_2
    def __init__(self, kind: Any, *given: Any, **named: Any) -> None:
        super().__init__(kind(*given, **named))


class ReLU(OfKeras):
    """Keeps values above zero and sets others to zero; the argument for in-place computation is ignored."""

    def __init__(self, ip: bool = False, bigdl_type: str = "float") -> None:
        super().__init__(keras.layers.Activation, "relu")


class ReLU6(OfKeras):
    """Limits values to 0 to 6."""

    def __init__(self, inplace: bool = False, bigdl_type: str = "float") -> None:
        super().__init__(keras.layers.Activation, "relu6")


class Tanh(OfKeras):
    """The hyperbolic tangent."""

    def __init__(self, bigdl_type: str = "float") -> None:
        super().__init__(keras.layers.Activation, "tanh")


class Sigmoid(OfKeras):
    """The logistic function."""

    def __init__(self, bigdl_type: str = "float") -> None:
        super().__init__(keras.layers.Activation, "sigmoid")


class HardSigmoid(OfKeras):
    """A fifth of x and a half, between 0 and 1."""

    def __init__(self, bigdl_type: str = "float") -> None:
        super().__init__(keras.layers.Activation, activations.HardSigmoid())


class SoftSign(OfKeras):
    """x / (1 + abs(x))."""

    def __init__(self, bigdl_type: str = "float") -> None:
        super().__init__(keras.layers.Activation, "softsign")


class LogSigmoid(OfKeras):
    """The logarithm of the logistic function."""

    def __init__(self, bigdl_type: str = "float") -> None:
        super().__init__(keras.layers.Activation, "log_sigmoid")


class TanhShrink(OfKeras):
    """x less its hyperbolic tangent."""

    def __init__(self, bigdl_type: str = "float") -> None:
        super().__init__(keras.layers.Activation, "tanh_shrink")


class LogSoftMax(OfKeras):
    """The logarithm of the softmax."""

    def __init__(self, bigdl_type: str = "float") -> None:
        super().__init__(keras.layers.Activation, "log_softmax")


class SoftMin(OfKeras):
    """The softmax of minus x; of images over their channels."""

    def __init__(self, bigdl_type: str = "float") -> None:
        super().__init__(keras.layers.Activation, activations.RowSoftMax(of_minus=True))


class SoftMax(OfKeras):
    """Shares that are proportional to exponentials; of images over their channels."""

    def __init__(self, pos: int = 1, bigdl_type: str = "float") -> None:
        if pos != 1:
            raise JobError(f"`pos` of SoftMax must be 1, the first dimension of a row. Received: {pos!r}.")
        super().__init__(keras.layers.Activation, activations.RowSoftMax())


class ELU(OfKeras):
    """Maps negative values to `alpha` times (their exponential less 1)."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False, bigdl_type: str = "float") -> None:
        super().__init__(keras.layers.ELU, float(alpha))


class LeakyReLU(OfKeras):
    """Multiplies negative values by `negval`."""

    def __init__(self, negval: float = 0.01, inplace: bool = False, bigdl_type: str = "float") -> None:
        super().__init__(keras.layers.LeakyReLU, negative_slope=float(negval))


class RReLU(OfKeras):
    """Multiplies negative values by a slope, drawn in training, otherwise the mean."""

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False, bigdl_type: str = "float"
    ) -> None:
        super().__init__(_RReLU, lower, upper)


class SoftPlus(Function):
    """A smooth form of ReLU."""

    def __init__(self, beta: float = 1.0, bigdl_type: str = "float") -> None:
        super().__init__("softplus", beta=float(beta))


class Threshold(Function):
    """Keeps values above `th`; others become `v`."""

    def __init__(self, th: float = 1e-6, v: float = 0.0, ip: bool = False, bigdl_type: str = "float") -> None:
        super().__init__("threshold", th=float(th), v=float(v))


class HardTanh(Function):
    """The input, cut to a range."""

    def __init__(
        self, min_value: float = -1.0, max_value: float = 1.0, inplace: bool = False, bigdl_type: str = "float"
    ) -> None:
        super().__init__("hard_tanh", min_value=float(min_value), max_value=float(max_value))


class Clamp(Function):
    """The input, cut to a range."""

    def __init__(self, min: float, max: float, bigdl_type: str = "float") -> None:  # noqa: A002 - BigDL's names
        super().__init__("hard_tanh", min_value=float(min), max_value=float(max))


class HardShrink(Function):
    """Keeps values farther than `the_lambda` from zero; others become zero."""

    def __init__(self, the_lambda: float = 0.5, bigdl_type: str = "float") -> None:
        super().__init__("hard_shrink", value=float(the_lambda))


class SoftShrink(Function):
    """The input, by `the_lambda` nearer to zero."""

    def __init__(self, the_lambda: float = 0.5, bigdl_type: str = "float") -> None:
        super().__init__("soft_shrink", value=float(the_lambda))


class Abs(Function):
    """The absolute value."""

    def __init__(self, bigdl_type: str = "float") -> None:
        super().__init__("abs")


class Exp(Function):
    """The exponential."""

    def __init__(self, bigdl_type: str = "float") -> None:
        super().__init__("exp")


class Log(Function):
    """The natural logarithm."""

    def __init__(self, bigdl_type: str = "float") -> None:
        super().__init__("log")


class Sqrt(Function):
    """The square root."""

    def __init__(self, bigdl_type: str = "float") -> None:
        super().__init__("sqrt")


class Square(Function):
    """The square."""

    def __init__(self, bigdl_type: str = "float") -> None:
        super().__init__("square")


class Negative(Function):
    """Minus the input."""

    def __init__(self, inplace: bool = False, bigdl_type: str = "float") -> None:
        super().__init__("negative")


class Identity(Function):
    """The input."""

    def __init__(self, bigdl_type: str = "float") -> None:
        super().__init__("identity")


class Contiguous(Function):
    """The input, which has no holes in memory here."""

    def __init__(self, bigdl_type: str = "float") -> None:
        super().__init__("identity")


class AddConstant(Function):
    """The input and a number."""

    def __init__(self, constant_scalar: float, inplace: bool = False, bigdl_type: str = "float") -> None:
        super().__init__("add_constant", constant=float(constant_scalar))


class MulConstant(Function):
    """The input times a number."""

    def __init__(self, scalar: float, inplace: bool = False, bigdl_type: str = "float") -> None:
        super().__init__("mul_constant", constant=float(scalar))


class Power(Function):
    """A power of (shift and scale times the input)."""

    def __init__(self, power: float, scale: float = 1.0, shift: float = 0.0, bigdl_type: str = "float") -> None:
        super().__init__("power", power=float(power), scale=float(scale), shift=float(shift))


class Normalize(Function):
    """Rows of length 1 in the norm `p`; of images over their channels. DOUBLEMAX is the largest element's norm."""

    def __init__(self, p: float, eps: float = 1e-10, bigdl_type: str = "float") -> None:
        if p <= 0:
            raise JobError(f"`p` of Normalize must be above 0. Received: {p!r}.")
        p = math.inf if p >= sys.float_info.max else p
        super().__init__("normalize", p=float(p), eps=float(eps))


class Dropout(OfKeras):
    """Drop a share `init_p` of the elements in training."""

    def __init__(
        self, init_p: float = 0.5, inplace: bool = False, scale: bool = True, bigdl_type: str = "float"
    ) -> None:
        if not scale:
            raise JobError("`scale` of Dropout must be True: what is kept in training is scaled up. Received: False.")
        super().__init__(keras.layers.Dropout, float(init_p))


class GaussianDropout(OfKeras):
    """Elements times normal noise of mean 1 in training."""

    def __init__(self, rate: float, bigdl_type: str = "float") -> None:
        super().__init__(keras.layers.GaussianDropout, float(rate))


class GaussianNoise(OfKeras):
    """Normal noise in training."""

    def __init__(self, stddev: float, bigdl_type: str = "float") -> None:
        super().__init__(keras.layers.GaussianNoise, float(stddev))
