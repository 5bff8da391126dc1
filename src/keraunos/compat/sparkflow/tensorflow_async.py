"""SparkFlow's `tensorflow_async`: a TensorFlow graph as a spark.ml Estimator, and its Model. Runs on the driver."""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Self

from pyspark.ml import Estimator, Model
from pyspark.ml.util import MLReadable, MLWritable
from pyspark.sql import functions as sf

from keraunos.compat.sparkflow.graph_model import (
    GRAPH_FILE,
    GraphModel,
    graph_from_bytes,
    graph_to_bytes,
)
from keraunos.compat.sparkflow.losses import print_loss
from keraunos.compat.sparkflow.ml_util import convert_json_to_weights, convert_weights_to_json
from keraunos.compat.sparkflow.optimizers import read_options, rule_of
from keraunos.compat.sparkflow.params import GraphTrainingParams, HasGraphServing, text
from keraunos.compat.sparkflow.translate import DEFAULT_PORTS, Training, check_supervision, job_of, workers_of
from keraunos.errors import ColumnError, ModelError
from keraunos.job.columns import Columns, Slot
from keraunos.job.rule_spec import RuleSpec
from keraunos.launch.kept_rows import kept
from keraunos.ml.declaration import readable_param
from keraunos.ml.fit_plan import FitPlan
from keraunos.ml.inference import Serving
from keraunos.ml.persistence import Parts, PartsReader, PartsWriter
from keraunos.ml.rendering import NumberColumn, VectorColumn
from keraunos.ml.schema import find_slots
from keraunos.ml.serving import is_case_sensitive, with_predictions
from keraunos.ml.signature import Port
from keraunos.session.registry import session_of
from keraunos.session.session import Session

_PREDICTED_AT_ONCE = 1024


def build_optimizer(optimizer_name: str, learning_rate: float, optimizer_options: Mapping[str, Any] | None) -> RuleSpec:
    """Returns the optimizer on the parameter server, for HogwildSparkModel.

    SparkFlow returned one of TensorFlow here.
    """
    return rule_of(optimizer_name, learning_rate, optimizer_options)


