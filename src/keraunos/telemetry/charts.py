"""Metrics over epochs as small SVG pictures, which any notebook shows. Runs on the driver.

Their colours can be read on light and on dark pages. There is no script in them.
"""

from __future__ import annotations

import base64
import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

VALIDATION = "val_"

# Two hues of middle lightness: both stand out on a white and on a black page, also to the colour-blind.
_COLOURS = {"train": "#3b82f6", "val": "#f08030"}
_WIDTH, _HEIGHT = 300, 184
_LEFT, _RIGHT, _TOP, _BOTTOM = 50, 12, 40, 34
_MARGIN = 4
_MOST_POINTS = 400
# The grey that white and black differ from alike.
_INK = "#767676"
_SMALL = f'fill="{_INK}" font-size="10"'


@dataclass(frozen=True)
class Line:
    """One line of a chart: its label, a value for each epoch that is over, and the value so far of the one that is not.

    A value that is not finite is left out.
    """

    label: str
    values: Sequence[float]
    so_far: float | None = None

    @property
    def points(self) -> list[tuple[int, float]]:
        """The numbers of epochs, counted from 0, and their values; thinned out to a visible number."""
        found = [(epoch, value) for epoch, value in enumerate(self.values) if math.isfinite(value)]
        if len(found) <= _MOST_POINTS:
            return found
        return [*found[: -1 : math.ceil(len(found) / _MOST_POINTS)], found[-1]]

    @property
    def ongoing(self) -> tuple[int, float] | None:
        """The same for the epoch that is not over."""
        if self.so_far is None or not math.isfinite(self.so_far):
            return None
        return len(self.values), self.so_far

    @property
    def last(self) -> float:
        """The newest value."""
        if self.so_far is not None:
            return self.so_far
        return self.values[-1] if self.values else math.nan


def charts(
    epochs: Sequence[Mapping[str, float]],
    so_far: Mapping[str, float] | None = None,
    planned: int = 0,
    *,
    as_images: bool = False,
) -> str:
    """Returns a chart for each metric, training and validation together, side by side as far as the page is wide.

    Args:
        epochs: the metrics of each epoch that is over.
        so_far: those of the epoch that is not.
        planned: how many epochs there will be; the axis is made for them.
        as_images: whether each is an image to the page. Those stay where a page lets no SVG in, such as a notebook that
            is opened again and not trusted; SVG in the page itself can be replaced often and does not flicker.
    """
    ongoing = so_far or {}
    names = dict.fromkeys(name.removeprefix(VALIDATION) for row in (*epochs, ongoing) for name in row)
    found = [chart(name, lines_of(name, epochs, ongoing), planned) for name in names]
    drawn = "".join([_image(name, svg) for name, svg in zip(names, found, strict=True)] if as_images else found)
    return f'<div style="display:flex;flex-wrap:wrap;gap:12px">{drawn}</div>' if drawn else ""


def lines_of(name: str, epochs: Sequence[Mapping[str, float]], so_far: Mapping[str, float] | None = None) -> list[Line]:
    """Returns the lines of one metric: training first, then validation, whichever of the two there are."""
    ongoing = so_far or {}
    return [
        Line(label, [row.get(key, math.nan) for row in epochs], ongoing.get(key))
        for label, key in (("train", name), ("val", VALIDATION + name))
        if key in ongoing or any(key in row for row in epochs)
    ]


def chart(name: str, lines: Sequence[Line], planned: int = 0) -> str:
    """Returns one metric as an SVG: its name, its newest values, and a curve for each line."""
    count = max(len(line.values) for line in lines)
    extent = max(count + any(line.ongoing for line in lines), planned, 1)
    frame = _Frame.around(lines, extent)
    curves = "".join(_curve(line, frame) for line in lines)
    legend = "".join(
        f'<tspan fill="{_COLOURS[line.label]}" x="{_LEFT + 110 * place}">● {line.label} {figure(line.last)}</tspan>'
        for place, line in enumerate(lines)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" font-family="sans-serif">'
        f"<title>{html.escape(name)} over {count} epoch{'' if count == 1 else 's'}</title>"
        f'<text x="{_LEFT}" y="14" fill="{_INK}" font-size="12" font-weight="bold">{html.escape(name)}</text>'
        f'<text y="30" font-size="11">{legend}</text>'
        f"{_axes(frame)}{curves}</svg>"
    )


