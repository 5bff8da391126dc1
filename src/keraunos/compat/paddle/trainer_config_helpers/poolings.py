"""Ways of pooling, over an image or over a sequence, as the layer functions take them. On the driver."""

from __future__ import annotations

__all__ = [
    "AvgPooling",
    "BasePoolingType",
    "CudnnAvgPooling",
    "CudnnMaxPooling",
    "MaxPooling",
    "SquareRootNPooling",
    "SumPooling",
]


class BasePoolingType:
    """A way of pooling; `name` is the raw layer's type over a sequence."""

    name = ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class MaxPooling(BasePoolingType):
    """The largest.

    Args:
        output_max_index: over a sequence, return the steps of the largest values instead of the values.
    """

    name = "max"

    def __init__(self, output_max_index: bool | None = None) -> None:
        self.output_max_index = output_max_index


class CudnnMaxPooling(BasePoolingType):
    """The largest, over an image, by the name of cuDNN's."""

    name = "cudnn-max-pool"


class CudnnAvgPooling(BasePoolingType):
    """The mean, over an image, by the name of cuDNN's."""

    name = "cudnn-avg-pool"


class AvgPooling(BasePoolingType):
    """The mean, or over a sequence the sum, or the sum by the square root of the length, by `strategy`."""

    STRATEGY_AVG = "average"
    STRATEGY_SUM = "sum"
    STRATEGY_SQROOTN = "squarerootn"

    name = "average"

    def __init__(self, strategy: str = STRATEGY_AVG) -> None:
        self.strategy = strategy


class SumPooling(AvgPooling):
    """The sum over a sequence."""

    def __init__(self) -> None:
        super().__init__(AvgPooling.STRATEGY_SUM)


class SquareRootNPooling(AvgPooling):
    """The sum over a sequence, divided by the square root of its length."""

    def __init__(self) -> None:
        super().__init__(AvgPooling.STRATEGY_SQROOTN)
