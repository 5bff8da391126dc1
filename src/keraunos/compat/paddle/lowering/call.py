"""The arguments and results of a layer type's function, and the registry of these functions.

Runs on the driver and on workers.

A type is lowered by one function of `keras.ops`, registered by `lowers`. It reads a `Call` and returns a `Value`. The
layer around it has done the rest: it owns the parameters, and applies the activation, the dropout and the clipping of
the error behind the function, unless the function asked to do that itself.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import keras

from keraunos.compat.paddle.model_config import LayerConfig
from keraunos.errors import ModelError

# Modules whose functions register themselves.
_FAMILIES = (
    "dense", "elementwise", "choices", "convolution", "pooling", "images", "mixed", "costs", "sequences", "recurrent",
    "structured_costs", "many_classes", "ranking",
)  # fmt: skip

DENSE, IDS, BAG = "dense", "ids", "bag"


class Value(NamedTuple):
    """The value between two layers, for a batch.

    Attributes:
        tensor: of shape (rows, size), or (rows, steps, size) for a sequence; ids have no last axis; images are flat,
            channel by channel and row by row, as Paddle keeps them.
        mask: of a sequence, (rows, steps), true for the steps that a row has, which come first; `None` if a row is
            one step.
        kind: `"dense"`, `"ids"` (class or word numbers, int32) or `"bag"` (a set of ids, (rows, places), -1 for none: a
            sparse binary vector).
        parts: further outputs by name, for `get_output` (an LSTM's `state`).
    """

    tensor: Any
    mask: Any = None
    kind: str = DENSE
    parts: Mapping[str, Any] = {}

    @property
    def is_sequence(self) -> bool:
        """Whether a row is a sequence of steps."""
        return self.mask is not None


@dataclass
class Call:
    """One computation of one layer.

    Attributes:
        layer: its configuration.
        inputs: the values of its inputs, in order.
        parameters: the tensors of its parameters by name, in Paddle's dimensions, or flat where those are unset.
        training: whether this is training; random numbers and statistics depend on it.
        random: draws seeds for `keras.random`, for types that declare random draws.
        moved: new values of parameters that training moves without a gradient, by name; the function adds to it.
    """

    layer: LayerConfig
    inputs: Sequence[Value]
    parameters: Mapping[str, Any]
    training: bool
    random: Any
    moved: dict[str, Any] = field(default_factory=dict)

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Other attributes of the layer in the configuration."""
        return self.layer.attributes

    @property
    def bias(self) -> Any | None:
        """The bias as a flat tensor, or `None`."""
        return None if self.layer.bias is None else keras.ops.reshape(self.parameters[self.layer.bias], (-1,))

    def settings(self, at: int, kind: str) -> Mapping[str, Any]:
        """Returns the configuration of one input: `conv`, `pool`, `proj` and the like."""
        return self.layer.inputs[at].settings[kind]

    def weight(self, at: int) -> Any:
        """Returns the weight on one input, flat."""
        name = self.layer.inputs[at].parameter
        assert name is not None
        return keras.ops.reshape(self.parameters[name], (-1,))


Lowering = Callable[[Call], Value]


@dataclass(frozen=True)
class LoweredType:
    """How a type is lowered.

    Attributes:
        function: what computes it.
        applies_activation: whether the function applies the activation by itself.
        is_cost: whether it returns a cost: a tensor (rows,), summed over the steps of a sequence.
        draws: whether the function draws random numbers.
    """

    function: Lowering
    applies_activation: bool = False
    is_cost: bool = False
    draws: bool = False


_TYPES: dict[str, LoweredType] = {}


def lowers(
    *types: str, applies_activation: bool = False, is_cost: bool = False, draws: bool = False
) -> Callable[[Lowering], Lowering]:
    """Register the function that lowers layers of these types."""

    def register(function: Lowering) -> Lowering:
        for each in types:
            _TYPES[each] = LoweredType(function, applies_activation, is_cost, draws)
        return function

    return register


def layer_type(name: str) -> LoweredType:
    """How layers of that type are lowered; a type that is not is refused by name."""
    _load()
    if name not in _TYPES:
        raise ModelError(
            f"Layers of type {name!r} are not run here. Expected one of: {', '.join(known_types())}. "
            f"Received: {name!r}."
        )
    return _TYPES[name]


def known_types() -> tuple[str, ...]:
    """Returns every type that is lowered."""
    _load()
    return tuple(sorted(_TYPES))


def _load() -> None:
    for family in _FAMILIES:
        importlib.import_module(f"keraunos.compat.paddle.lowering.{family}")