def figure(value: float) -> str:
    """Returns a number in few letters."""
    if not math.isfinite(value) or value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.4f}"
    return f"{value:.2e}"


def _image(name: str, svg: str) -> str:
    source = base64.b64encode(svg.encode()).decode()
    return (
        f'<img src="data:image/svg+xml;base64,{source}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'style="margin:0" alt="{html.escape(name)} over the epochs"/>'
    )


@dataclass(frozen=True)
class _Frame:
    """Where on the picture an epoch and a value are."""

    extent: int
    low: float
    high: float

    @classmethod
    def around(cls, lines: Sequence[Line], extent: int) -> _Frame:
        values = [value for line in lines for value in (*line.values, line.last) if math.isfinite(value)]
        return cls(extent, min(values, default=0.0), max(values, default=1.0))

    def x(self, epoch: int) -> float:
        inner = _WIDTH - _LEFT - _RIGHT - 2 * _MARGIN
        return _LEFT + _MARGIN + inner * epoch / max(self.extent - 1, 1)

    def y(self, value: float) -> float:
        inner = _HEIGHT - _TOP - _BOTTOM - 2 * _MARGIN
        # One value alone stands in the middle.
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return _TOP + _MARGIN + inner * (1 - share)

    def place(self, point: tuple[int, float]) -> tuple[float, float]:
        epoch, value = point
        return self.x(epoch), self.y(value)


def _axes(frame: _Frame) -> str:
    floor = _HEIGHT - _BOTTOM
    numbers = [frame.low] if frame.low == frame.high else [frame.low, (frame.low + frame.high) / 2, frame.high]
    heights = "".join(
        f'<path d="M{_LEFT} {frame.y(value):.1f}H{_WIDTH - _RIGHT}" stroke="{_INK}" stroke-opacity="0.25"/>'
        f'<text x="{_LEFT - 5}" y="{frame.y(value) + 3.5:.1f}" text-anchor="end" {_SMALL}>{figure(value)}</text>'
        for value in numbers
    )
    epochs = "".join(
        f'<text x="{frame.x(epoch):.1f}" y="{floor + 13}" text-anchor="middle" {_SMALL}>{epoch + 1}</text>'
        for epoch in sorted({0, (frame.extent - 1) // 2, frame.extent - 1})
    )
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    return (
        f'<path d="M{_LEFT} {_TOP}V{floor}H{_WIDTH - _RIGHT}" fill="none" stroke="{_INK}" stroke-opacity="0.7"/>'
        f'{heights}{epochs}<text x="{middle}" y="{_HEIGHT - 6}" text-anchor="middle" {_SMALL}>epoch</text>'
    )


def _curve(line: Line, frame: _Frame) -> str:
    colour = _COLOURS[line.label]
    places = [frame.place(point) for point in line.points]
    drawn = ""
    if len(places) == 1:
        ((x, y),) = places
        drawn = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'
    elif places:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        drawn = f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round"/>'
    if line.ongoing is None:
        return drawn
    x, y = frame.place(line.ongoing)
    ring = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="none" stroke="{colour}" stroke-width="1.5"/>'
    if not places:
        return drawn + ring
    dashes = f'<path d="M{places[-1][0]:.1f} {places[-1][1]:.1f}L{x:.1f} {y:.1f}" stroke="{colour}" '
    return f'{drawn}{dashes}stroke-dasharray="3 3"/>{ring}'
