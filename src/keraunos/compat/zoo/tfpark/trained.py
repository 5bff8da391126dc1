"""The interface of models that a `TFOptimizer` trains: a graph, or a Keras model. Runs on the driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from keraunos.batch import Array
from keraunos.compat.zoo.tfpark.tf_dataset import TFDataset
from keraunos.job.columns import Columns
from keraunos.job.training_job import ModelSource
from keraunos.parameters import Layout, Vector


class Trainable(Protocol):
    """A model that can be trained on a dataset, and that receives the trained values."""

    @property
    def dataset(self) -> TFDataset:
        """The records that are trained on."""

    @property
    def session(self) -> Any:
        """The TensorFlow session that has the values, if there is one."""

    @property
    def applies_itself(self) -> bool:
        """Whether its own optimizer applies the gradient of all workers."""

    @property
    def measures(self) -> bool:
        """Whether there is something to measure on rows."""

    @property
    def must_validate(self) -> bool:
        """Whether rows to validate on must be there."""

    def columns(self) -> Columns:
        """Returns the entry of a record for each input."""

    def source(self) -> ModelSource:
        """It, with its present values, for the workers."""

    def layout(self, source: ModelSource) -> Layout:
        """How the values of `source` lie in a vector."""

    def take(self, archive: bytes) -> None:
        """Take the values of an archive."""

    def count_on(self, steps: int) -> None:
        """So many steps were taken, by workers whose counters stay with them."""

    def take_vector(self, source: ModelSource, vector: Vector) -> None:
        """Take the values of a vector, which lie as in `source`."""

    def custom_objects(self) -> dict[str, Any]:
        """Returns the objects that workers need to measure it, in addition to `source`."""

    def scores(self, logs: Mapping[str, float]) -> dict[str, float]:
        """Returns the validation results by name, from a lap's logs."""

    def tag(self, name: str) -> str:
        """Returns the tag of a score in a validation summary."""

    @property
    def driver_measure(self) -> Callable[[Sequence[Array]], dict[str, float]] | None:
        """Measures the present values on rows, one array per tensor of the dataset; `None` if workers can do it."""
