"""Base class of the steps between a record and a model. Runs on executors; steps are made on the driver.

A step is plain data and is pickled with the task that runs it. `draws` is true if it uses random numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from keraunos.errors import JobError


class Preprocessing(ABC):
    """One step, from a value to another."""

    @property
    def draws(self) -> bool:
        """Whether the step uses random numbers."""
        return False

    @abstractmethod
    def transform(self, value: Any) -> Any:
        """Returns the result for one value."""

    def apply(self, values: Iterator[Any]) -> Iterator[Any]:
        """Returns the results for many values."""
        return map(self.transform, values)

    def __call__(self, images: Any) -> Any:
        """Returns the images of an `ImageSet` or an `ImageFrame` after this step."""
        through = getattr(images, "transform", None)
        if through is None or isinstance(images, Preprocessing):
            raise JobError(
                f"{type(self).__name__} must be called with an ImageSet or an ImageFrame. Received: "
                f"{type(images).__name__}."
            )
        return through(self)

    def __repr__(self) -> str:
        arguments = ", ".join(f"{key}={value!r}" for key, value in vars(self).items())
        return f"{type(self).__name__}({arguments})"


def checked_step(step: Any, argument: str) -> Preprocessing:
    """Returns the step that was given."""
    if not isinstance(step, Preprocessing):
        raise JobError(
            f"`{argument}` must be a step of zoo.feature or of bigdl.transform.vision.image, such as ImageResize. "
            f"Received: {step!r}."
        )
    return step
