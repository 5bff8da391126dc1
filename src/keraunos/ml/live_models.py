"""What an estimator asks of live models of one format before it trains them. Runs on the driver, before any task.

The other half of a format, which knows archives and no DataFrames, is in `keraunos.formats`. An estimator's class names
its `LiveModels`; preparation, fitting and saving speak to that and to the format, and know no framework.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from keraunos.job.columns import Slot
from keraunos.ml.schema import SlotSpec
from keraunos.ml.signature import Port, Shape, Signature

FirstRow = Callable[[], Mapping[str, Any] | None]


@dataclass(frozen=True)
class Read:
    """Slots, what the schema says of each, and what gives the first row where the schema does not say enough."""

    slots: tuple[Slot, ...]
    specs: tuple[SlotSpec, ...]
    first_row: FirstRow


@dataclass(frozen=True)
class Settled:
    """A model that knows its shapes: the one that was given, or a copy that was built for the columns.

    Attributes:
        model: the live model.
        signature: what it takes and gives.
        unchecked_ids: inputs that an Embedding may look up in a way that is not known.
        rows: the shape and the type of a row of each input.
    """

    model: Any
    signature: Signature
    unchecked_ids: tuple[str, ...] = ()
    rows: tuple[tuple[Shape, str], ...] = ()


class LiveModels(ABC):
    """How live models of one format are checked and made ready. It has no state."""

    format: ClassVar[str]
    """The name of the format."""

    expected: ClassVar[str]
    """What an error asks for where there is no model, as "a compiled Keras model"."""

    @abstractmethod
    def settings(self) -> tuple[str, str]:
        """The backend that runs models in this process, and the type that they compute in."""

    @abstractmethod
    def check_trainable(self, model: Any, *, labelled: bool) -> None:
        """Refuse a model that cannot be trained, with labels or without."""

    @abstractmethod
    def settled(self, model: Any, read: Read, *, seed: int, backend: str, custom_objects: Mapping[str, Any]) -> Settled:
        """The model with its shapes known; initial weights that are drawn here follow from `seed`."""

    def dtype(self, model: Any) -> str:
        """The type of the parameters of a model with known shapes."""
        return self.settings()[1]

    def known_inputs(self, model: Any) -> tuple[Port, ...]:
        """The inputs that a model tells before it has seen any column."""
        return ()

    def checked_labels(
        self, model: Any, slots: tuple[Slot, ...], specs: tuple[SlotSpec, ...], signature: Signature
    ) -> tuple[Slot, ...]:
        """The label slots as a worker reads them; refuses what the model cannot be compared with."""
        return slots

    def check_unlabelled(self, model: Any, read: Read | None = None) -> None:  # noqa: B027 - may be none
        """Refuse a model for which, without labels, there would be nothing to minimise."""

    def check_measurable(self, model: Any, *, labelled: bool) -> None:
        """Refuse a model that says no loss or metrics to evaluate."""
        self.check_trainable(model, labelled=labelled)

    def has_schedule(self, model: Any) -> bool:
        """Whether its learning rate follows a schedule, which a number cannot replace."""
        return False

    def check_rate_setters(self, callbacks: Sequence[Any], why: str) -> None:  # noqa: B027 - may be none
        """Refuse callbacks that set the learning rate of an optimizer which takes no step; `why` says why."""

    def warn_of_padding(self, model: Any) -> None:  # noqa: B027 - may be none
        """Warn where the zeros that rows are padded with count like other values."""

    def identity(self, model: Any) -> Mapping[str, Any]:
        """What must be the same of a model and of the one that is trained in its place."""
        return {}
