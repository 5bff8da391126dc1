"""How the pixels of an image become the numbers that a model takes. Runs on the driver and on workers."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from keraunos.errors import ColumnError, one_of

ORDERS = ("RGB", "BGR")
LAYOUTS = ("HWC", "CHW")


@dataclass(frozen=True)
class Pixels:
    """What a model gets of an image: `(pixel - mean) * scale`, its channels in an order and at a place.

    Attributes:
        scale: the factor on every value; 1/255 makes 0 to 1 of 0 to 255. `None` leaves the bytes as they are: the
            model gets whole numbers of 8 bits.
        mean: what is taken off each channel before it is scaled, in the units of the pixels, 0 to 255, and in the order
            of the channels that `order` gives.
        order: the order of the channels, `"RGB"` or `"BGR"`; a fourth channel, alpha, stays behind them, and an image
            of one channel has no order.
        layout: `"HWC"`, the channels of a pixel beside each other, or `"CHW"`, a plane a channel.
    """

    scale: float | None = 1 / 255
    mean: tuple[float, ...] | None = None
    order: str = "RGB"
    layout: str = "HWC"

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise ColumnError(one_of("order", self.order, ORDERS))
        if self.layout not in LAYOUTS:
            raise ColumnError(one_of("layout", self.layout, LAYOUTS))
        if self.scale is not None:
            if not _is_finite(self.scale) or not self.scale:
                raise ColumnError(
                    f"`scale` must be a number other than 0, or None for bytes. Received: {self.scale!r}."
                )
            object.__setattr__(self, "scale", float(self.scale))
        if self.mean is not None:
            object.__setattr__(self, "mean", _checked_mean(self.mean))
            if self.scale is None:
                raise ColumnError(
                    f"`mean` cannot be taken off pixels that stay bytes. Received: mean={self.mean!r} with scale=None. "
                    "Give scale=1.0 to keep the range of 0 to 255."
                )

    @classmethod
    def of(cls, value: Any) -> Pixels:
        """The options that a user wrote: a dict of some of them, or a `Pixels`."""
        if isinstance(value, cls):
            return value
        names = [field.name for field in fields(cls)]
        if not isinstance(value, Mapping) or not all(key in names for key in value):
            raise ColumnError(
                f"`pixels` must be a dict with some of the keys {', '.join(map(repr, names))}, such as "
                f"{{'order': 'BGR', 'scale': 1.0}}. Received: {value!r}."
            )
        return cls(**value)

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` reads back."""
        mean = None if self.mean is None else list(self.mean)
        return {"scale": self.scale, "mean": mean, "order": self.order, "layout": self.layout}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Pixels:
        """The options that `to_json` described."""
        return cls(**data)

    def shape_of(self, height: Any, width: Any, channels: Any) -> tuple[Any, Any, Any]:
        """The dimensions of an image in the order of the layout."""
        return (height, width, channels) if self.layout == "HWC" else (channels, height, width)


def _checked_mean(mean: Any) -> tuple[float, ...]:
    listed = isinstance(mean, Sequence) and not isinstance(mean, str)
    if not listed or not mean or not all(map(_is_finite, mean)):
        raise ColumnError(
            "`mean` must be a list of one number a channel, such as [103.9, 116.8, 123.7], or None. "
            f"Received: {mean!r}."
        )
    return tuple(float(each) for each in mean)


def _is_finite(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
