"""The driver's copy of a model, whatever framework runs it on the workers. Runs on the driver.

Following a fit needs little of a model: its parameters as one vector, an archive to give back, the results of merged
metric states, and a learning rate where one can be set. A model's format brings it
(`keraunos.formats.model_format`); none of it steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from keraunos.batch import BatchSpec
from keraunos.job.training_job import TrainingJob
from keraunos.parameters import Layout, Vector

State = Sequence[npt.NDArray[Any]]


class MetricStates(Protocol):
    """How the metrics' states of several workers come together, and what they amount to."""

    def merge(self, states: Sequence[State]) -> list[npt.NDArray[np.float64]]:
        """One state that stands for all of them."""

    def read(self, states: Sequence[State]) -> dict[str, float]:
        """The results of all states together by their names, the loss first."""


class HomeModel(ABC):
    """A model on the driver, with its parameters in one flat vector described by `layout`. One thread uses it."""

    layout: Layout

    takes_callbacks: ClassVar[bool] = False
    """Whether Keras's callbacks may follow its training: what they see and set is there."""

    @abstractmethod
    def check(self, job: TrainingJob) -> None:
        """Refuse a job that cannot train this model as it asks to."""

    @abstractmethod
    def read(self) -> Vector:
        """The parameters as one vector of the caller's own."""

    @abstractmethod
    def write(self, vector: Vector) -> None:
        """Set the parameters from one vector, which is not kept."""

    def settle(self, optimizer: State | None) -> None:  # noqa: B027 - may be none
        """Take over the state of the optimizer that has trained, and do what it does when a training is over.

        `None` where it is lost: with its worker, or because training ended where something was not finite.
        """

    @abstractmethod
    def to_archive(self) -> bytes:
        """The model as it is now, in the format that it came in."""

    def identity(self) -> dict[str, Any]:
        """What tells this model from another one, whatever its parameters are: for a saved training to know it by."""
        layout = self.layout
        return {"shapes": [list(shape) for shape in layout.shapes], "trained": layout.trainable, "dtype": layout.dtype}

    @abstractmethod
    def metric_states(self, spec: BatchSpec) -> MetricStates:
        """What reads the states that workers send, for batches that follow `spec`."""

    @property
    @abstractmethod
    def learning_rate(self) -> float | None:
        """The rate that workers are told to step with; `None` where it is not for the driver to say."""

    @learning_rate.setter
    @abstractmethod
    def learning_rate(self, value: float) -> None: ...
