"""The metrics of a fit as curves that grow while it runs. Runs on the driver, in a notebook's kernel.

One display, updated in place: the progress of the fit, and a chart per metric. It is HTML without scripts, so it
needs no widgets, and its last state remains in the notebook, also when that is opened again.
"""

from __future__ import annotations

import html
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from keraunos.telemetry.charts import charts
from keraunos.telemetry.history import History
from keraunos.telemetry.progress import Progress, thousands

_REDRAW_SECONDS = 0.4
_TRACK, _FILL = "rgba(128,128,128,0.25)", "#3b82f6"


class LiveCurve(Progress):
    """Progress as a bar and curves below the cell that runs `fit`."""

    def __init__(self, total_rows: int | None, epochs: int, clock: Callable[[], float] = time.monotonic) -> None:
        from IPython.display import display

        self._total = total_rows
        self._planned = epochs
        self._clock = clock
        self._began = clock()
        self._rows = 0
        self._first_rows: tuple[float, int] | None = None
        self._epochs: list[dict[str, float]] = []
        self._so_far: dict[str, float] = {}
        self._notes: list[str] = []
        self._outcome = ""
        self._drawn = clock()
        self._handle: Any = display(self._content(), raw=True, display_id=True)

    def expect(self, total_rows: int, epochs: int) -> None:
        """See `Progress`."""
        self._total, self._planned = total_rows, epochs
        self._draw()

    def update(self, rows_done_total: int, epoch: int, logs: Mapping[str, float]) -> None:
        """See `Progress`."""
        if self._first_rows is None and rows_done_total:
            # Excludes start and compilation.
            self._first_rows = (self._clock(), rows_done_total)
        self._rows = rows_done_total
        self._so_far = dict(logs) if epoch >= len(self._epochs) else {}
        self._draw()

    def epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """See `Progress`."""
        self._epochs.append(dict(logs))
        self._so_far = {}
        self._draw()

    def note(self, text: str) -> None:
        """See `Progress`."""
        self._notes.append(text)
        self._draw(at_once=True)

    def close(self) -> None:
        """See `Progress`."""
        self._outcome = self._outcome or "done"
        self._draw(at_once=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._outcome = "interrupted" if issubclass(kind, KeyboardInterrupt) else "failed"
        self.close()

    def _draw(self, *, at_once: bool = False) -> None:
        """Update the display, unless that was done just before, so that the page can keep up."""
        now = self._clock()
        if self._handle is not None and (at_once or now - self._drawn >= _REDRAW_SECONDS):
            self._drawn = now
            self._handle.update(self._content(), raw=True)

    def _content(self) -> dict[str, str]:
        status = self._status()
        share = 1.0 if self._outcome == "done" else self._share()
        over = bool(self._outcome)
        curves = charts(self._epochs, self._so_far, 0 if over else self._planned, as_images=over)
        bar = (
            f'<div style="height:4px;max-width:612px;margin:4px 0 8px;border-radius:2px;background:{_TRACK}">'
            f'<div style="height:4px;width:{100 * share:.1f}%;border-radius:2px;background:{_FILL}"></div></div>'
        )
        notes = "".join(f"<div>{html.escape(note)}</div>" for note in self._notes)
        page = f"<div><div>{html.escape(status)}</div>{bar}{notes}{curves}</div>"
        return {"text/html": page, "text/plain": "\n".join([status, *self._notes, repr(History(self._epochs))])}

    def _status(self) -> str:
        """Returns the progress of the fit, in one line."""
        elapsed = self._clock() - self._began
        done = len(self._epochs)
        if self._outcome == "done":
            return " · ".join(["done", _counted(done), _time(elapsed), *self._speed()])
        if self._outcome:
            return " · ".join([self._outcome, f"{done} of {_counted(self._planned)}", _time(elapsed)])
        if self._first_rows is None:
            return f"epoch 1/{self._planned} · starting"
        parts = [f"epoch {min(done + 1, self._planned)}/{self._planned}", f"{100 * self._share():.0f}%", *self._speed()]
        return " · ".join([*parts, *self._left()])

    def _share(self) -> float:
        return min(self._rows / self._total, 1.0) if self._total else 0.0

    def _rate(self) -> float:
        """Returns rows per second since the first were counted."""
        if self._first_rows is None:
            return 0.0
        began, rows = self._first_rows
        seconds = self._clock() - began
        return (self._rows - rows) / seconds if seconds > 0 else 0.0

    def _speed(self) -> list[str]:
        rate = self._rate()
        return [f"{thousands(rate)} rows/s"] if rate else []

    def _left(self) -> list[str]:
        rate = self._rate()
        return [f"{_time((self._total - self._rows) / rate)} left"] if rate and self._total else []


def _counted(epochs: int) -> str:
    return f"{epochs} epoch{'' if epochs == 1 else 's'}"


def _time(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
