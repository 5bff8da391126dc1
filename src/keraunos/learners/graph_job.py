"""Whether a job asks of a graph what the graph can do. Runs on the driver; needs no TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from keraunos.errors import ColumnError, ModelError
from keraunos.job.columns import Slot
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.training_job import TrainingJob
from keraunos.learners.graph_archive import GraphArchive


def check_graph_job(archive: GraphArchive, job: TrainingJob) -> None:
    """Refuse a job that would fail on the workers."""
    _check_plan(archive, job.exchange)
    _check_slots("features", job.columns.features, archive.inputs)
    _check_slots("labels", job.columns.labels, archive.targets)
    if job.columns.weight is not None or job.schedule.class_weight:
        found = "weights of classes" if job.columns.weight is None else f"the column {job.columns.weight!r}"
        raise ModelError(
            f"A TensorFlow graph weighs its rows itself. Received: {found}. Make the weights an input of the graph, "
            "and multiply by them in the loss."
        )
    if job.schedule.learning_rate is not None:
        raise ModelError(
            "`learningRate` must be left out for a TensorFlow graph, whose optimizer has its own rate. Received: "
            f"{job.schedule.learning_rate!r}. Set it in the graph, or in the rule of the exchange plan."
        )


def _check_plan(archive: GraphArchive, plan: ExchangePlan) -> None:
    if plan.applies_on_workers and archive.gradients is None:
        raise ModelError(
            "The rule 'own' needs the graph's `train_op` and `gradients`, the tensors in whose place it takes the "
            "gradient of all workers. Received: a graph without them. Give them, or let a rule apply gradients, such "
            "as rule='adam'."
        )
    if plan.send == "gradients" and archive.derivatives is None:
        raise ModelError(
            "send='gradients' needs a graph with a gradient. Received: a graph with a `train_op` alone. Give `loss` "
            "without `train_op`, or `train_op` with `gradients`; or let workers take whole steps with send='updates'."
        )
    if plan.send != "gradients" and archive.train_op is None:
        raise ModelError(
            f"send={plan.send!r} needs a graph with a `train_op`, with which workers take whole steps. Received: a "
            "graph with a loss alone. Give `train_op`, or share gradients: send='gradients' and a rule such as 'adam'."
        )


def _check_slots(role: str, slots: Sequence[Slot], placeholders: Mapping[str, str]) -> None:
    names = [slot.name for slot in slots]
    fits = len(names) == len(placeholders) == 1 if names == [None] else set(names) == set(placeholders)
    if not fits:
        raise ColumnError(
            f"The {role} of the job must be those of the graph. Expected: {sorted(placeholders)!r}. "
            f"Received: {names!r}."
        )
