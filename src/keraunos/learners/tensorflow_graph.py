"""A TensorFlow graph with placeholders, trained in a session of its own. Runs on workers.

Explicit graphs and sessions work beside eager execution, so that nothing of the process's TensorFlow is switched off.
The loss is taken as the mean over a batch's rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.batch import Array, Arrays, Batch
from keraunos.errors import DataError, ModelError
from keraunos.learners.graph_archive import GraphArchive
from keraunos.learners.graph_checks import shown
from keraunos.learners.graph_measures import LABEL, OUTPUT, Measure, no_state, summed
from keraunos.learners.graph_network import Network, Port
from keraunos.learners.learner import Contribution, Learner
from keraunos.parameters import Vector


class TensorFlowGraphLearner(Learner):
    """The graph in an archive. A learner that only predicts needs no `prepare`; `measures` are for evaluation."""

    def __init__(self, archive: bytes, measures: Mapping[str, Measure] | None = None) -> None:
        self._archive = GraphArchive.from_bytes(archive)
        self._measures = dict(measures or {})
        self._states = {name: no_state() for name in self._measures}
        self.layout = self._archive.layout
        self._made: Network | None = None
        self._sums = np.zeros(2 * (1 + len(self._archive.metrics)))
        self._losses: list[tuple[float, int]] = []

    def prepare(self, example: Batch, *, seed: int, rank: int) -> None:
        """See that rows fit the placeholders, and give this rank its own random numbers."""

        def seeds(count: int) -> list[int]:
            fresh = np.random.SeedSequence([seed % 2**64, rank]).generate_state(count, np.uint32)
            return [int(value) >> 1 for value in fresh]

        self._made = Network(self._archive, seeds)
        self._rows(example)

    def read(self, out: Vector | None = None) -> Vector:
        """The parameters as one vector."""
        vector = self.layout.empty() if out is None else out
        self._network.read(vector)
        return vector

    def write(self, vector: Vector) -> None:
        """Set the parameters from one vector."""
        self._network.write(vector)

    def step(self, batch: Batch) -> None:
        """One step of `train_op`; training metrics accumulate."""
        if self._archive.train_op is None:
            raise ModelError(
                "The graph has no `train_op`, so that a worker cannot take a step by itself. Share gradients and let a "
                "rule apply them, as with send='gradients' and rule='adam', or give `train_op`."
            )
        self._note(self._network.step(self._rows(batch)), batch.rows, trained=True)

    def gradient(self, batch: Batch) -> Contribution:
        """The gradient at the current parameters; float state and training metrics move, parameters do not."""
        if self._archive.derivatives is None:
            raise ModelError(
                "The graph came without a gradient to share. Give `loss` without `train_op`, or `train_op` with "
                "`gradients`; or let workers take whole steps, as with send='updates'."
            )
        values, *measured = self._network.gradient(self._rows(batch), batch.rows)
        self._note(measured, batch.rows, trained=True)
        return Contribution(values, (float(batch.rows),), batch.rows)

    def apply(self, reduced: Vector) -> None:
        """Apply a gradient with the optimizer in `train_op` and set the float state: one vector of the whole layout."""
        if self._archive.gradients is None:
            raise ModelError(
                "The graph came without `gradients`, the tensors in whose place `train_op` takes the gradient of all "
                "workers. Give them with `train_op`, or let a rule apply gradients, such as rule='adam'."
            )
        self._network.apply(reduced)

    def evaluate(self, batch: Batch) -> None:
        """Accumulate the validation metrics of a batch; nothing else changes.

        Of rows that are fewer than the graph takes at once only the measures are known, not the scalars. A single row
        goes in several times, which changes no mean; graphs that squeeze their labels fail on one row.
        """
        lacking = max(0, (self._network.batch_rows or 2) - batch.rows)
        measured = self._network.measure(self._rows(_filled_up(batch, lacking) if lacking else batch))
        scalars = measured[: len(measured) - len(self._archive.observed)]
        if not lacking or batch.rows == 1:
            self._note(scalars, batch.rows, trained=False)
        if self._measures:
            compared = dict(zip(self._archive.observed, measured[len(scalars) :], strict=True))
            output, label = (compared[name][: batch.rows] if lacking else compared[name] for name in (OUTPUT, LABEL))
            for name, measure in self._measures.items():
                self._states[name] = summed([self._states[name], measure.state(output, label)])

    def predict(self, inputs: Arrays) -> Arrays:
        """The graph's outputs, with what is fed in predictions: one array, or one a name where there are several."""
        network = self._network
        arrays = _chosen(network.serving, inputs, len(self._archive.inputs), "inputs")
        rows = len(arrays[0]) if arrays else 0
        given = [_fitted(network.serving, portion) for portion in _portions(arrays, rows, network)]
        parts = [network.predict(portion) for portion in given]
        fed = sum(len(portion[0]) for portion in given if portion)
        outputs = [_joined(each, fed, rows) for each in zip(*parts, strict=True)]
        return outputs[0] if len(outputs) == 1 else dict(zip(self._archive.outputs, outputs, strict=True))

    def read_metrics(self) -> list[npt.NDArray[np.float64]]:
        """The sums of value times rows, and the rows, for the loss and each metric since they were last taken.

        Behind them the state of each measure.
        """
        return [self._sums.copy(), *(state.copy() for state in self._states.values())]

    def take_metrics(self) -> list[npt.NDArray[np.float64]]:
        """What `read_metrics` gives; the metrics are then reset."""
        taken = self.read_metrics()
        self._sums[:] = 0
        self._states = {name: no_state() for name in self._measures}
        return taken

    def take_losses(self) -> npt.NDArray[np.float64]:
        """The loss and the rows of each training step since the last call."""
        taken = np.array(self._losses, dtype=np.float64).reshape(-1, 2)
        self._losses.clear()
        return taken

    def loss_is_finite(self) -> bool:
        """Whether the sum of losses is; a graph without a loss has none."""
        return math.isfinite(self._sums[0])

    def optimizer_state(self) -> list[npt.NDArray[Any]]:
        """The values of the variables that a step moves and that are not exchanged."""
        return self._network.optimizer_state()

    def restore_optimizer(self, state: Sequence[npt.NDArray[Any]]) -> None:
        """Set those variables to what `optimizer_state` gave."""
        self._network.restore_optimizer(state)

    @property
    def learning_rate(self) -> float:
        """Not a number: a graph keeps its rate to itself."""
        return math.nan

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        raise ModelError(
            f"The learning rate of a TensorFlow graph is part of the graph and cannot be set. Received: {value!r}. Set "
            "it in the graph's optimizer, or in the rule of the exchange plan."
        )

    @property
    def _network(self) -> Network:
        if self._made is None:
            self._made = Network(self._archive)
        return self._made

    def _rows(self, batch: Batch) -> list[Any]:
        if batch.weights is not None:
            raise ModelError(
                "A TensorFlow graph weighs its rows itself. Received: a column of weights. Make it one of the graph's "
                "inputs, and multiply by it in the loss."
            )
        network, archive = self._network, self._archive
        inputs = _chosen(network.inputs, batch.inputs, len(archive.inputs), "inputs")
        given = {} if batch.targets is None else batch.targets
        targets = _chosen(network.targets, given, len(archive.targets), "targets")
        return _fitted(network.inputs, inputs) + _fitted(network.targets, targets)

    def _note(self, measured: Sequence[Any], rows: int, *, trained: bool) -> None:
        if any(np.ndim(each) for each in measured):
            names = [*([self._archive.loss] if self._archive.loss else []), *self._archive.metrics.values()]
            wrong = [str(name) for name, each in zip(names, measured, strict=True) if np.ndim(each)]
            raise ModelError(f"The loss and metrics must be scalars. Received: arrays from {shown(wrong)}.")
        # A graph without a loss leaves the first place empty.
        first = 0 if self._archive.loss is not None else 1
        for place, value in enumerate(measured, start=first):
            self._sums[2 * place] += float(value) * rows
            self._sums[2 * place + 1] += rows
        if trained and self._archive.loss is not None:
            self._losses.append((float(measured[0]), rows))


