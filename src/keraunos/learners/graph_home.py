"""The driver's copy of a TensorFlow graph: its archive, with parameters that can be replaced. Runs on the driver.

TensorFlow is not needed, and not imported: a vector is spliced into the archive as bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from keraunos.batch import BatchSpec
from keraunos.errors import ModelError
from keraunos.job.training_job import TrainingJob
from keraunos.learners.graph_archive import GraphArchive
from keraunos.learners.graph_job import check_graph_job
from keraunos.learners.graph_measures import Measure
from keraunos.learners.home_model import HomeModel, MetricStates
from keraunos.learners.row_means import RowMeans
from keraunos.parameters import Vector


class GraphHome(HomeModel):
    """A graph's archive and the vector that is to be in it."""

    def __init__(self, archive: bytes, measures: Mapping[str, Measure] | None = None) -> None:
        self._archive = GraphArchive.from_bytes(archive)
        self._measures = dict(measures or {})
        self.layout = self._archive.layout
        self._vector = np.array(self._archive.vector())

    def check(self, job: TrainingJob) -> None:
        """Refuse what the graph cannot do, such as to have its learning rate set."""
        check_graph_job(self._archive, job)

    def read(self) -> Vector:
        """The parameters as one vector."""
        return np.array(self._vector)

    def write(self, vector: Vector) -> None:
        """Set the parameters from one vector."""
        if vector.shape != (self.layout.size,):
            raise ModelError(
                f"The vector for the graph must have {self.layout.size} elements. Received: shape {vector.shape}."
            )
        np.copyto(self._vector, vector)

    def to_archive(self) -> bytes:
        """The graph with the parameters as they are now."""
        return self._archive.with_vector(self._vector).to_bytes()

    def metric_states(self, spec: BatchSpec) -> MetricStates:
        """What reads the means over rows that the graph's learner gives, and the states of measures."""
        names = ("loss", *self._archive.metrics)
        return RowMeans(names, has_loss=self._archive.loss is not None, measures=self._measures)

    @property
    def learning_rate(self) -> float | None:
        """Not for the driver to say."""
        return None

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        raise ModelError(
            "The learning rate of a TensorFlow graph cannot be set while it trains. Expected: a rate, or a schedule, "
            f"in the graph or in the rule of the exchange plan. Received: {value!r}."
        )
