"""The metrics of a training, epoch by epoch. Runs on the driver.

A `History` is a mapping from metric to its values. It prints as a small table and is shown as curves in a notebook. It
contains plain numbers, so that it can be saved beside a model and compared.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keraunos.telemetry.charts import VALIDATION, Line, charts, figure, lines_of
from keraunos.telemetry.events import DIVERGED, Ended, EpochClosed, FitEvent, Resumed, Started

_HEAD_ROWS = 3
_TAIL_ROWS = 7


@dataclass(frozen=True, repr=False)
class History(Mapping[str, list[float]]):
    """The metrics of each epoch; `history["loss"]` is the list of one metric's values.

    A metric that was not measured in an epoch has the value NaN there.

    Attributes:
        epochs: the metrics of each epoch.
        ended: why training ended early because values were not finite; otherwise `None`.
        skipped_rows: how many rows, in all epochs, were skipped because they led to values that were not finite.
        lost_rows: how many rows, in all epochs, are missing because their worker was lost and the others continued
            without it.
    """

    epochs: Sequence[Mapping[str, float]] = ()
    ended: str | None = None
    skipped_rows: int = 0
    lost_rows: int = 0

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
        """Returns plain data that `from_json` reads back; numbers that JSON cannot represent become strings."""
        epochs = [{name: _number_to_json(value) for name, value in row.items()} for row in self.epochs]
        special = {"ended": self.ended, "skipped_rows": self.skipped_rows, "lost_rows": self.lost_rows}
        return {"epochs": epochs} | {name: value for name, value in special.items() if value}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> History:
        """Returns the history that `to_json` described."""
        skipped, lost = (int(data.get(name, 0)) for name in ("skipped_rows", "lost_rows"))
        return cls(data["epochs"], data.get("ended"), skipped, lost)

    @classmethod
    def from_events(cls, events: Iterable[FitEvent]) -> History:
        """Returns the history of the fit with these events; of several fits, the one that started last."""
        book = HistoryBook()
        for event in events:
            book.on_event(event)
        return book.history

    def to_pandas(self) -> Any:
        """Returns a pandas DataFrame with a row for each epoch and a column for each metric."""
        import pandas as pd

        index = pd.RangeIndex(1, len(self.epochs) + 1, name="epoch")
        return pd.DataFrame([dict(row) for row in self.epochs], columns=list(self.metrics), index=index)

    def plot(self) -> Any:
        """Draw every metric, training and validation together, with matplotlib. Returns the figure."""
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise ImportError(
                "`History.plot` draws with matplotlib, which is not installed. Install it with "
                "`pip install 'keraunos[notebook]'`, or use `History.to_pandas()`."
            ) from error
        pairs = _pairs(self)
        drawing = Figure(figsize=(4 * max(len(pairs), 1), 3), layout="constrained")
        steps = range(1, len(self.epochs) + 1)
        for axes, (name, lines) in zip(drawing.subplots(1, max(len(pairs), 1), squeeze=False)[0], pairs, strict=False):
            for line in lines:
                axes.plot(steps, line.values, marker="o", markersize=3, label=line.label)
            axes.set(title=name, xlabel="epoch")
            axes.legend()
        return drawing

    def __repr__(self) -> str:
        count = len(self.epochs)
        title = f"History of {count} epoch{'' if count == 1 else 's'}"
        title += f", {self.skipped_rows} rows skipped" if self.skipped_rows else ""
        title += f", {self.lost_rows} rows lost" if self.lost_rows else ""
        title += f", ended early: {self.ended}" if self.ended else ""
        if not self.metrics:
            return title
        header = ["epoch", *self.metrics]
        rows = [[str(number), *(figure(value) for value in values)] for number, values in self._rows()]
        if count > _HEAD_ROWS + _TAIL_ROWS:
            rows[_HEAD_ROWS:-_TAIL_ROWS] = [["…"] * len(header)]
        widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in [header, *rows]
        ]
        return "\n".join([title, *lines])

    def _repr_html_(self) -> str:
        return charts(self.epochs, as_images=True) or html.escape(repr(self))

    def _rows(self) -> Iterator[tuple[int, list[float]]]:
        for number, row in enumerate(self.epochs, start=1):
            yield number, [row.get(metric, math.nan) for metric in self.metrics]


class HistoryBook:
    """Collects the metrics of epochs from events, which `on_event` takes in order.

    Attributes:
        epochs: the metrics of the completed epochs.
    """

    def __init__(self) -> None:
        self.epochs: list[dict[str, float]] = []
        self._ended: Ended | None = None
        self._fit = ""

    @property
    def history(self) -> History:
        """The history of the events so far."""
        if self._ended is None:
            return History(self.epochs)
        diverged = self._ended.why if self._ended.how == DIVERGED else None
        return History(self.epochs, diverged, self._ended.skipped_rows, self._ended.lost_rows)

    def on_event(self, event: FitEvent) -> None:
        """Process an event."""
        if isinstance(event, Started):
            self.epochs, self._ended, self._fit = [], None, event.fit
        elif event.fit != self._fit:
            return
        elif isinstance(event, Resumed):
            self.epochs = [dict(row) for row in event.epochs]
        elif isinstance(event, EpochClosed):
            self.epochs.append(dict(event.metrics))
        elif isinstance(event, Ended):
            self._ended = event


def _pairs(history: History) -> list[tuple[str, list[Line]]]:
    """Returns each metric with its lines."""
    names = dict.fromkeys(name.removeprefix(VALIDATION) for name in history)
    return [(name, lines_of(name, history.epochs)) for name in names]


def _number_to_json(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)