def _filled_up(batch: Batch, lacking: int) -> Batch:
    """The batch with its last row again, so many times."""

    def filled(arrays: Arrays) -> Arrays:
        if isinstance(arrays, dict):
            return {name: _repeated(array, lacking) for name, array in arrays.items()}
        return _repeated(arrays, lacking)

    targets = None if batch.targets is None else filled(batch.targets)
    return Batch(filled(batch.inputs), targets, batch.weights, batch.rows + lacking)


def _repeated(array: Array, more: int) -> Array:
    """The array with its last row again, so many times."""
    return np.concatenate([array, np.repeat(array[-1:], more, axis=0)])


def _chosen(ports: Mapping[str, Port], arrays: Arrays, count: int, role: str) -> list[Any]:
    """The arrays for these placeholders, in their order; one array without a name is for the only one there is."""
    if not isinstance(arrays, dict):
        if count != 1:
            raise DataError(f"The graph's {role} must be given by name. Expected: {shown(ports)}. Received: one array.")
        return [arrays for _ in ports]
    missing = [slot for slot in ports if slot not in arrays]
    if missing:
        raise DataError(f"The graph's {role} must all be given. Missing: {shown(missing)}. Received: {shown(arrays)}.")
    return [arrays[slot] for slot in ports]


def _fitted(ports: Mapping[str, Port], arrays: Sequence[Any]) -> list[Any]:
    return [port.fit(array) for port, array in zip(ports.values(), arrays, strict=True)]


def _portions(arrays: list[Any], rows: int, network: Network) -> Iterator[list[Any]]:
    """Rows as a graph takes them: a fixed number at a time, the last row again where they do not suffice.

    A single row goes in twice, because graphs that squeeze their outputs would lose the dimension of the rows.
    """
    portion = network.fixed_rows or max(2 if network.by_row else 1, rows)
    for start in range(0, max(1, rows), portion):
        part = [array[start : start + portion] for array in arrays]
        lacking = portion - len(part[0]) if part else 0
        yield [_repeated(each, lacking) for each in part] if lacking else part


def _joined(parts: Sequence[Any], fed: int, rows: int) -> Any:
    """An output without the rows that were fed again."""
    whole = np.array(parts[0]) if len(parts) == 1 else np.concatenate(parts)
    return whole[:rows] if fed > rows and whole.ndim and len(whole) == fed else whole
