"""The progress of a fit, on a terminal, in a notebook or in a log. Runs on the driver.

One bar for the whole training: epoch, share done, rows per second, time left, and the metrics so far. In a
log file or a scheduled job it prints one line per epoch instead.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Self, TextIO

from keraunos.errors import JobError, one_of
from keraunos.telemetry.events import EpochClosed, Expected, FitEvent, LapClosed, Progressed

VALIDATION = "val_"
CHOICES = ("auto", "0", "1", "2")
# The attribute of IPython's shell with the function that makes the display for "auto" from total rows and epochs.
DISPLAY = "keraunos_progress"

_WIDEST = 100
_USUAL, _LINES = 80, 24
_NARROWEST_BAR = 5
_RUNNING = "{desc} {percentage:3.0f}%|{bar}| {rate_fmt}, {remaining} left{postfix}"
_ENDED = "{desc} {percentage:3.0f}%|{bar}| {rate_fmt}, {elapsed}{postfix}"
_UNMETERED = "{desc} {elapsed}{postfix}"
_FIXED_TEXT = len(" 100%|| 000.0k rows/s, 00:00 left, ")


class Progress:
    """Shows the progress of a fit. Open it with `Progress.open`, close it as a context manager; one thread at a time.

    `on_event` makes it a subscriber of the fit's events.
    """

    @staticmethod
    def open(
        total_rows: int | None,
        epochs: int,
        verbose: int | str = "auto",
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> Progress:
        """Returns the display that `verbose` asks for.

        Args:
            total_rows: how many rows the whole training reads in all epochs; `None` if not yet known
                (`expect` sets it later).
            epochs: the number of epochs.
            verbose: 0 for nothing, 1 for a bar, 2 for a line per epoch; "auto" for a bar on a terminal or in a
                notebook and lines elsewhere.
            stream: where to write; default: standard error.
            clock: returns the time in seconds, for the lines.
        """
        page = _page() if verbose == "auto" and stream is None else None
        if page is not None:
            return page(total_rows, epochs)
        target = sys.stderr if stream is None else stream
        mode = _mode(verbose, target, given=stream is not None)
        if mode == 0:
            return Progress()
        if mode == 1:
            return _Bar(total_rows, epochs, target, given=stream is not None)
        return _Lines(epochs, target, clock)

    def on_event(self, event: FitEvent) -> None:
        """Update the display from an event."""
        match event:
            case Expected():
                self.expect(event.rows, event.epochs)
            case Progressed():
                self.update(event.rows, event.epoch, event.metrics)
            case LapClosed():
                self.update(event.rows, event.epoch, event.epoch_metrics)
            case EpochClosed(diverged=False):
                self.epoch_end(event.epoch, event.metrics)

    def expect(self, total_rows: int, epochs: int) -> None:
        """Set the number of rows that the whole training reads, and the number of epochs."""

    def update(self, rows_done_total: int, epoch: int, logs: Mapping[str, float]) -> None:
        """Show that this many rows have been read since the training began; `epoch` is counted from 0."""

    def epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Show the metrics of epoch `epoch`, counted from 0, which is over."""

    def note(self, text: str) -> None:
        """Print a message beside the progress."""

    def close(self) -> None:
        """End the display, which remains visible."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Lines(Progress):
    def __init__(self, epochs: int, stream: TextIO, clock: Callable[[], float]) -> None:
        self._epochs = epochs
        self._stream = stream
        self._clock = clock
        self._began = clock()
        self._rows = 0
        self._rows_before = 0

    def expect(self, total_rows: int, epochs: int) -> None:
        self._epochs = epochs

    def update(self, rows_done_total: int, epoch: int, logs: Mapping[str, float]) -> None:
        self._rows = rows_done_total

    def epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        seconds = max(self._clock() - self._began, 1e-9)
        rate = (self._rows - self._rows_before) / seconds
        speed = f"  {thousands(rate)} rows/s" if rate else ""
        metrics = "".join(f"  {name} {_figure(value, 4)}" for name, value in logs.items())
        width = len(str(self._epochs))
        self.note(f"epoch {epoch + 1:>{width}}/{self._epochs}  {seconds:.1f} s{speed}{metrics}")
        self._began = self._clock()
        self._rows_before = self._rows

    def note(self, text: str) -> None:
        self._stream.write(f"{text}\n")
        self._stream.flush()


class _Bar(Progress):
    def __init__(self, total_rows: int | None, epochs: int, stream: TextIO, *, given: bool) -> None:
        self._epochs = epochs
        self._epoch = 0
        self._stream = stream
        self._started = False
        self._columns = None if _has_widgets() and not given else _columns(stream)
        self._tqdm = _tqdm_class(notebook=self._columns is None)(
            total=total_rows,
            desc=self._title(0),
            unit=" rows",
            unit_scale=True,
            smoothing=0.1,
            file=stream,
            ncols=self._columns,
            nrows=_LINES,  # tqdm shows nothing if a terminal reports no lines
            bar_format=_RUNNING if total_rows else _UNMETERED,
        )

    def expect(self, total_rows: int, epochs: int) -> None:
        self._epochs = epochs
        self._tqdm.set_description_str(self._title(self._epoch), refresh=False)
        self._tqdm.total = total_rows
        self._tqdm.bar_format = _RUNNING
        self._tqdm.refresh()

    def update(self, rows_done_total: int, epoch: int, logs: Mapping[str, float]) -> None:
        bar = self._tqdm
        if not self._started and rows_done_total:
            self._start(rows_done_total)
        self._epoch = epoch
        bar.set_description_str(self._title(epoch), refresh=False)
        bar.set_postfix_str(self._metrics(logs), refresh=False)
        bar.update(max(rows_done_total - bar.n, 0))

    def epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        self._tqdm.set_description_str(self._title(epoch), refresh=False)
        self._tqdm.set_postfix_str(self._metrics(logs), refresh=False)
        self._tqdm.refresh()

    def note(self, text: str) -> None:
        if self._columns is None:
            self._tqdm.write(text)
        else:
            self._tqdm.clear()
            self._stream.write(f"{text}\n")
            self._tqdm.refresh()

    def close(self) -> None:
        if self._tqdm.total:
            self._tqdm.bar_format = _ENDED
        self._tqdm.close()

    def _start(self, rows: int) -> None:
        """Measure speed and time from the first rows on, without start and compilation."""
        bar = self._tqdm
        bar.initial = bar.n = bar.last_print_n = rows
        bar.unpause()
        self._started = True

    def _title(self, epoch: int) -> str:
        return f"epoch {min(epoch + 1, self._epochs)}/{self._epochs}"

    def _metrics(self, logs: Mapping[str, float]) -> str:
        if self._columns is None:
            return ", ".join(_with_validation(logs, 4))
        room = self._columns - len(self._title(0)) - _FIXED_TEXT - _NARROWEST_BAR
        return _fitting(logs, room)


def _fitting(logs: Mapping[str, float], room: int) -> str:
    """Returns the metrics in the longest form that fits: numbers are shortened first, then metrics omitted."""
    plain = [f"{name} {_figure(value, 4)}" for name, value in logs.items() if not name.startswith(VALIDATION)]
    shorter = [plain[:count] for count in range(len(plain), 0, -1)]
    for items in (_with_validation(logs, 4), _with_validation(logs, 3), *shorter):
        text = ", ".join(items)
        if len(text) <= room:
            return text
    return ""


def _with_validation(logs: Mapping[str, float], digits: int) -> list[str]:
    items = []
    for name, value in logs.items():
        if name.startswith(VALIDATION) and name.removeprefix(VALIDATION) in logs:
            continue
        validation = logs.get(VALIDATION + name)
        beside = "" if validation is None else f" (val {_figure(validation, digits)})"
        items.append(f"{name} {_figure(value, digits)}{beside}")
    return items


def _figure(value: float, digits: int) -> str:
    if not math.isfinite(value) or value == 0 or 10.0 ** (1 - digits) <= abs(value) < 1e5:
        return f"{value:.{digits}f}"
    return f"{value:.1e}"


def thousands(rate: float) -> str:
    """Returns a large number in a few characters."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate >= size:
            return f"{rate / size:.1f}{letter}"
    return f"{rate:.0f}"


