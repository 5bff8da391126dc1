"""Layers that add up projections and operators: `mixed_layer` and `embedding_layer`. On the driver."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from keraunos.compat.paddle.trainer_config_helpers.activations import BaseActivation, LinearActivation
from keraunos.compat.paddle.trainer_config_helpers.attrs import (
    DROPOUT,
    ERROR_CLIPPING,
    ExtraLayerAttribute,
    ParameterAttribute,
)
from keraunos.compat.paddle.trainer_config_helpers.defining import bias, define, named
from keraunos.compat.paddle.trainer_config_helpers.layer_output import LayerOutput, LayerType, an_activation
from keraunos.compat.paddle.trainer_config_helpers.projections import MixedTerm, table_projection
from keraunos.errors import ModelError

__all__ = ["MixedLayerType", "embedding_layer", "mixed_layer"]


class MixedLayerType(LayerOutput):
    """A mixed layer that is being put together: `with mixed_layer(…) as m: m += a_projection`.

    It is defined, and its size known, when the `with` block ends; nothing can be added after that.
    """

    class AddToSealedMixedLayerException(ModelError):  # noqa: N818  (Paddle's name)
        """Something was added to a mixed layer after its `with` block."""

    def __init__(
        self,
        name: str,
        size: int,
        act: BaseActivation,
        bias_attr: ParameterAttribute | bool | None,
        layer_attr: ExtraLayerAttribute | None,
    ) -> None:
        super().__init__(name, LayerType.MIXED_LAYER, size=size, activation=act)
        self.act = act
        self.bias_attr = bias_attr
        self.layer_attr = layer_attr
        self.inputs: list[MixedTerm] = []
        self.finalized = False

    def __iadd__(self, other: MixedTerm) -> Self:  # type: ignore[misc, override]  # terms are added in place; `+` is for layers
        if self.finalized:
            raise MixedLayerType.AddToSealedMixedLayerException(
                f"Mixed layer {self.name!r} is already defined and takes nothing more. Received: {other!r}. "
                "Add it inside the `with` block."
            )
        if not isinstance(other, MixedTerm):
            raise ModelError(
                f"A mixed layer adds up projections and operators. Received: {other!r} for {self.name!r}. "
                "Wrap a layer in, say, full_matrix_projection(…) or identity_projection(…)."
            )
        self.inputs.append(other)
        self.parents.extend(other.origin)
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._define()

    def _define(self) -> None:
        if not self.inputs:
            raise ModelError(
                f"Mixed layer {self.name!r} adds up nothing; expected at least one projection or operator. "
                "Add them with `+=` inside the `with` block, or as `input`."
            )
        defined = define(
            "mixed_layer",
            LayerType.MIXED_LAYER,
            self.name,
            [term.raw for term in self.inputs],
            self.parents,
            activation=self.act,
            layer_attr=self.layer_attr,
            supports=(ERROR_CLIPPING, DROPOUT),
            size=self.size,
            bias=bias(self.bias_attr, has_bias=False),
        )
        self.size = defined.size
        self.finalized = True


def mixed_layer(
    size: int = 0,
    input: MixedTerm | Sequence[MixedTerm] | None = None,
    name: str | None = None,
    act: BaseActivation | None = None,
    bias_attr: ParameterAttribute | bool | None = False,
    layer_attr: ExtraLayerAttribute | None = None,
) -> MixedLayerType:
    """Returns the sum of projections and operators, through an activation.

    Args:
        size: the width of its rows; 0 if it follows from the terms.
        input: the terms; without it they are added with `+=` inside a `with` block.
        name: the layer's.
        act: linear by default.
        bias_attr: none by default; `True` for one that starts at 0.
        layer_attr: error clipping and dropout.
    """
    mixed = MixedLayerType(
        named(name, "mixed"), size, an_activation(act, LinearActivation(), "mixed_layer"), bias_attr, layer_attr
    )
    if input is None:
        return mixed
    with mixed:
        for term in input if isinstance(input, Sequence) else [input]:
            mixed += term
    return mixed


def embedding_layer(
    input: LayerOutput,
    size: int,
    name: str | None = None,
    param_attr: ParameterAttribute | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns a row of `size` numbers for each id of the input."""
    projection = table_projection(input, size, param_attr)
    return mixed_layer(size, projection, named(name, "embedding"), LinearActivation(), layer_attr=layer_attr)
