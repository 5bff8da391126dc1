"""The parts of a mixed layer: projections of one input, operators of several. Runs on the driver."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from keraunos.compat.paddle.language_values import ConfigValue, Conv


@dataclass(frozen=True)
class Projection(ConfigValue):
    """One input of a mixed or concat2 layer, and what becomes of it.

    Attributes:
        kind: Paddle's name of the projection.
    """

    kind: ClassVar[str] = ""

    input_layer_name: str
    _: KW_ONLY
    parameter_name: str | None = None
    learning_rate: float | None = None
    momentum: float | None = None
    decay_rate: float | None = None
    decay_rate_l1: float | None = None
    initial_mean: float | None = None
    initial_std: float | None = None
    initial_strategy: int | None = None
    initial_smart: bool | None = None
    num_batches_regularization: int | None = None
    sparse_remote_update: bool | None = None
    sparse_update: bool | None = None
    gradient_clipping_threshold: float | None = None
    format: str | None = None
    nnz: int | None = None
    is_static: bool | None = None
    is_shared: bool | None = None
    update_hooks: Any = None
    input_layer_argument: str | None = None


@dataclass(frozen=True)
class IdentityProjection(Projection):
    """The unchanged input."""

    kind = "identity"
    size: int = 0


@dataclass(frozen=True)
class IdentityOffsetProjection(Projection):
    """As many columns of the input as the layer has, from `offset` on."""

    kind = "identity_offset"
    offset: int = 0
    size: int = 0


@dataclass(frozen=True)
class DotMulProjection(Projection):
    """Each column times its own weight."""

    kind = "dot_mul"
    size: int = 0


@dataclass(frozen=True)
class ScalingProjection(Projection):
    """The input times one weight."""

    kind = "scaling"
    size: int = 0


@dataclass(frozen=True)
class TableProjection(Projection):
    """The row of a table that an id names."""

    kind = "table"
    size: int = 0


@dataclass(frozen=True)
class FullMatrixProjection(Projection):
    """The input times a matrix."""

    kind = "fc"
    size: int = 0


@dataclass(frozen=True)
class TransposedFullMatrixProjection(Projection):
    """The input times a matrix that is stored transposed."""

    kind = "trans_fc"
    size: int = 0


@dataclass(frozen=True)
class ContextProjection(Projection):
    """A step of a sequence with its neighbours, one after the other."""

    kind = "context"
    context_start: int
    context_length: int
    trainable_padding: bool = False
    size: int = 0


@dataclass(frozen=True)
class ConvProjection(Projection):
    """A convolution with its own weights."""

    kind = "conv"
    num_filters: int | None = None
    conv_conf: Conv | None = None
    size: int = 0


@dataclass(frozen=True)
class ConvTransProjection(ConvProjection):
    """A transposed convolution with its own weights."""

    kind = "convt"


@dataclass(frozen=True)
class Operator(ConfigValue):
    """A term of a mixed layer that reads several inputs and has no parameter."""

    kind: ClassVar[str] = ""

    input_layer_names: Any


@dataclass(frozen=True)
class DotMulOperator(Operator):
    """Two inputs multiplied column by column, times `scale`."""

    kind = "dot_mul"
    scale: float | None = None


@dataclass(frozen=True)
class ConvOperator(Operator):
    """The first input convolved with the second: each row has its own filters."""

    kind = "conv"
    num_filters: int | None = None
    conv_conf: Conv | None = None


@dataclass(frozen=True)
class ConvTransOperator(ConvOperator):
    """The transposed convolution of the first input with the second."""

    kind = "convt"
