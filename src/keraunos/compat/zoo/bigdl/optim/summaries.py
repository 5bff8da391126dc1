"""BigDL's summaries: TensorBoard files of a training that can be read back as arrays. Runs on the driver."""

from __future__ import annotations

import logging
import math
import shutil
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from keraunos import scratch
from keraunos.compat.zoo.bigdl.optim.arguments import float_type
from keraunos.compat.zoo.bigdl.optim.triggers import SeveralIteration, Trigger, trigger_named
from keraunos.errors import JobError, one_of
from keraunos.launch.given_paths import GivenPath, given_path
from keraunos.telemetry.tensorboard import EventWriter, read_scalars

logger = logging.getLogger(__name__)

# Copies to another file system: at least this many seconds apart, and at least this many times a copy's duration.
_COPY_SECONDS, _COPY_SHARE = 2.0, 20.0

INDICATORS = ("LearningRate", "Loss", "Throughput", "Parameters")


class Summary:
    """Numbers and histograms by tag and step, in the TensorBoard files of one folder."""

    part = ""

    def __init__(self, log_dir: str, app_name: str, bigdl_type: str = "float") -> None:
        float_type(bigdl_type)
        self.log_dir = log_dir
        self.app_name = app_name
        self._place = given_path(log_dir, "log_dir").child(app_name).child(self.part)
        self._copies: _Copies | None = None
        folder = self._place.local_path
        if folder is None:
            folder, self._copies = _Copies.begin(self._place)
        self.folder = folder
        self._writer = EventWriter(folder)
        if self._copies is not None:
            weakref.finalize(self, _end, self._writer, self._copies)

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        """Note a number of a step."""
        self._writer.add_scalar(tag, value, step)

    def add_histogram(self, tag: str, values: npt.ArrayLike, step: int) -> None:
        """Note how the values of an array are spread at a step."""
        self._writer.add_histogram(tag, values, step)

    def read_scalar(self, tag: str) -> npt.NDArray[np.float64]:
        """Returns the scalars of a tag: rows of step, value and time in seconds."""
        self.sync()
        if not self._place.exists():
            return read_scalars(self.folder, tag)
        with self._place.local() as folder:
            return read_scalars(folder, tag)

    def flush(self) -> None:
        """Let TensorBoard see what was noted; on another file system it does so a little later, or after `sync`."""
        self._writer.flush()
        if self._copies is not None:
            self._copies.copy_now_and_then()

    def sync(self) -> None:
        """Let TensorBoard see what was noted, on whatever file system."""
        self._writer.flush()
        if self._copies is not None:
            self._copies.copy()

    def close(self) -> None:
        """Close the file; it can still be read, and noting more opens another."""
        self._writer.close()
        self.sync()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class TrainSummary(Summary):
    """The summary of the training, in `log_dir/app_name/train`: `Loss` and `Throughput` of every step.

    `LearningRate`, and `Parameters` (a histogram of each variable), are written at the times of `set_summary_trigger`.
    """

    part = "train"

    def __init__(self, log_dir: str, app_name: str, bigdl_type: str = "float") -> None:
        super().__init__(log_dir, app_name, bigdl_type)
        self._triggers: dict[str, Trigger] = {"Loss": SeveralIteration(1), "Throughput": SeveralIteration(1)}

    def set_summary_trigger(self, name: str, trigger: Any) -> TrainSummary:
        """Say when an indicator is noted: `LearningRate`, `Loss`, `Throughput` or `Parameters`."""
        if name not in INDICATORS:
            raise JobError(one_of("name", name, INDICATORS))
        self._triggers[name] = trigger_named(trigger)
        return self

    @property
    def triggers(self) -> Mapping[str, Trigger]:
        """When each indicator is noted; one that is not named is not noted."""
        return dict(self._triggers)


class ValidationSummary(Summary):
    """The summary of validations, in `log_dir/app_name/validation`: each method's result, under its name."""

    part = "validation"


class _Copies:
    """Event files of a temporary folder, copied to another file system, whole each time: few of those can append."""

    def __init__(
        self, folder: Path, place: GivenPath, closing: ExitStack, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._folder = folder
        self._place = place
        self._closing = closing
        self._clock = clock
        self._sizes: dict[str, int] = {}
        self._next = -math.inf

    @classmethod
    def begin(cls, place: GivenPath) -> tuple[Path, _Copies]:
        """Returns the temporary folder, and its copies."""
        with ExitStack() as stack:
            folder = Path(stack.enter_context(scratch.folder("summary")))
            return folder, cls(folder, place, stack.pop_all())

    def copy_now_and_then(self) -> None:
        """Copy what is new, unless that was done a moment ago: it is to take a small part of the time."""
        if self._clock() >= self._next:
            self.copy()

    def copy(self) -> None:
        """Copy what is new."""
        sizes = {each.name: each.stat().st_size for each in self._folder.iterdir()}
        grown = [name for name, size in sizes.items() if self._sizes.get(name) != size]
        started = self._clock()
        if grown:
            with self._place.written() as path:
                path.mkdir()
                for name in grown:
                    shutil.copyfile(self._folder / name, path / name)
        self._sizes = sizes
        now = self._clock()
        self._next = now + max(_COPY_SECONDS, _COPY_SHARE * (now - started))

    def end(self) -> None:
        """Remove the temporary folder."""
        self._closing.close()


def _end(writer: EventWriter, copies: _Copies) -> None:
    """Ends a summary that is garbage-collected, or at the end of the program."""
    try:
        writer.flush()
        copies.copy()
    except OSError as error:
        logger.warning("The last events of a summary could not be written: %s", error)
    finally:
        copies.end()
