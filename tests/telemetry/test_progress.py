import fcntl
import io
import os
import struct
import sys
import termios
import threading
from types import SimpleNamespace

import pytest

from keraunos.errors import JobError
from keraunos.telemetry.progress import DISPLAY, Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def last_frame(stream):
    return stream.getvalue().rstrip("\n").split("\r")[-1]


@pytest.fixture
def wide(monkeypatch):
    monkeypatch.setattr("shutil.get_terminal_size", lambda *_, **__: os.terminal_size((120, 24)))


def test_silence():
    stream = Terminal()
    with Progress.open(100, 1, 0, stream) as progress:
        progress.note("hello")
        progress.update(100, 0, {"loss": 1.0})
        progress.epoch_end(0, {"loss": 1.0})
    assert stream.getvalue() == ""


def test_a_line_an_epoch_where_nobody_watches():
    stream, clock = io.StringIO(), Clock()
    with Progress.open(8000, 2, "auto", stream, clock) as progress:
        clock.now = 2.0
        progress.update(4000, 0, {"loss": 0.7})
        progress.epoch_end(0, {"loss": 0.5, "accuracy": 0.9, "val_loss": 0.6})
        clock.now = 3.0
        progress.update(8000, 1, {"loss": 0.4})
        progress.epoch_end(1, {"loss": 0.00004})
    assert stream.getvalue().splitlines() == [
        "epoch 1/2  2.0 s  2.0k rows/s  loss 0.5000  accuracy 0.9000  val_loss 0.6000",
        "epoch 2/2  1.0 s  4.0k rows/s  loss 4.0e-05",
    ]


def test_a_bar_on_a_terminal(wide):
    stream = Terminal()
    with Progress.open(1000, 2, "auto", stream) as progress:
        progress.update(100, 0, {"loss": 0.9})
        progress.update(500, 0, {"loss": 0.5, "accuracy": 0.75})
        progress.epoch_end(0, {"loss": 0.5, "accuracy": 0.75})
        assert "epoch 1/2  50%|" in last_frame(stream)
        assert "rows/s" in last_frame(stream)
        assert "left, loss 0.5000, accuracy 0.7500" in last_frame(stream)
        progress.update(1000, 1, {"loss": 0.25, "accuracy": 0.875})
        progress.epoch_end(1, {"loss": 0.25, "accuracy": 0.875})
    assert "epoch 2/2 100%|" in last_frame(stream)
    assert "loss 0.2500, accuracy 0.8750" in last_frame(stream)


@pytest.mark.parametrize("columns", [40, 80, 100, 200])
def test_the_bar_is_never_wider_than_the_terminal_or_100_columns(monkeypatch, columns):
    monkeypatch.setattr("shutil.get_terminal_size", lambda *_, **__: os.terminal_size((columns, 24)))
    stream = Terminal()
    logs = {"loss": 0.5, "accuracy": 0.7, "precision": 0.3, "val_loss": 0.6, "val_accuracy": 0.6, "val_precision": 0.2}
    with Progress.open(1000, 10, 1, stream) as progress:
        progress.update(100, 0, logs)
        progress.epoch_end(0, logs)
    frames = stream.getvalue().replace("\n", "\r").split("\r")
    assert max(map(len, frames)) <= min(columns, 100)


def test_validation_stands_beside_its_metric_where_there_is_room(wide):
    stream = Terminal()
    with Progress.open(1000, 1, 1, stream) as progress:
        progress.epoch_end(0, {"loss": 0.5, "accuracy": 0.7, "val_loss": 0.6, "val_accuracy": 0.65})
    assert "loss 0.500 (val 0.600), accuracy 0.700 (val 0.650)" in last_frame(stream)


def test_a_note_stands_above_the_bar(wide):
    stream = Terminal()
    with Progress.open(1000, 1, 1, stream) as progress:
        progress.note("2 workers")
    assert "2 workers\n" in stream.getvalue()


def test_rows_may_become_known_later(wide):
    stream = Terminal()
    with Progress.open(None, 1, 1, stream) as progress:
        progress.expect(200, 1)
        progress.update(50, 0, {})
        progress.update(100, 0, {})
        progress.epoch_end(0, {})
        assert " 50%|" in last_frame(stream)


def test_a_bar_starts_no_thread(wide):
    before = threading.active_count()
    with Progress.open(1000, 1, 1, Terminal()) as progress:
        progress.update(10, 0, {})
        assert threading.active_count() == before


@pytest.mark.parametrize("verbose", [3, "loud", -1])
def test_an_unknown_verbosity_is_refused(verbose):
    with pytest.raises(JobError, match=r"`verbose` must be one of 'auto', '0', '1', '2'. Received"):
        Progress.open(1, 1, verbose)


def test_auto_opens_what_was_put_in_its_place(monkeypatch):
    opened = []

    class Page(Progress):
        def __init__(self, rows, epochs):
            opened.append((rows, epochs))

    shell = SimpleNamespace(config={}, **{DISPLAY: Page})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert isinstance(Progress.open(10, 2), Page)
    assert opened == [(10, 2)]
    assert not isinstance(Progress.open(10, 2, 2), Page)
    assert not isinstance(Progress.open(10, 2, "auto", io.StringIO()), Page)


@pytest.mark.parametrize(("lines", "columns", "widest"), [(0, 0, 79), (24, 0, 79), (24, 50, 49), (24, 200, 100)])
def test_a_bar_fits_the_terminal_that_it_is_written_to(lines, columns, widest, monkeypatch):
    """Also one that says that it has no columns and no lines, and while standard output goes to a file."""
    monkeypatch.delenv("COLUMNS", raising=False)
    ours, theirs = os.openpty()
    with os.fdopen(ours, "rb", buffering=0) as reader, os.fdopen(theirs, "w", encoding="utf-8") as terminal:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        with Progress.open(1000, 2, "auto", terminal) as progress:
            progress.update(100, 0, {"loss": 0.9})
            progress.update(1000, 1, {"loss": 0.5})
            progress.epoch_end(1, {"loss": 0.5})
        terminal.flush()
        shown = b""
        while not shown.endswith(b"\n"):
            shown += reader.read(10_000)
    frames = [frame.rstrip() for frame in shown.decode().split("\r") if frame.strip()]
    assert frames[-1].startswith("epoch 2/2 100%|")
    assert widest - 1 <= max(map(len, frames)) <= widest
    if widest > 60:
        assert frames[-1].endswith("loss 0.5000")


def test_a_notebook_without_widgets_has_a_bar_of_text(monkeypatch, capsys):
    kernel = SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: kernel))
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with Progress.open(1000, 1) as progress:
        progress.update(100, 0, {"loss": 0.9})
        progress.update(1000, 0, {"loss": 0.5})
    assert "epoch 1/1 100%|" in capsys.readouterr().err
