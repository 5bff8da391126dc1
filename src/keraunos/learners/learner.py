"""What every framework must be able to do. Runs on workers; `predict` also serves `transform`.

A learner is a model that can step and whose parameters are one flat vector: trainable variables first, then
float state such as BatchNorm's moving statistics. One file a framework implements it; one conformance suite
(`keraunos.testing.LearnerSuite`) tests them all.

Ownership: a learner belongs to one thread. Arrays given to it are not kept after the call; arrays it returns
belong to the caller, except the values of a `Contribution`, which are good until the learner's next call.

Memory: vectors are numpy arrays in host memory, with one exception: the values of a `Contribution` may be an array of
the learner's framework on its device. Whoever needs them in host memory converts them with `on_host`; a transport
between devices takes them as they are. `write` and `apply` take a vector from host memory or from that device.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.batch import Arrays, Batch, Front
from keraunos.parameters import Layout, Vector, all_finite


@dataclass(frozen=True)
class Contribution:
    """What one worker gives to a round in which gradients are shared.

    `values` is `len(denominators)` numerators of the trainable size, one behind the other, then the float state
    times the number of rows. A numerator is the gradient of a part of the loss times that part's denominator: the
    rows, the sum of sample weights, or the unmasked elements it was averaged over. `None` stands for a part that
    is a plain sum over rows, which is added up and never divided. Almost every model has just one part.

    With the sums over all workers written N_g and D_g, the gradient of the global batch is the sum over g of
    N_g / D_g (N_g where the denominator is `None`; zero where D_g is zero), and the new float state is the last
    block divided by all rows.
    """

    values: Any
    denominators: tuple[float | None, ...]
    rows: int


class Learner(ABC):
    """A model that can step, with its parameters in one flat vector described by `layout`.

    Batches are what a learner takes behind its `front`, if the model has one.
    """

    layout: Layout
    front: Front | None = None

    def encoded(self, inputs: Arrays) -> Arrays:
        """Inputs as the columns give them, as this learner takes them."""
        return inputs if self.front is None else self.front(inputs)

    @abstractmethod
    def prepare(self, example: Batch, *, seed: int, rank: int) -> None:
        """Build what needs to know the batches' shapes, and give this rank its own random numbers."""

    def skip_random(self, example: Batch, steps: int, take: Callable[[Batch], object]) -> None:  # noqa: B027 - may be none
        """Leave out the random numbers that so many steps draw, as if they had been taken; nothing else changes.

        `take` is how the plan takes a step: `step` or `gradient`.
        """

    @abstractmethod
    def read(self, out: Vector | None = None) -> Vector:
        """The parameters as one vector."""

    @abstractmethod
    def write(self, vector: Any) -> None:
        """Set the parameters from one vector."""

    def on_host(self, vector: Any) -> Vector:
        """A vector in host memory: the same one where it is there already, read-only where it was on the device."""
        return np.asarray(vector)

    def is_finite(self, vector: Any, factor: float = 1.0) -> bool:
        """Whether no element of a vector, in host memory or on the device, times `factor` is infinite or NaN."""
        return all_finite(self.on_host(vector), factor)

    @abstractmethod
    def step(self, batch: Batch) -> None:
        """One step with the model's own optimizer; training metrics accumulate."""

    def steps(self, batches: Iterable[Batch]) -> int:
        """One step for each batch, in their order; returns the rows of all of them.

        A learner that can take several steps in one call of its framework overrides this. All that can be read
        afterwards must then be equal to the bit to what single calls of `step` lead to. `batches` may be as long as an
        epoch: it is read as far as one call needs, and never kept whole.
        """
        rows = 0
        for batch in batches:
            self.step(batch)
            rows += batch.rows
        return rows

    @abstractmethod
    def gradient(self, batch: Batch) -> Contribution:
        """The gradient at the current parameters; float state and training metrics move, parameters do not."""

    def count_parts(self, batch: Batch) -> int:
        """How many parts the contribution for such a batch has; nothing is computed and nothing changes."""
        return 1

    @abstractmethod
    def apply(self, reduced: Any) -> None:
        """Apply a gradient with the model's own optimizer and set the float state: one vector of the whole layout."""

    @abstractmethod
    def evaluate(self, batch: Batch) -> None:
        """Accumulate the validation metrics of a batch; nothing else changes."""

    @abstractmethod
    def predict(self, inputs: Arrays) -> Arrays:
        """The model's outputs in inference mode: one array, or one a name for a model with several outputs."""

    @abstractmethod
    def read_metrics(self) -> list[npt.NDArray[np.float64]]:
        """The metrics' state since they were last taken, training and validation alike."""

    @abstractmethod
    def take_metrics(self) -> list[npt.NDArray[np.float64]]:
        """What `read_metrics` gives; the metrics are then reset."""

    def take_losses(self) -> npt.NDArray[np.float64]:
        """The loss of each training step since the last call, beside its rows; none where a step's is not known."""
        return np.empty((0, 2))

    def loss_is_finite(self) -> bool:
        """Whether no training step since the last `take_metrics` had a loss that is infinite or NaN, if it is known."""
        return True

    @property
    def expects_overflow(self) -> bool:
        """Whether the optimizer scales the loss, so that gradients may be infinite and it passes over those itself."""
        return False

    @abstractmethod
    def optimizer_state(self) -> list[npt.NDArray[Any]]:
        """The optimizer's variables."""

    @abstractmethod
    def restore_optimizer(self, state: Sequence[npt.NDArray[Any]]) -> None:
        """Set the optimizer's variables to what `optimizer_state` gave."""

    @property
    @abstractmethod
    def learning_rate(self) -> float:
        """The optimizer's learning rate as it is now."""

    @learning_rate.setter
    @abstractmethod
    def learning_rate(self, value: float) -> None: ...
