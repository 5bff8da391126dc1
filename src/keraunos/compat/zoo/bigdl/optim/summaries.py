"""BigDL's summaries: TensorBoard files of a training that can be read back as arrays. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urlparse

import numpy as np
import numpy.typing as npt

from keraunos.compat.zoo.bigdl.optim.arguments import float_type
from keraunos.compat.zoo.bigdl.optim.triggers import SeveralIteration, Trigger, trigger_named
from keraunos.errors import JobError, one_of
from keraunos.telemetry.tensorboard import EventWriter, read_scalars

INDICATORS = ("LearningRate", "Loss", "Throughput", "Parameters")


class Summary:
    """Numbers and histograms by tag and step, in the TensorBoard files of one folder."""

    part = ""

    def __init__(self, log_dir: str, app_name: str, bigdl_type: str = "float") -> None:
        float_type(bigdl_type)
        self.log_dir = log_dir
        self.app_name = app_name
        self.folder = _local(log_dir) / app_name / self.part
        self._writer = EventWriter(self.folder)

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        """Note a number of a step."""
        self._writer.add_scalar(tag, value, step)

    def add_histogram(self, tag: str, values: npt.ArrayLike, step: int) -> None:
        """Note how the values of an array are spread at a step."""
        self._writer.add_histogram(tag, values, step)

    def read_scalar(self, tag: str) -> npt.NDArray[np.float64]:
        """What was noted under a tag: a row each of step, value and time in seconds."""
        self._writer.flush()
        return read_scalars(self.folder, tag)

    def flush(self) -> None:
        """Let TensorBoard see what was noted."""
        self._writer.flush()

    def close(self) -> None:
        """Close the file; it can still be read, and noting more opens another."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class TrainSummary(Summary):
    """What is noted of the training, in `log_dir/app_name/train`: `Loss` and `Throughput` of every step.

    `LearningRate`, and `Parameters` (a histogram of each variable), are noted where `set_summary_trigger` says when.
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
    """What is noted of validations, in `log_dir/app_name/validation`: each method's result, under its name."""

    part = "validation"


def _local(log_dir: Any) -> Path:
    address = urlparse(str(log_dir))
    if address.scheme in {"", "file"}:
        return Path(unquote(address.path) if address.scheme else str(log_dir)).expanduser()
    raise JobError(
        f"`log_dir` must be a folder of the driver's file system. Received: {log_dir!r}. Write to a local folder and "
        "copy it when the training has ended, or point TensorBoard at the driver."
    )
