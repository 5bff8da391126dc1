"""Evaluators, which measure besides the cost, and Paddle's printers. On the driver."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from keraunos.compat.paddle import config_parser as raw
from keraunos.compat.paddle.trainer_config_helpers.defining import named, names_of
from keraunos.compat.paddle.trainer_config_helpers.layer_output import LayerOutput, a_layer, some_layers

__all__ = [
    "auc_evaluator",
    "chunk_evaluator",
    "classification_error_evaluator",
    "classification_error_printer_evaluator",
    "column_sum_evaluator",
    "ctc_error_evaluator",
    "evaluator_base",
    "gradient_printer_evaluator",
    "maxframe_printer_evaluator",
    "maxid_printer_evaluator",
    "pnpair_evaluator",
    "precision_recall_evaluator",
    "seqtext_printer_evaluator",
    "sum_evaluator",
    "value_printer_evaluator",
]

logger = logging.getLogger(__name__)


def evaluator_base(
    input: LayerOutput | Sequence[LayerOutput],
    type: str,
    label: LayerOutput | None = None,
    weight: LayerOutput | None = None,
    name: str | None = None,
    **arguments: Any,
) -> None:
    """An evaluator of the raw language.

    Args:
        input: what is measured.
        type: the raw type.
        label: the truth.
        weight: of each row.
        name: the evaluator's.
        arguments: the type's own; those that are `None` are left out.
    """
    layers = some_layers(input, f"{type} evaluator")
    for argument, layer in {"label": label, "weight": weight}.items():
        if layer is not None:
            layers.append(a_layer(layer, f"{type} evaluator", argument))
    if type.endswith("printer"):
        logger.info("The evaluator %r prints nothing here: take the lowered Keras model to look at values.", type)
    told = {key: value for key, value in arguments.items() if value is not None}
    raw.Evaluator(name=named(name, f"{type}_evaluator"), type=type, inputs=names_of(layers), **told)


def classification_error_evaluator(
    input: LayerOutput,
    label: LayerOutput,
    name: str | None = None,
    weight: LayerOutput | None = None,
    top_k: int | None = None,
    threshold: float | None = None,
) -> None:
    """The share of wrong answers.

    Args:
        input: probabilities of the classes.
        label: the class.
        name: the evaluator's.
        weight: of each row.
        top_k: an answer is right if the class is among the k first.
        threshold: from which probability on an answer is yes, for answers of one column.
    """
    own = named(name, "classification_error_evaluator")
    told = {"top_k": top_k, "classification_threshold": threshold}
    evaluator_base(input, "classification_error", label, weight, own, **told)


def auc_evaluator(
    input: LayerOutput, label: LayerOutput, name: str | None = None, weight: LayerOutput | None = None
) -> None:
    """The area under the curve of the last column."""
    evaluator_base(input, "last-column-auc", label, weight, named(name, "auc_evaluator"))


def pnpair_evaluator(
    input: LayerOutput,
    label: LayerOutput,
    info: LayerOutput,
    name: str | None = None,
    weight: LayerOutput | None = None,
) -> None:
    """Pairs in the right order by pairs in the wrong one, among rows of the same `info`."""
    layers = [a_layer(input, "pnpair_evaluator"), a_layer(label, "pnpair_evaluator", "label"),
              a_layer(info, "pnpair_evaluator", "info")]  # fmt: skip
    evaluator_base(layers, "pnpair", None, weight, named(name, "pnpair_evaluator"))


def precision_recall_evaluator(
    input: LayerOutput,
    label: LayerOutput,
    positive_label: int | None = None,
    weight: LayerOutput | None = None,
    name: str | None = None,
) -> None:
    """Precision, recall and F1, of one class or of all."""
    own = named(name, "precision_recall_evaluator")
    evaluator_base(input, "precision_recall", label, weight, own, positive_label=positive_label)


def ctc_error_evaluator(input: LayerOutput, label: LayerOutput, name: str | None = None) -> None:
    """The edit distance between the best sequence and the truth."""
    evaluator_base(input, "ctc_edit_distance", label, None, named(name, "ctc_error_evaluator"))


def chunk_evaluator(
    input: LayerOutput,
    label: LayerOutput,
    chunk_scheme: str,
    num_chunk_types: int,
    name: str | None = None,
    excluded_chunk_types: Sequence[int] | None = None,
) -> None:
    """F1 of chunks in a sequence of tags, by one of the schemes IOB, IOE, IOBES and plain."""
    evaluator_base(
        input,
        "chunk",
        label,
        None,
        named(name, "chunk_evaluator"),
        chunk_scheme=chunk_scheme,
        num_chunk_types=num_chunk_types,
        excluded_chunk_types=excluded_chunk_types,
    )


def sum_evaluator(
    input: LayerOutput | Sequence[LayerOutput], name: str | None = None, weight: LayerOutput | None = None
) -> None:
    """The mean over rows of their sums."""
    evaluator_base(input, "sum", None, weight, named(name, "sum_evaluator"))


def column_sum_evaluator(
    input: LayerOutput | Sequence[LayerOutput], name: str | None = None, weight: LayerOutput | None = None
) -> None:
    """The mean over rows of the last column."""
    evaluator_base(input, "last-column-sum", None, weight, named(name, "column_sum_evaluator"))


def value_printer_evaluator(input: LayerOutput | Sequence[LayerOutput], name: str | None = None) -> None:
    """Paddle prints the values of the layers."""
    evaluator_base(input, "value_printer", name=named(name, "value_printer_evaluator"))


def gradient_printer_evaluator(input: LayerOutput | Sequence[LayerOutput], name: str | None = None) -> None:
    """Paddle prints the gradients by the layers."""
    evaluator_base(input, "gradient_printer", name=named(name, "gradient_printer_evaluator"))


def maxid_printer_evaluator(
    input: LayerOutput | Sequence[LayerOutput], num_results: int | None = None, name: str | None = None
) -> None:
    """Paddle prints the places of the largest values of each row."""
    own = named(name, "maxid_printer_evaluator")
    evaluator_base(input, "max_id_printer", name=own, num_results=num_results)


def maxframe_printer_evaluator(
    input: LayerOutput | Sequence[LayerOutput], num_results: int | None = None, name: str | None = None
) -> None:
    """Paddle prints the steps of the largest values of each sequence."""
    own = named(name, "maxframe_printer_evaluator")
    evaluator_base(input, "max_frame_printer", name=own, num_results=num_results)


def seqtext_printer_evaluator(
    input: LayerOutput | Sequence[LayerOutput],
    result_file: str,
    id_input: LayerOutput | None = None,
    dict_file: str | None = None,
    delimited: bool | None = None,
    name: str | None = None,
) -> None:
    """Paddle writes sequences of ids as text."""
    layers = some_layers(input, "seqtext_printer_evaluator")
    if id_input is not None:
        layers = [a_layer(id_input, "seqtext_printer_evaluator", "id_input"), *layers]
    evaluator_base(
        layers,
        "seq_text_printer",
        name=named(name, "seqtext_printer_evaluator"),
        result_file=result_file,
        dict_file=dict_file,
        delimited=delimited,
    )


def classification_error_printer_evaluator(
    input: LayerOutput, label: LayerOutput, threshold: float = 0.5, name: str | None = None
) -> None:
    """Paddle prints which rows are answered wrongly."""
    own = named(name, "classification_error_printer_evaluator")
    evaluator_base(input, "classification_error_printer", label, None, own, classification_threshold=threshold)


def _for_classes(*evaluators: Callable[..., None]) -> None:
    """Marks those that `classification_cost` may be given."""
    for each in evaluators:
        each.for_classification = True  # type: ignore[attr-defined]


_for_classes(classification_error_evaluator, auc_evaluator, precision_recall_evaluator)
