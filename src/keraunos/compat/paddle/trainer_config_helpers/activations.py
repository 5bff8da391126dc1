"""Paddle's activations as the objects that the layer functions take as `act`. On the driver."""

from __future__ import annotations

__all__ = [
    "AbsActivation",
    "BReluActivation",
    "BaseActivation",
    "ExpActivation",
    "IdentityActivation",
    "LinearActivation",
    "LogActivation",
    "ReluActivation",
    "STanhActivation",
    "SequenceSoftmaxActivation",
    "SigmoidActivation",
    "SoftReluActivation",
    "SoftmaxActivation",
    "SquareActivation",
    "TanhActivation",
]


class BaseActivation:
    """An activation; `name` is the raw language's `active_type`."""

    name = ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class TanhActivation(BaseActivation):
    """The hyperbolic tangent."""

    name = "tanh"


class SigmoidActivation(BaseActivation):
    """The logistic function."""

    name = "sigmoid"


class SoftmaxActivation(BaseActivation):
    """The softmax over a row."""

    name = "softmax"


class SequenceSoftmaxActivation(BaseActivation):
    """The softmax over the steps of a sequence whose rows are one wide."""

    name = "sequence_softmax"


class IdentityActivation(BaseActivation):
    """No activation."""

    name = ""


LinearActivation = IdentityActivation


class ReluActivation(BaseActivation):
    """The positive part."""

    name = "relu"


class BReluActivation(BaseActivation):
    """The positive part, at most 24."""

    name = "brelu"


class SoftReluActivation(BaseActivation):
    """log(1 + exp(x)), x held within 40 of 0."""

    name = "softrelu"


class STanhActivation(BaseActivation):
    """1.7159 tanh(2x/3)."""

    name = "stanh"


class AbsActivation(BaseActivation):
    """The absolute value."""

    name = "abs"


class SquareActivation(BaseActivation):
    """The square."""

    name = "square"


class ExpActivation(BaseActivation):
    """The exponential."""

    name = "exponential"


class LogActivation(BaseActivation):
    """The natural logarithm."""

    name = "log"
