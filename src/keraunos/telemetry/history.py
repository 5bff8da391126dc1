"""What a training measured, epoch by epoch. Runs on the driver.

A `History` reads like a mapping from metric to its values, prints as a small table and shows itself in a notebook
as curves. It holds plain numbers, so that it can be saved beside a model and compared.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

VALIDATION = "val_"

_HEAD_ROWS = 3
_TAIL_ROWS = 7


@dataclass(frozen=True, repr=False)
class History(Mapping[str, list[float]]):
    """The metrics of each epoch; `history["loss"]` is the list of one metric's values.

    A metric that was not measured in an epoch has the value NaN there.
    """

    epochs: Sequence[Mapping[str, float]] = ()

    def __post_init__(self) -> None:
        rows = tuple({str(name): float(value) for name, value in row.items()} for row in self.epochs)
        object.__setattr__(self, "epochs", rows)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of all metrics, in the order in which they first came."""
        return tuple(dict.fromkeys(name for row in self.epochs for name in row))

    def __getitem__(self, metric: str) -> list[float]:
        if metric not in self.metrics:
            raise KeyError(metric)
        return [row.get(metric, math.nan) for row in self.epochs]

    def __iter__(self) -> Iterator[str]:
        return iter(self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` reads back; values that JSON has no number for become words."""
        return {"epochs": [{name: _number_to_json(value) for name, value in row.items()} for row in self.epochs]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> History:
        """The history that `to_json` described."""
        return cls(data["epochs"])

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a row for each epoch and a column for each metric."""
        import pandas as pd

        index = pd.RangeIndex(1, len(self.epochs) + 1, name="epoch")
        return pd.DataFrame([dict(row) for row in self.epochs], columns=list(self.metrics), index=index)

    def plot(self) -> Any:
        """Draw every metric, training and validation together, with matplotlib; gives the figure."""
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise ImportError(
                "`History.plot` draws with matplotlib, which is not installed. Install it with "
                "`pip install matplotlib`, or use `History.to_pandas()`."
            ) from error
        pairs = _pairs(self)
        figure = Figure(figsize=(4 * max(len(pairs), 1), 3), layout="constrained")
        steps = range(1, len(self.epochs) + 1)
        for axes, (name, lines) in zip(figure.subplots(1, max(len(pairs), 1), squeeze=False)[0], pairs, strict=False):
            for label, values in lines:
                axes.plot(steps, values, marker="o", markersize=3, label=label)
            axes.set(title=name, xlabel="epoch")
            axes.legend()
        return figure

    def __repr__(self) -> str:
        count = len(self.epochs)
        title = f"History of {count} epoch{'' if count == 1 else 's'}"
        if not self.metrics:
            return title
        header = ["epoch", *self.metrics]
        rows = [[str(number), *(_short(value) for value in values)] for number, values in self._rows()]
        if count > _HEAD_ROWS + _TAIL_ROWS:
            rows[_HEAD_ROWS:-_TAIL_ROWS] = [["…"] * len(header)]
        widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in [header, *rows]
        ]
        return "\n".join([title, *lines])

    def _repr_html_(self) -> str:
        charts = "".join(_chart(name, lines) for name, lines in _pairs(self))
        return (
            f'<div style="display:flex;flex-wrap:wrap;gap:12px">{charts}</div>' if charts else html.escape(repr(self))
        )

    def _rows(self) -> Iterator[tuple[int, list[float]]]:
        for number, row in enumerate(self.epochs, start=1):
            yield number, [row.get(metric, math.nan) for metric in self.metrics]


def _pairs(history: History) -> list[tuple[str, list[tuple[str, list[float]]]]]:
    """Each metric with its lines: training first, then validation, whichever of the two there are."""
    names = dict.fromkeys(name.removeprefix(VALIDATION) for name in history)
    return [
        (
            name,
            [(label, history[key]) for label, key in (("train", name), ("val", VALIDATION + name)) if key in history],
        )
        for name in names
    ]


def _short(value: float) -> str:
    if not math.isfinite(value) or value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.4f}"
    return f"{value:.2e}"


def _number_to_json(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


# Two hues of middle lightness: both stand out on a white and on a black page, also to the colour-blind.
_COLOURS = {"train": "#3b82f6", "val": "#f08030"}
_WIDTH, _HEIGHT = 260, 160
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 10, 40, 22


def _chart(name: str, lines: list[tuple[str, list[float]]]) -> str:
    """One metric as an SVG: its name, its last values, and a curve for each line. Text takes the page's colour."""
    finite = [value for _, values in lines for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    count = max(len(values) for _, values in lines)
    curves = "".join(_curve(values, _COLOURS[label], low, high) for label, values in lines)
    legend = "".join(
        f'<tspan fill="{_COLOURS[label]}" x="{_LEFT + 104 * place}">● {label} {_short(values[-1])}</tspan>'
        for place, (label, values) in enumerate(lines)
    )
    floor = _HEIGHT - _BOTTOM
    text = 'fill="currentColor" fill-opacity="0.75" font-size="10"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" font-family="sans-serif">'
        f"<title>{html.escape(name)} over {count} epochs</title>"
        f'<text x="{_LEFT}" y="14" fill="currentColor" font-size="12" font-weight="bold">{html.escape(name)}</text>'
        f'<text y="30" font-size="10">{legend}</text>'
        f'<path d="M{_LEFT} {_TOP}V{floor}H{_WIDTH - _RIGHT}" fill="none" stroke="currentColor" stroke-opacity="0.35"/>'
        f'<text x="{_LEFT - 4}" y="{_TOP + 8}" text-anchor="end" {text}>{_short(high)}</text>'
        f'<text x="{_LEFT - 4}" y="{floor}" text-anchor="end" {text}>{_short(low)}</text>'
        f'<text x="{_LEFT}" y="{_HEIGHT - 6}" {text}>1</text>'
        f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 6}" text-anchor="end" {text}>{count} epochs</text>'
        f"{curves}</svg>"
    )


def _curve(values: list[float], colour: str, low: float, high: float) -> str:
    span = (high - low) or 1.0
    inner_width, inner_height = _WIDTH - _LEFT - _RIGHT - 8, _HEIGHT - _TOP - _BOTTOM - 8
    points = [
        (
            _LEFT + 4 + inner_width * index / max(len(values) - 1, 1),
            _TOP + 4 + inner_height * (1 - (value - low) / span),
        )
        for index, value in enumerate(values)
        if math.isfinite(value)
    ]
    if len(points) == 1:
        ((x, y),) = points
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round"/>'
