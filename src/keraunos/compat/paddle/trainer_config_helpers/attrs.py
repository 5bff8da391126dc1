"""How a parameter starts and is trained (`ParamAttr`), and what a layer takes besides (`ExtraAttr`). On the driver."""

from __future__ import annotations

from typing import Any

from keraunos.compat.paddle import config_parser as raw
from keraunos.errors import ModelError

__all__ = ["ExtraAttr", "ExtraLayerAttribute", "ParamAttr", "ParameterAttribute"]

ERROR_CLIPPING = "error_clipping_threshold"
DROPOUT = "drop_rate"


class ParameterAttribute:
    """The attributes of one parameter; omitted ones have the parser's default.

    Without `initial_std`, `initial_mean`, `initial_max` and `initial_min` the parameter starts by its shape
    (`initial_smart`); with `initial_max` and `initial_min` it starts uniform between them, else normal.

    Attributes:
        attr: the same, in the words of `Input`, `Bias` and the projections.
    """

    def __init__(
        self,
        name: str | None = None,
        is_static: bool = False,
        initial_std: float | None = None,
        initial_mean: float | None = None,
        initial_max: float | None = None,
        initial_min: float | None = None,
        l1_rate: float | None = None,
        l2_rate: float | None = None,
        learning_rate: float | None = None,
        momentum: float | None = None,
        gradient_clipping_threshold: float | None = None,
        sparse_update: bool = False,
    ) -> None:
        self.attr: dict[str, Any] = {"is_static": True} if is_static else {}
        self.attr.update(_start(initial_std, initial_mean, initial_max, initial_min))
        trained = {
            "decay_rate_l1": None if is_static else _number("l1_rate", l1_rate),
            "decay_rate": _number("l2_rate", l2_rate),
            "learning_rate": _number("learning_rate", learning_rate),
            "momentum": _number("momentum", momentum),
            "gradient_clipping_threshold": _number("gradient_clipping_threshold", gradient_clipping_threshold),
            "parameter_name": name,
        }
        self.attr.update({key: value for key, value in trained.items() if value is not None})
        if sparse_update:
            self.attr.update(sparse_update=True, sparse_remote_update=True)

    def __repr__(self) -> str:
        return f"ParamAttr({', '.join(f'{key}={value!r}' for key, value in sorted(self.attr.items()))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ParameterAttribute) and self.attr == other.attr

    __hash__ = None  # type: ignore[assignment]  # `attr` may be changed, as old programs do

    @staticmethod
    def to_bias(bias_attr: object) -> Any:
        """Returns the raw language's bias: `Bias(…)` for attributes, `False` for anything else."""
        if not isinstance(bias_attr, ParameterAttribute):
            return False
        if "sparse_update" in bias_attr.attr:
            raise ModelError(
                "A bias is one dense row and cannot be updated sparsely; expected a `bias_attr` without "
                f"`sparse_update`. Received: {bias_attr!r}. Leave `sparse_update` out of it."
            )
        return raw.Bias(**bias_attr.attr)


class ExtraLayerAttribute:
    """The attributes of a layer besides its own arguments.

    Args:
        error_clipping_threshold: the largest gradient by its output, element by element.
        drop_rate: the share of its output that is dropped in training.
        device: where Paddle computes the layer.
    """

    def __init__(
        self,
        error_clipping_threshold: float | None = None,
        drop_rate: float | None = None,
        device: int | None = None,
    ) -> None:
        clipping = _number("error_clipping_threshold", error_clipping_threshold)
        dropped = _number("drop_rate", drop_rate)
        if clipping is not None and clipping < 0:
            raise ModelError(f"`error_clipping_threshold` must not be negative. Received: {clipping!r}. Leave it out.")
        if dropped is not None and not 0 <= dropped <= 1:
            raise ModelError(f"`drop_rate` is a share and must lie between 0 and 1. Received: {dropped!r}.")
        given = {ERROR_CLIPPING: clipping, DROPOUT: dropped, "device": device}
        self.attr: dict[str, Any] = {key: value for key, value in given.items() if value is not None}

    def __repr__(self) -> str:
        return f"ExtraAttr({', '.join(f'{key}={value!r}' for key, value in self.attr.items())})"

    @staticmethod
    def to_kwargs(layer_attr: ExtraLayerAttribute | None, function: str = "", supported: tuple[str, ...] = ()) -> Any:
        """Returns the raw layer's arguments; raises an error for an attribute that has no meaning for `function`."""
        if layer_attr is None:
            return {}
        for key in layer_attr.attr:
            if key != "device" and function and key not in supported:
                allowed = ", ".join(map(repr, (*supported, "device")))
                raise ModelError(
                    f"`{function}` has no `{key}`; its `layer_attr` may hold {allowed}. Received: {layer_attr!r}. "
                    + ("Put a `dropout_layer` after it." if key == DROPOUT else "Set it on a layer that takes it.")
                )
        return dict(layer_attr.attr)


ParamAttr = ParameterAttribute
ExtraAttr = ExtraLayerAttribute


def _start(std: float | None, mean: float | None, highest: float | None, lowest: float | None) -> dict[str, Any]:
    if std is None and mean is None and highest is None and lowest is None:
        return {"initial_smart": True}
    if std is not None or mean is not None:
        if highest is not None or lowest is not None:
            raise ModelError(
                "A parameter starts either normal (`initial_mean`, `initial_std`) or uniform (`initial_max`, "
                f"`initial_min`), not both. Received: initial_std={std!r}, initial_mean={mean!r}, "
                f"initial_max={highest!r}, initial_min={lowest!r}. Leave out one pair."
            )
        normal = {"initial_std": _number("initial_std", std), "initial_mean": _number("initial_mean", mean)}
        return {"initial_strategy": 0, **{key: value for key, value in normal.items() if value is not None}}
    top, bottom = _number("initial_max", highest), _number("initial_min", lowest)
    if top is None or bottom is None or bottom >= top:
        raise ModelError(
            "A uniform start takes both `initial_max` and `initial_min`, the first above the second. "
            f"Received: initial_max={highest!r}, initial_min={lowest!r}."
        )
    middle = (top + bottom) / 2
    return {"initial_mean": middle, "initial_std": middle - bottom, "initial_strategy": 1}


def _number(name: str, value: float | None) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ModelError(f"`{name}` must be a number. Received: {value!r}.")
    return float(value)
