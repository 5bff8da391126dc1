"""Layers of sequences without a state. Runs on the driver."""

from __future__ import annotations

from typing import Any

from keraunos.compat.paddle.layer_types.draft import Draft
from keraunos.compat.paddle.layer_types.layer_type import layer_type

_LEVELS = ("non-seq", "seq")
_SEQUENCE: dict[str, Any] = {"bias": False, "active_type": "linear"}
_POOLED: dict[str, Any] = {"trans_type": "non-seq", "stride": -1}


@layer_type("max", "MaxLayer", attributes={**_POOLED, "output_max_index": False}, **_SEQUENCE)
def seq_max(draft: Draft) -> None:
    """The largest number of each column over the steps."""
    _pooled(draft)


@layer_type("average", "AverageLayer", attributes={**_POOLED, "average_strategy": "average"}, **_SEQUENCE)
def average(draft: Draft) -> None:
    """The mean of each column over the steps, their sum, or their sum by the root of their number."""
    draft.choice("average_strategy", draft.attributes["average_strategy"], ("average", "sum", "squarerootn"))
    _pooled(draft)


@layer_type("seqlastins", "SequenceLastInstanceLayer", attributes={**_POOLED, "select_first": False}, **_SEQUENCE)
def seqlastins(draft: Draft) -> None:
    """The last step."""
    _pooled(draft)


@layer_type("seqfirstins", "SequenceFirstInstanceLayer", attributes={**_POOLED, "select_first": True}, **_SEQUENCE)
def seqfirstins(draft: Draft) -> None:
    """The first step; to Paddle a `seqlastins` that selects the first."""
    draft.check(
        bool(draft.attributes["select_first"]),
        "it selects the first step",
        "select_first=False",
        "Write type='seqlastins'",
    )
    draft.type = "seqlastins"
    _pooled(draft)


@layer_type("seqconcat", "SequenceConcatLayer", inputs=(2, 2), **_SEQUENCE)
def seqconcat(draft: Draft) -> None:
    """The steps of one sequence behind those of another."""
    for at in (0, 1):
        draft.set_size(draft.input_size(at))
    draft.add_bias(draft.size)


@layer_type("seqreshape", "SequenceReshapeLayer", positional=("name", "size", "inputs", "bias"), **_SEQUENCE)
def seqreshape(draft: Draft) -> None:
    """The numbers of a sequence in steps of another width."""
    draft.add_bias(draft.need_size())


@layer_type("subseq", "SubSequenceLayer", inputs=(3, 3), **_SEQUENCE)
def subseq(draft: Draft) -> None:
    """A part of a sequence: the second input is its start, the third its length."""
    draft.set_size(draft.input_size(0))
    draft.add_bias(draft.size)


@layer_type("expand", "ExpandLayer", inputs=(2, 2), attributes={"trans_type": "non-seq"}, **_SEQUENCE)
def expand(draft: Draft) -> None:
    """The first input at each step of the second."""
    draft.choice("trans_type", draft.attributes["trans_type"], _LEVELS)
    draft.set_size(draft.input_size(0))
    draft.add_bias(draft.size)


@layer_type("get_output", "GetOutputLayer", positional=("name", "size", "inputs"))
def get_output(draft: Draft) -> None:
    """Another output of a layer than the first."""
    told: Any = draft.told[0]
    draft.check(
        bool(getattr(told, "input_layer_argument", None)),
        "its input must say which output is meant",
        "no `input_layer_argument`",
        "Write Input(…, input_layer_argument='state')",
    )
    draft.set_size(draft.size or draft.input_size(0))


def _pooled(draft: Draft) -> None:
    level, stride = draft.attributes["trans_type"], draft.attributes["stride"]
    draft.choice("trans_type", level, _LEVELS)
    draft.check(
        stride == -1 or (stride > 0 and level == "non-seq"),
        "`stride` must be -1, or above 0 for a sequence without inner ones",
        f"stride={stride}, trans_type={level!r}",
    )
    draft.attributes["seq_pool_stride"] = draft.attributes.pop("stride")
    draft.set_size(draft.input_size(0))
    draft.add_bias(draft.size)
