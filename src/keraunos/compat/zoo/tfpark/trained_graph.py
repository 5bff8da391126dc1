"""A graph that a `TFOptimizer` trains: what of it is fed, measured and put back. Runs on the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from keraunos.batch import Array
from keraunos.compat.zoo.bigdl.optim.validation import Loss, ValidationMethod, validation_method
from keraunos.compat.zoo.tfpark.placeholders import check_used, dataset_of, slots_in
from keraunos.compat.zoo.tfpark.result_names import summary_tag, validation_results
from keraunos.compat.zoo.tfpark.structure import flatten
from keraunos.compat.zoo.tfpark.tf_dataset import TFDataset
from keraunos.errors import JobError, ModelError
from keraunos.job.columns import Columns
from keraunos.job.training_job import ModelSource
from keraunos.learners.graph_analysis import closure, written_in
from keraunos.learners.graph_archive import GraphArchive
from keraunos.learners.graph_measures import LABEL, OUTPUT, as_custom_objects
from keraunos.parameters import Layout, Vector


@dataclass(frozen=True)
class Measured:
    """The measures on validation rows: methods that compare an output with a label, and scalars by name.

    With `loss_first` the loss is the first of the scalars, as `Loss`.
    """

    methods: tuple[ValidationMethod, ...] = ()
    output: Any = None
    label: Any = None
    scalars: Mapping[str, Any] = field(default_factory=dict)
    loss_first: bool = False

    @classmethod
    def of(
        cls, outputs: Any, labels: Any, methods: Any, scalars: Mapping[str, Any] | None, loss: Any = None
    ) -> Measured:
        """The measures of `val_outputs`, `val_labels`, `val_method` and `metrics`, and the graph's loss."""
        given = {"val_outputs": outputs, "val_labels": labels, "val_method": methods}
        missing = [name for name, value in given.items() if value is None]
        if 0 < len(missing) < 3:
            raise JobError(
                "`val_outputs`, `val_labels` and `val_method` must be given together. Received: no "
                f"{' and no '.join(missing)}."
            )
        if missing:
            return cls(scalars=dict(scalars or {}))
        chosen = [validation_method(each) for each in (methods if isinstance(methods, (list, tuple)) else [methods])]
        others = tuple(each for each in chosen if not (isinstance(each, Loss) and each.by_default))
        return cls(
            others,
            _single(outputs, "val_outputs"),
            _single(labels, "val_labels"),
            ({"Loss": loss} if len(others) < len(chosen) else {}) | dict(scalars or {}),
            loss_first=chosen[:1] != list(others[:1]),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all results, in their order."""
        names = (*self.by_tag, *self.scalars)
        return tuple(dict.fromkeys(("Loss", *names))) if self.loss_first else names

    @property
    def by_tag(self) -> dict[str, ValidationMethod]:
        """The methods by the names of their results; a second one of a name has a number behind it."""
        found: dict[str, ValidationMethod] = {}
        for method in self.methods:
            same = sum(each.tag == method.tag for each in found.values())
            found[f"{method.tag}_{same}" if same else method.tag] = method
        return found

    @property
    def observed(self) -> dict[str, Any]:
        """The tensors that the methods compare."""
        return {OUTPUT: self.output, LABEL: self.label} if self.methods else {}

    @property
    def tensors(self) -> list[Any]:
        """All tensors that are measured."""
        return [*([self.output, self.label] if self.methods else []), *self.scalars.values()]

    def __bool__(self) -> bool:
        return bool(self.methods or self.scalars)


@dataclass(frozen=True)
class TrainedGraph:
    """A loss, the session with its values, and what feeds it.

    Attributes:
        session: the session that trained values are put into.
        loss: the scalar that is made smaller.
        dataset: the records that feed it.
        fed: the placeholder for each of the dataset's tensors, by name.
        feeds: values of other placeholders in training and in validation, by tensor.
        measured: what is measured on validation rows.
        updates: operations that run with each step; `None` for the collection UPDATE_OPS.
        train_op: the operation that applies gradients, where the graph has its own optimizer.
        gradients: for each variable that it trains, the tensor that it takes as its gradient.
    """

    session: Any
    loss: Any
    dataset: TFDataset
    fed: Mapping[str, Any]
    feeds: Mapping[Any, tuple[Any, Any]] = field(default_factory=dict)
    measured: Measured = field(default_factory=Measured)
    updates: Sequence[Any] | None = None
    train_op: Any = None
    gradients: Mapping[Any, Any] | None = None
    of_keras: bool = False
    session_config: Any = None

    @property
    def applies_itself(self) -> bool:
        """Whether its own `train_op` applies the gradient of all workers."""
        return self.train_op is not None

    @property
    def measures(self) -> bool:
        """Whether there is something to measure on rows."""
        return bool(self.measured)

    @property
    def must_validate(self) -> bool:
        """Whether a validation method was given."""
        return bool(self.measured.methods or self.measured.loss_first)

    def columns(self) -> Columns:
        """Returns the entry of a record for each placeholder."""
        return self.dataset.columns()

    def source(self) -> ModelSource:
        """Returns the graph with its present values, for the workers."""
        from keraunos.learners.graph_source import graph_source

        labels = {slot.name for slot in self.columns().labels}
        own = {} if self.gradients is None else self.gradients
        return graph_source(
            self.session,
            loss=self.loss,
            inputs={name: tensor for name, tensor in self.fed.items() if name not in labels},
            targets={name: tensor for name, tensor in self.fed.items() if name in labels},
            feeds=dict(self.feeds),
            metrics=dict(self.measured.scalars),
            updates=self.updates,
            train_op=self.train_op,
            variables=list(own) or None,
            gradients=list(own.values()) or None,
            observed={} if self.driver_measure else self.measured.observed,
            session_config=self.session_config,
        )

    def custom_objects(self) -> dict[str, Any]:
        """Returns the validation methods."""
        return {} if self.driver_measure else as_custom_objects(self.measured.by_tag)

    def scores(self, logs: Mapping[str, float]) -> dict[str, float]:
        """Returns the validation methods' results, then the scalars'."""
        found = validation_results(logs)
        return {name: found.get(name, float("nan")) for name in self.measured.names}

    def tag(self, name: str) -> str:
        """BigDL's name for a metric of a Keras model; validation methods have theirs."""
        return summary_tag(name) if self.of_keras else name

    @property
    def driver_measure(self) -> Callable[[Sequence[Array]], dict[str, float]] | None:
        """Only where a validation method needs rows in the order of the records, which workers do not keep."""
        return self._measure if any(method.in_order for method in self.measured.methods) else None

    def take(self, archive: bytes) -> None:
        """Put trained values into the session."""
        from keraunos.learners.graph_source import values_into_session

        values_into_session(self.session, archive)

    def count_on(self, steps: int) -> None:
        """Advance the graph's global step, where `train_op` does that on the workers."""
        import tensorflow as tf

        counter = None if self.train_op is None else tf.compat.v1.train.get_global_step(self.session.graph)
        if counter is None or counter.op.name not in written_in(closure([getattr(self.train_op, "op", self.train_op)])):
            return
        # The value that it is initialized with is given another one, so that the graph does not grow.
        now = self.session.run(counter)
        self.session.run(counter.initializer, {counter.initializer.inputs[1]: now + steps})

    def take_vector(self, source: ModelSource, vector: Vector) -> None:
        """Put the values of a vector, which lie as in `source`, into the session."""
        self.take(GraphArchive.from_bytes(source.archive).with_vector(vector).to_bytes())

    def layout(self, source: ModelSource) -> Layout:
        """How the values of `source` lie in a vector."""
        return GraphArchive.from_bytes(source.archive).layout

    def _measure(self, arrays: Sequence[Array]) -> dict[str, float]:
        """The measures on rows, one array per tensor of the dataset, with the session's current values."""
        from keraunos.learners.graph_network import Port

        measured = self.measured
        states: dict[str, list[Any]] = {tag: [] for tag in measured.by_tag}
        sums = dict.fromkeys(measured.scalars, 0.0)
        counted = 0
        for batch, rows in self._batches(arrays):
            feed = {self.fed[name]: Port(self.fed[name]).fit(array) for name, array in batch.items()}
            feed |= {tensor: value for tensor, (_, value) in self.feeds.items()}
            found = self.session.run(measured.tensors, feed)
            if measured.methods:
                output, label = (each[:rows] for each in found[:2])
                for tag, method in measured.by_tag.items():
                    states[tag].append(method.state(output, label))
            for name, value in zip(sums, found[-len(sums) :] if sums else [], strict=True):
                sums[name] += float(value) * rows
            counted += rows
        results = {tag: method.result(method.merge(states[tag])) for tag, method in measured.by_tag.items()}
        results |= {name: total / counted if counted else float("nan") for name, total in sums.items()}
        return {name: results[name] for name in measured.names}

    def _batches(self, arrays: Sequence[Array]) -> Iterator[tuple[dict[str, Array], int]]:
        """Yields rows in portions, and how many of each count.

        The last is filled up where the graph has a fixed batch.
        """
        dataset = self.dataset
        size = dataset.rows_predicted_together
        total = len(arrays[0])
        for start in range(0, total, size):
            batch = {name: array[start : start + size] for name, array in zip(dataset.input_names, arrays, strict=True)}
            rows = min(size, total - start)
            if rows < size and dataset.hard_code_batch_size:
                if self.measured.scalars:
                    # A scalar of a batch that was filled up would count some rows twice.
                    return
                batch = {name: np.resize(array, (size, *array.shape[1:])) for name, array in batch.items()}
            yield batch, rows


def found_graph(
    loss: Any,
    session: Any,
    *,
    measured: Measured,
    dataset: TFDataset | None,
    inputs: Any,
    tensor_with_value: Mapping[Any, Any] | None,
    session_config: Any,
    updates: Sequence[Any] | None = None,
    train_op: Any = None,
    gradients: Mapping[Any, Any] | None = None,
) -> TrainedGraph:
    """The graph of a loss, with its dataset: the one that is given, or the one whose tensors the loss depends on."""
    feeds = {tensor: _both(tensor, value) for tensor, value in (tensor_with_value or {}).items()}
    asked = [loss, *measured.tensors]
    if inputs is None:
        owner = dataset_of([loss], "The loss", aside=feeds)
        if dataset is not None and dataset is not owner:
            raise JobError("`dataset` must be the one whose tensors the loss depends on. Received: another one.")
        check_used(owner, asked, "The loss, or what is validated,")
        fed = slots_in(loss.graph, owner)
    else:
        if dataset is None:
            raise JobError("`inputs` must come with `dataset`, which feeds them. Received: no dataset.")
        owner, fed = dataset, paired(inputs, dataset)
    check_trainable(owner)
    check_session_config(session_config)
    if session is None:
        session = new_session(loss.graph, session_config)
    return TrainedGraph(
        session, loss, owner, fed, feeds, measured, updates, train_op, gradients, session_config=session_config
    )


def new_session(graph: Any, session_config: Any = None) -> Any:
    """Returns a session of the graph with its variables and tables initialised."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with graph.as_default():
        session = v1.Session(graph=graph, config=session_config)
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer(), v1.tables_initializer()])
    return session


def check_session_config(session_config: Any) -> None:
    """Refuse what is no configuration of a session."""
    if session_config is not None and not hasattr(session_config, "intra_op_parallelism_threads"):
        raise JobError(f"`session_config` must be a tf.ConfigProto. Received: {session_config!r}.")


def check_trainable(dataset: TFDataset) -> None:
    """Refuse a dataset that was made for predictions, or whose order training cannot keep."""
    if dataset.has_batch and dataset.batch_size <= 0:
        raise JobError(
            "The dataset of a training must have `batch_size`, the rows of a step over all workers. Received: "
            f"batch_per_thread={dataset.batch_per_thread!r}, which is for predictions. Set `batch_size` instead."
        )
    if dataset.sequential_order:
        raise JobError(
            "`sequential_order` must be False for training: workers put their rows in an order by content, so that a "
            "run can be repeated. Received: True. With shuffle=False that order is the same in every epoch."
        )


def paired(inputs: Any, dataset: TFDataset) -> dict[str, Any]:
    """Returns the placeholders that the dataset's tensors are fed to, by name."""
    tensors = flatten(inputs)
    names = dataset.input_names
    if len(tensors) != len(names):
        raise ModelError(
            f"`inputs` must be one placeholder for each of the dataset's tensors {', '.join(map(repr, names))}. "
            f"Received: {len(tensors)} of them."
        )
    return dict(zip(names, tensors, strict=True))


def _single(tensors: Any, argument: str) -> Any:
    several = tensors if isinstance(tensors, (list, tuple)) else [tensors]
    if len(several) != 1:
        raise JobError(
            f"`{argument}` must be one tensor, or a list of one, because a validation method compares one output with "
            f"one label. Received: {len(several)}. Join them in the graph, or measure a scalar with `metrics`."
        )
    return several[0]


def _both(tensor: Any, value: Any) -> tuple[Any, Any]:
    """Returns the values of a placeholder in training and in validation."""
    if not isinstance(value, (tuple, list)):
        return value, value
    if len(value) != 2:
        raise JobError(
            f"`tensor_with_value` must give {tensor.name!r} one value, or one for training and one for validation. "
            f"Received: {value!r}."
        )
    return value[0], value[1]
