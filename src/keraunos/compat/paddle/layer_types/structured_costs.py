"""Costs with their own structure: sequences of labels, many classes. Runs on the driver."""

from __future__ import annotations

from typing import Any

from keraunos.compat.paddle.layer_types.draft import Draft
from keraunos.compat.paddle.layer_types.layer_type import REQUIRED, layer_type

_CLASSES: dict[str, Any] = {"inputs": (2, None), "bias": True, "is_cost": True}


@layer_type("crf", "CRFLayer", inputs=(2, 3), is_cost=True, positional=("name", "size", "inputs", "coeff"))
def crf(draft: Draft) -> None:
    """Sequences of labels by how each follows the one before; a third input weighs the sequences."""
    _transitions(draft)
    if len(draft.feeding) == 3:
        draft.check(
            draft.input_size(2) == 1, "its third input is the weight of a sequence", f"size {draft.input_size(2)}"
        )


@layer_type("crf_decoding", "CRFDecodingLayer", inputs=(1, 2), positional=("name", "size", "inputs"))
def crf_decoding(draft: Draft) -> None:
    """The likeliest labels; with a second input, where they differ from it."""
    _transitions(draft)


@layer_type(
    "ctc",
    "CTCLayer",
    inputs=(2, 2),
    is_cost=True,
    attributes={"norm_by_times": False},
    positional=("name", "size", "inputs", "norm_by_times"),
)
def ctc(draft: Draft) -> None:
    """Labels without a place in the sequence; its input is a softmax over the labels and, as the last, the blank."""
    _alignable(draft)


@layer_type(
    "warp_ctc",
    "WarpCTCLayer",
    inputs=(2, 2),
    is_cost=True,
    attributes={"blank": 0, "norm_by_times": False},
    positional=("name", "size", "inputs", "blank", "norm_by_times"),
)
def warp_ctc(draft: Draft) -> None:
    """The same for an input without a softmax; `blank` is the number of the blank."""
    _alignable(draft)
    blank = draft.count("blank")
    draft.check(blank < draft.size, "`blank` must be one of the classes", f"blank={blank}, size {draft.size}")
    source = draft.feeding[0]
    draft.check(
        source.active_type in ("", "linear"),
        "its input must not have an activation",
        f"{source.name!r} with active_type={source.active_type!r}",
        "Use 'ctc' for the output of a softmax",
    )


@layer_type(
    "nce",
    "NCELayer",
    attributes={"num_classes": REQUIRED, "num_neg_samples": 10, "neg_sampling_dist": []},
    positional=("name", "num_classes", "inputs", "num_neg_samples", "neg_sampling_dist", "bias"),
    **_CLASSES,
)
def nce(draft: Draft) -> None:
    """The label against a few classes that are drawn; a last input of one number per row weighs the rows."""
    classes = draft.count("num_classes", least=2)
    draft.count("num_neg_samples", least=1)
    drawn = draft.attributes["neg_sampling_dist"] = [float(each) for each in draft.attributes["neg_sampling_dist"]]
    draft.check(
        not drawn or (len(drawn) == classes and abs(sum(drawn) - 1) < 1e-5),
        "`neg_sampling_dist` has a probability for each class, which add up to 1",
        f"{len(drawn)} numbers with sum {sum(drawn)} for {classes} classes",
    )
    label = len(draft.told) - 1
    draft.check(
        draft.feeding[label].type == "data",
        "its last input must be a data layer",
        f"{draft.feeding[label].name!r} of type {draft.feeding[label].type!r}",
    )
    if label > 1 and draft.input_size(label) == 1 and draft.feeding[label - 1].type == "data":
        label -= 1
    _class_weights(draft, label, classes)


@layer_type(
    "hsigmoid",
    "HierarchicalSigmoidLayer",
    attributes={"num_classes": REQUIRED},
    positional=("name", "num_classes", "inputs", "bias"),
    **_CLASSES,
)
def hsigmoid(draft: Draft) -> None:
    """The label as a way through a binary tree of the classes; the last input is the label."""
    classes = draft.count("num_classes", least=2)
    _class_weights(draft, len(draft.told) - 1, classes - 1)


def _class_weights(draft: Draft, inputs: int, rows: int) -> None:
    for at in range(inputs):
        draft.weight(at, rows * draft.input_size(at), (rows, draft.input_size(at)))
    draft.add_bias(rows)
    draft.set_size(1)


def _transitions(draft: Draft) -> None:
    """Rows of the parameter: how a label likes to be the first, to be the last, and to follow each label."""
    size = draft.size or draft.input_size(0)
    draft.check(
        draft.input_size(0) == size,
        "its first input must have a number for each label",
        f"an input of {draft.input_size(0)}, size {size}",
    )
    draft.set_size(size)
    draft.weight(0, size * (size + 2), (size + 2, size))


def _alignable(draft: Draft) -> None:
    size = draft.size or draft.input_size(0)
    draft.check(
        draft.input_size(0) == size,
        "its input must have a number for each class and one for the blank",
        f"an input of {draft.input_size(0)}, size {size}",
        "The size is the number of classes plus 1",
    )
    draft.set_size(size)
