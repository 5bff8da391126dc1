"""A Keras 3 model that a `TFOptimizer` trains. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from keraunos.compat.zoo.tfpark.result_names import summary_tag, validation_results
from keraunos.compat.zoo.tfpark.structure import flatten
from keraunos.compat.zoo.tfpark.tf_dataset import TFDataset
from keraunos.compat.zoo.tfpark.trained_graph import check_trainable
from keraunos.errors import ModelError
from keraunos.job.columns import Columns, Slot
from keraunos.job.training_job import ModelSource
from keraunos.ml.keras.signature import signature_of
from keraunos.ml.signature import Signature
from keraunos.parameters import Layout, Vector


@dataclass(frozen=True)
class TrainedKeras:
    """A compiled Keras 3 model; `applies_itself` is true if its own optimizer takes steps, `trains` if any does."""

    model: Any
    dataset: TFDataset
    applies_itself: bool
    session: Any = None
    trains: bool = True

    def __post_init__(self) -> None:
        from keraunos.learners.keras_archive import check_trainable as check_compiled

        if self.trains:
            check_trainable(self.dataset)
        check_compiled(self.model)
        if not self.model.built:
            raise ModelError(
                f"The model {self.model.name!r} must be built. Received: one without variables. Give its first layer "
                "an input shape, or call it once on a batch."
            )
        self.columns()

    @property
    def measures(self) -> bool:
        """Always: a compiled model has a loss."""
        return True

    @property
    def must_validate(self) -> bool:
        """Rows to validate on may be left out."""
        return False

    def columns(self) -> Columns:
        """Features and labels, by the model's names where it has several."""
        inputs, outputs = (_names(self.model, kind) for kind in ("input", "output"))
        labels = self.dataset.features_and_labels(len(inputs))[1]
        return Columns(
            features=feature_slots(self.model, self.dataset),
            labels=_renamed(self.dataset, labels, outputs, "labels"),
        )

    def source(self) -> ModelSource:
        """Returns the model with its present values."""
        return source_of(self.model)

    def layout(self, source: ModelSource) -> Layout:
        """How the model's variables lie in a vector."""
        from keraunos.learners.keras_variables import layout_of

        return layout_of(self.model)

    def take(self, archive: bytes) -> None:
        """Set the model's variables to an archive's."""
        from keraunos.learners.keras_archive import from_archive, live_modules
        from keraunos.learners.keras_variables import read_vector, write_vector

        # The archive is this model's own, as it came out of a training.
        write_vector(self.model, read_vector(from_archive(archive, trusted=live_modules(self.model))))

    def count_on(self, steps: int) -> None:
        """The model counts no steps outside of its optimizer, which starts again with every training."""

    def take_vector(self, source: ModelSource, vector: Vector) -> None:
        """Set the model's variables."""
        from keraunos.learners.keras_variables import write_vector

        write_vector(self.model, vector)

    def custom_objects(self) -> dict[str, Any]:
        """None: code of the user's travels with the model."""
        return {}

    def scores(self, logs: Mapping[str, float]) -> dict[str, float]:
        """Returns the loss and the model's metrics."""
        return validation_results(logs)

    def tag(self, name: str) -> str:
        """BigDL's name for a metric."""
        return summary_tag(name)

    @property
    def driver_measure(self) -> None:
        """Workers measure."""
        return


def source_of(model: Any) -> ModelSource:
    """Returns a model with its present values."""
    from keraunos.learners.keras_archive import live_source

    return live_source(model)


def feature_slots(model: Any, dataset: TFDataset) -> tuple[Slot, ...]:
    """Returns the entries of a record for the model's inputs."""
    names = _names(model, "input")
    return _renamed(dataset, dataset.features_and_labels(len(names))[0], names, "features")


def _names(model: Any, kind: str) -> list[str]:
    """Returns the names of the model's inputs or outputs; a model without declared inputs has one."""
    signature = signature_of(model) if getattr(model, "inputs", None) else Signature((), ())
    ports = signature.inputs if kind == "input" else signature.outputs
    return [port.name for port in ports] or [kind]


def _renamed(dataset: TFDataset, structure: Any, names: Sequence[str], what: str) -> tuple[Slot, ...]:
    """The slots of some tensors under the model's names: by their keys where they have those, else in their order."""
    metas = flatten(structure)
    if len(metas) != len(names):
        raise ModelError(
            f"The dataset's {what} must be one tensor for each of {', '.join(map(repr, names))} of the model. "
            f"Received: {len(metas)}."
        )
    slots = {slot.name: slot for slot in dataset.slots}
    if len(names) == 1:
        return (replace(slots[metas[0].name], name=None),)
    if isinstance(structure, Mapping) and set(structure) == set(names):
        return tuple(replace(slots[structure[name].name], name=name) for name in names)
    return tuple(replace(slots[meta.name], name=name) for meta, name in zip(metas, names, strict=True))
