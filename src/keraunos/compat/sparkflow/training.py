"""A training as SparkFlow means it, from the graph's JSON to a graph with trained values. Runs on the driver."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from keraunos.compat.sparkflow import metagraph
from keraunos.compat.sparkflow.graph_model import GraphModel, port_of
from keraunos.compat.sparkflow.losses import IterationLosses, LossCallback
from keraunos.compat.sparkflow.params import DEFAULT_OUTPUT
from keraunos.compat.sparkflow.translate import Training, job_of
from keraunos.job.columns import Columns
from keraunos.job.training_job import ModelSource
from keraunos.launch import spark as launch
from keraunos.launch.rule_memory import RuleMemory
from keraunos.learners.graph_archive import GraphArchive, Value
from keraunos.learners.graph_source import graph_source
from keraunos.ml.signature import Port

logger = logging.getLogger(__name__)

# Returns the rows of a turn: unchanged for the first turn, redistributed for later ones.
Rows = Callable[[int], Any]


@dataclass(frozen=True, eq=False)
class PreparedGraph:
    """A graph that is ready to train, and its initial values.

    Attributes:
        source: the graph as workers take it.
        values: what the variables hold before training, the trainable ones first.
        trainable: how many those are.
        features: what the placeholder of the features takes, and `labels` that of the labels.
    """

    source: ModelSource
    values: dict[str, Value]
    trainable: int
    features: Port
    labels: Port | None


def prepare(training: Training) -> PreparedGraph:
    """Load the graph, check it, and initialize its variables."""
    graph = metagraph.imported(training.graph)
    features = metagraph.tensor(graph, training.tf_input, "tfInput")
    labels = None if training.tf_label is None else metagraph.tensor(graph, training.tf_label, "tfLabel")
    output = _output(graph, training.tf_output)
    if training.tf_dropout is not None:
        metagraph.tensor(graph, training.tf_dropout, "tfDropout")
    loss = metagraph.loss_of(graph)
    named = {"tfInput": training.tf_input, "tfLabel": training.tf_label}
    metagraph.check_fed(loss, named, training.tf_dropout)
    with metagraph.initialized(graph) as session:
        source = graph_source(
            session, loss=loss, inputs={"input": features}, targets={} if labels is None else {"label": labels}
        )
        trainable, others = metagraph.variables(graph)
        needed = set() if output is None else metagraph.needed_variables([output], [training.tf_input])
        needed |= GraphArchive.from_bytes(source.archive).values().keys()
        values = metagraph.values_of(session, [*trainable, *(each for each in others if each.name in needed)])
    return PreparedGraph(
        source=source,
        values=values,
        trainable=len(trainable),
        features=port_of("input", features),
        labels=None if labels is None else port_of("label", labels),
    )


def train(
    training: Training,
    prepared: PreparedGraph,
    columns: Columns,
    rows: Rows,
    workers: int,
    listeners: Sequence[LossCallback] = (),
) -> GraphModel:
    """Train for all turns; the parameters and the optimizer's state continue from one turn to the next."""
    source = prepared.source
    memory = RuleMemory() if training.partition_shuffles > 1 else None
    for turn in range(training.partition_shuffles):
        job = job_of(training, source, columns, workers, turn)
        hooks = [IterationLosses(job.schedule, workers, listeners)] if listeners else []
        result = launch.fit(job, rows(turn), hooks=hooks, verbose=0, host=training.host, memory=memory)
        source = replace(source, archive=result.archive)
    return trained(training, prepared, source.archive)


def trained(training: Training, prepared: PreparedGraph, archive: bytes) -> GraphModel:
    """Returns the graph with the trained values, or with the initial values if nothing was trained."""
    return GraphModel(training.graph, prepared.values | GraphArchive.from_bytes(archive).values())


def _output(graph: Any, name: str | None) -> Any:
    """Returns the tensor that will predict; a graph may lack the default one, since it can be named later."""
    if name == DEFAULT_OUTPUT and not metagraph.has_tensor(graph, name):
        logger.warning(
            "The graph has no %r, which is the default of tfOutput. Name the tensor that predicts before `transform`.",
            name,
        )
        return None
    return None if name is None else metagraph.tensor(graph, name, "tfOutput")