class SparkAsyncDLModel(Model, HasGraphServing, MLReadable, MLWritable):  # type: ignore[misc]  # pyspark is used untyped
    """A graph with trained values as a spark.ml Transformer."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"inputCol": "encoded", "tfInput": None, "tfOutput": None}
    _OUTSIDE_OF_PARAMS: ClassVar[tuple[str, ...]] = ("modelJson", "modelWeights")

    modelJson, getModelJson = readable_param(
        "The TensorFlow graph as JSON, as graph_utils.build_graph gives it.", text("modelJson"), default=None
    )
    modelWeights, getModelWeights = readable_param(
        "The values of the graph's variables as JSON, in nested lists: those of the trainable ones, or of all with the "
        "trainable ones first.",
        text("modelWeights"),
        default=None,
    )

    def __init__(self, **params: Any) -> None:
        super().__init__()
        self._trained: GraphModel | None = None
        self._live: dict[str, Any] = {}
        self._lock = threading.RLock()
        self.setParams(**params)

    def holding(self, model: GraphModel) -> Self:
        """Returns this Transformer with a graph and its values."""
        self._trained = model
        self._live = {}
        return self

    def setParams(self, **params: Any) -> Self:
        """Set any of the Params by name; `None` leaves one unchanged."""
        super().setParams(**params)
        self._live = {}
        return self

    def getOrDefault(self, param: Any) -> Any:
        """Returns the value of a Param.

        The graph and the weights of a fitted model are turned into JSON when asked for.
        """
        name = param if isinstance(param, str) else param.name
        if name in self._OUTSIDE_OF_PARAMS and self._trained is not None and not self.isSet(name):
            return self._trained.graph if name == "modelJson" else _weights_of(self._trained)
        return super().getOrDefault(param)

    def copy(self, extra: Mapping[Any, Any] | None = None) -> Self:
        """Returns a copy with other Params; the trained values are shared, since they never change."""
        copied: Self = super().copy(None if extra is None else dict(extra))
        copied._live = {}
        return copied

    def write(self) -> PartsWriter:
        """Returns a writer that saves to any Hadoop path."""
        return PartsWriter(self)

    @classmethod
    def read(cls) -> PartsReader[Self]:
        """Returns a reader of what `write` saved."""
        return PartsReader(cls)

    def _transform(self, dataset: Any) -> Any:
        session = dataset.sparkSession
        slots, specs = find_slots(
            dataset.schema, self.getInputCol(), "inputCol", case_sensitive=is_case_sensitive(session)
        )
        source, given, output = self._source()
        _check_width(slots[0], specs[0].shape, given, "inputCol", "tfInput")
        one_number = output.shape in ((), (1,))
        column = self.getPredictionCol()
        serving = Serving(
            key=hashlib.sha256(source.archive).hexdigest(),
            backend=source.backend,
            floatx=source.floatx,
            slots=slots,
            columns=slots[0].columns,
            inputs=(),
            batch_rows=_PREDICTED_AT_ONCE,
            rendering=NumberColumn(column) if one_number else VectorColumn(column),
            format=source.format,
        )
        return with_predictions(dataset, serving, self._broadcast(session_of(session), source.archive), {})

    def _model(self) -> GraphModel:
        """Returns the graph and its values, from the fit or from the two Params."""
        with self._lock:
            if self._trained is not None and not self.isSet("modelJson") and not self.isSet("modelWeights"):
                return self._trained
            if "model" not in self._live:
                graph, weights = self.getModelJson(), self.getModelWeights()
                if graph is None or weights is None:
                    raise ModelError(
                        "`modelJson` and `modelWeights` must be set before `transform`. Received: "
                        f"{'a graph' if graph else 'neither'} {'without weights' if graph else 'of them'}. Fit a "
                        "SparkAsyncDL, or use tensorflow_model_loader.load_tensorflow_model."
                    )
                self._live["model"] = GraphModel.of_weights(graph, convert_json_to_weights(weights))
            model: GraphModel = self._live["model"]
            return model

    def _source(self) -> Any:
        """Returns the model for prediction on workers; created once per set of tensors."""
        given, output, dropout = self.getTfInput(), self.getTfOutput(), self.getTfDropout()
        if given is None or output is None:
            missing = "tfInput" if given is None else "tfOutput"
            raise ModelError(
                f"`{missing}` must be set before `transform`. Expected: the name of a tensor. Received: None."
            )
        names = (given, output, dropout, self.getToKeepDropout())
        with self._lock:
            if self._live.get("names") != names:
                self._live = {**self._live, "names": names, "source": self._model().source(*names), "application": None}
            return self._live["source"]

    def _broadcast(self, session: Session, archive: bytes) -> Any:
        """Returns the archive on its way to the workers, once for each Spark application."""
        with self._lock:
            if self._live.get("application") is not session.application:
                self._live["application"] = session.application
                self._live["broadcast"] = session.broadcast(archive)
            return self._live["broadcast"]

    def _to_parts(self) -> Parts:
        return Parts(self._model().to_files())

    @classmethod
    def _from_parts(cls, parts: Parts, custom_objects: Mapping[str, Any]) -> Self:  # noqa: ARG003 - as others do
        return cls().holding(GraphModel.from_files(parts.files))


class SparkAsyncDL(Estimator, GraphTrainingParams, MLReadable, MLWritable):  # type: ignore[misc]  # pyspark is used untyped
    """Trains a TensorFlow graph on a DataFrame, asynchronously; `explainParams()` describes every Param."""

    _OUTSIDE_OF_PARAMS: ClassVar[tuple[str, ...]] = ("tensorflowGraph",)

    def __init__(self, **params: Any) -> None:
        super().__init__()
        self.setParams(**params)

    def write(self) -> PartsWriter:
        """Returns a writer that saves to any Hadoop path."""
        return PartsWriter(self)

    @classmethod
    def read(cls) -> PartsReader[Self]:
        """Returns a reader of what `write` saved."""
        return PartsReader(cls)

    def _training(self) -> Training:
        """Returns the Params as a training."""
        options = self.getOptimizerOptions()
        named = self.getTfOptimizer()
        # SparkFlow's own default is for optimizers without options; with some, TensorFlow's goes before it.
        rate = self.getTfLearningRate() if options is None or self.isSet("tfLearningRate") else None
        rule = rule_of(named, rate, None if options is None else read_options(options))
        port = self.getPort()
        return Training(
            graph=self.getTensorflowGraph(),
            tf_input=self.getTfInput() or "",
            tf_label=self.getTfLabel(),
            rule=rule,
            iters=self.getIters(),
            mini_batch=self.getMiniBatchSize(),
            mini_stochastic_iters=self.getMiniStochasticIters(),
            acquire_lock=self.getAcquireLock(),
            shuffle=self.getShufflePerIter(),
            partition_shuffles=self.getPartitionShuffles(),
            ports=(port, port) if self.isSet("port") else DEFAULT_PORTS,
            tf_output=self.getTfOutput(),
            tf_dropout=self.getTfDropout(),
        )

    def plan_fit(self, dataset: Any, workers: int | None = None) -> FitPlan:
        """Returns the plan of `fit`, for a search; `workers` in place of as many as `partitions` allows.

        All turns of `partitionShuffles` are run as one: a search trains that many times the iterations without dealing
        out the rows anew.
        """
        from keraunos.compat.sparkflow.training import prepare, trained

        training, prepared, columns = self._prepared(dataset, prepare)
        training = replace(training, iters=training.iters * training.partition_shuffles, partition_shuffles=1)
        if workers is None:
            session = session_of(dataset)
            workers = workers_of(self.getPartitions(), session.partitions_of(dataset), session.slots())
        return FitPlan(
            job=job_of(training, prepared.source, columns, workers),
            rows=dataset,
            finish=lambda result: self._fitted(trained(training, prepared, result.archive)),
        )

    def _fit(self, dataset: Any) -> SparkAsyncDLModel:
        from keraunos.compat.sparkflow.training import prepare, train

        training, prepared, columns = self._prepared(dataset, prepare)
        chosen = dataset.select(*(sf.col(f"`{name.replace('`', '``')}`") for name in columns.names))
        session = session_of(chosen)
        partitions = session.partitions_of(chosen)
        workers = workers_of(self.getPartitions(), partitions, session.slots())
        listeners = [print_loss] if self.getVerbose() > 0 else []
        with _turns(chosen, workers, partitions, training.partition_shuffles) as rows:
            return self._fitted(train(training, prepared, columns, rows, workers, listeners))

    def _prepared(self, dataset: Any, prepare: Any) -> tuple[Training, Any, Columns]:
        training = self._training()
        check_supervision({"labelCol": self._get("labelCol"), "tfLabel": training.tf_label})
        prepared = prepare(training)
        return training, prepared, self._columns(dataset, prepared.features, prepared.labels)

    def _fitted(self, model: GraphModel) -> SparkAsyncDLModel:
        fitted = SparkAsyncDLModel().holding(model)._resetUid(self.uid)
        return self._copyValues(fitted)  # type: ignore[no-any-return]  # spark.ml's own copying

    def _columns(self, dataset: Any, features: Port, labels: Port | None) -> Columns:
        sensitive = is_case_sensitive(dataset.sparkSession)
        found, specs = find_slots(dataset.schema, self.getInputCol(), "inputCol", case_sensitive=sensitive)
        _check_width(found[0], specs[0].shape, features, "inputCol", "tfInput")
        if labels is None:
            return Columns(found)
        targets, specs = find_slots(dataset.schema, self.getLabelCol(), "labelCol", case_sensitive=sensitive)
        _check_width(targets[0], specs[0].shape, labels, "labelCol", "tfLabel")
        return Columns(found, targets)

    def _to_parts(self) -> Parts:
        graph = self.getTensorflowGraph()
        return Parts({GRAPH_FILE: graph_to_bytes(graph)} if graph else {})

    @classmethod
    def _from_parts(cls, parts: Parts, custom_objects: Mapping[str, Any]) -> Self:  # noqa: ARG003 - as others do
        estimator = cls()
        if GRAPH_FILE in parts.files:
            from keraunos.compat.sparkflow import metagraph
            from keraunos.learners.graph_trust import check_graph

            graph = graph_from_bytes(parts.files[GRAPH_FILE])
            check_graph(metagraph.parsed(graph).graph_def, "the saved graph")
            estimator.setParams(tensorflowGraph=graph)
        return estimator


@contextmanager
def _turns(dataframe: Any, workers: int, partitions: int | None, turns: int) -> Iterator[Any]:
    """Returns the rows of each turn: unchanged in the first, then redistributed."""
    fewer = partitions is not None and workers < partitions
    first = dataframe.coalesce(workers) if fewer else dataframe
    if turns == 1:
        yield lambda _: first
        return
    # Every turn reads all rows.
    with kept(first):
        yield lambda turn: first if turn == 0 else first.repartition(workers, sf.rand(turn))


def _weights_of(model: GraphModel) -> str:
    return convert_weights_to_json(list(model.values.values()))


def _check_width(slot: Slot, found: tuple[int | None, ...], port: Port, column: str, tensor: str) -> None:
    """Raises an error if the number of elements, as far as the schema shows it, differs from the placeholder's."""
    if None in found or None in port.shape or math.prod(found) == math.prod(port.shape):  # type: ignore[arg-type]
        return
    raise ColumnError(
        f"`{column}` does not fit `{tensor}`. Expected rows of {math.prod(port.shape)} elements. "  # type: ignore[arg-type]
        f"Received: column {slot.columns[0]!r} with rows of {math.prod(found)}."  # type: ignore[arg-type]
    )
