"""Layers that go through a sequence with a state. Runs on the driver."""

from __future__ import annotations

from typing import Any

from keraunos.compat.paddle.layer_types.draft import ACTIVATIONS, Draft
from keraunos.compat.paddle.layer_types.layer_type import REQUIRED, layer_type

_GATES: dict[str, Any] = {"reversed": False, "active_gate_type": "sigmoid"}


@layer_type(
    "recurrent", "RecurrentLayer", bias=True, attributes={"reversed": False}, positional=("name", "inputs", "reversed")
)
def recurrent(draft: Draft) -> None:
    """Each step plus a matrix on what the step before returned."""
    size = draft.input_size(0)
    draft.set_size(size)
    draft.weight(0, size * size, (size, size))
    draft.add_bias(size)


@layer_type(
    "lstmemory",
    "LstmLayer",
    bias=True,
    attributes={**_GATES, "active_state_type": "sigmoid"},
    positional=("name", "inputs", "reversed", "active_gate_type", "active_state_type", "bias"),
)
def lstmemory(draft: Draft) -> None:
    """Long short-term memory: candidate, input, forget and output gate in; the bias also holds three peepholes."""
    size = _part(draft, 4)
    draft.weight(0, size * size * 4, (size, size, 4))
    draft.add_bias(size * 7)


@layer_type(
    "gated_recurrent",
    "GatedRecurrentLayer",
    bias=True,
    attributes=_GATES,
    positional=("name", "inputs", "reversed", "active_gate_type", "bias"),
)
def gated_recurrent(draft: Draft) -> None:
    """Gated recurrent unit: update gate, reset gate and candidate in."""
    size = _part(draft, 3)
    draft.weight(0, size * size * 3, (size, size * 3))
    draft.add_bias(size * 3)


@layer_type(
    "mdlstmemory",
    "MDLstmLayer",
    bias=True,
    attributes={"directions": REQUIRED, "active_gate_type": "sigmoid", "active_state_type": "sigmoid"},
    positional=("name", "inputs", "directions"),
)
def mdlstmemory(draft: Draft) -> None:
    """Long short-term memory over several dimensions, each with a direction and a forget gate of its own."""
    directions = draft.attributes["directions"]
    draft.check(
        isinstance(directions, list | tuple) and len(directions) > 0,
        "`directions` has a boolean a dimension",
        repr(directions),
    )
    draft.attributes["directions"] = [bool(each) for each in directions]
    blocks = 3 + len(directions)
    size = _part(draft, blocks)
    draft.weight(0, size * size * blocks, (size, size, blocks))
    draft.add_bias(size * (5 + 2 * len(directions)))


def _part(draft: Draft, blocks: int) -> int:
    given = draft.input_size(0)
    draft.check(
        given % blocks == 0,
        f"the size of its input must be {blocks} times its own, one part for each gate",
        f"an input of {given}",
        f"Put an fc or mixed layer of size {blocks} * n before it",
    )
    for name in ("active_gate_type", "active_state_type"):
        draft.choice(name, draft.attributes.get(name, ""), ACTIVATIONS)
    draft.set_size(given // blocks)
    return draft.size