def _mode(verbose: int | str, stream: TextIO, *, given: bool) -> int:
    if str(verbose) not in CHOICES and not isinstance(verbose, bool):
        raise JobError(one_of("verbose", verbose, CHOICES))
    if verbose == "auto":
        watched = stream.isatty() or (_in_notebook() and not given)
        return 1 if watched else 2
    return int(verbose)


def _columns(stream: TextIO) -> int:
    """Returns the width of the terminal, or COLUMNS if it is set."""
    try:
        found = 0 if os.environ.get("COLUMNS") else os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError, AttributeError):
        found = 0
    # Some terminals, such as those of containers and of `script`, report no columns.
    return min((found or shutil.get_terminal_size((_USUAL, _LINES)).columns) - 1, _WIDEST)


def _shell() -> Any:
    """IPython's shell, where this process has one."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def _page() -> Callable[[int | None, int], Progress] | None:
    """Returns the function that makes a display in the notebook, if our extension is loaded."""
    found: Callable[[int | None, int], Progress] | None = getattr(_shell(), DISPLAY, None)
    return found


def _in_notebook() -> bool:
    """Returns whether this process serves a notebook."""
    shell = _shell()
    return shell is not None and "IPKernelApp" in shell.config


def _has_widgets() -> bool:
    """Returns whether it is a notebook that can show widgets; elsewhere a bar is text."""
    return _in_notebook() and find_spec("ipywidgets") is not None


def _tqdm_class(*, notebook: bool) -> Any:
    """Returns a tqdm without its monitor thread and its interprocess lock, so that a fit leaves nothing behind."""
    if notebook:
        from tqdm.notebook import tqdm
    else:
        from tqdm.std import tqdm

    quiet: Any = type("tqdm", (tqdm,), {"monitor_interval": 0})
    quiet.set_lock(threading.RLock())
    return quiet
