"""Layers that go through a sequence with a state: recurrent, lstmemory, gated_recurrent.

Runs on the driver and on workers. What the steps hold is worked out by the layers before them; here is only what
depends on the step before. The types of single steps belong to recurrent groups and are not lowered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from keraunos.compat.paddle.lowering.activations import activate
from keraunos.compat.paddle.lowering.arrivals import with_bias
from keraunos.compat.paddle.lowering.call import Call, Value, lowers
from keraunos.compat.paddle.lowering.steps import Step, a_sequence, steps_taken
from keraunos.errors import ModelError

ops = keras.ops


@lowers("recurrent", applies_activation=True)
def recurrent(call: Call) -> Value:
    """`h_t = act(x_t + h_{t-1} W + b)`."""
    size = call.layer.size
    weight = ops.reshape(call.weight(0), (size, size))

    def step(states: tuple[Any, ...], held: Any) -> tuple[Any, ...]:
        return (activate(call.layer.active_type, held + ops.matmul(states[0], weight)),)

    value = a_sequence(call, 0)
    (output,) = _through(call, step, with_bias(call, value.tensor), value.mask, states=1)
    return Value(output, value.mask)


@lowers("lstmemory", applies_activation=True)
def lstmemory(call: Call) -> Value:
    """Long short-term memory with peepholes.

    A step holds candidate, input gate, forget gate and output gate, in this order, and so do the columns of the weight.
    The bias holds the same four and then the peepholes of the three gates. The cell is the further output `state`.
    """
    size = call.layer.size
    if call.bias is None:
        raise ModelError(
            f"Layer {call.layer.name!r} (lstmemory) must have a bias, which also holds its peepholes. Received: none. "
            "Write bias=True."
        )
    gates, peepholes = call.bias[: 4 * size], call.bias[4 * size :]
    for_input, for_forget, for_output = (peepholes[at * size : (at + 1) * size] for at in range(3))
    weight = ops.reshape(call.weight(0), (size, 4 * size))
    gate, of_state = call.attributes["active_gate_type"], call.attributes["active_state_type"]

    def step(states: tuple[Any, ...], held: Any) -> tuple[Any, ...]:
        before, cell = states
        parts = held + ops.matmul(before, weight)
        candidate, incoming, kept, outgoing = (parts[:, at * size : (at + 1) * size] for at in range(4))
        candidate = activate(call.layer.active_type, candidate)
        incoming = activate(gate, incoming + cell * for_input)
        kept = activate(gate, kept + cell * for_forget)
        cell = candidate * incoming + cell * kept
        outgoing = activate(gate, outgoing + cell * for_output)
        return outgoing * activate(of_state, cell), cell

    value = a_sequence(call, 0)
    output, cell = _through(call, step, value.tensor + gates, value.mask, states=2)
    return Value(output, value.mask, parts={"state": cell})


@lowers("gated_recurrent", applies_activation=True)
def gated_recurrent(call: Call) -> Value:
    """Gated recurrent unit: `h = (1 - z) h_{t-1} + z h~`, where the update gate z lets the new in, not the old.

    A step holds update gate, reset gate and candidate. The weight is stored as a block for both gates and, behind it,
    one for the candidate, which takes the state after the reset gate.
    """
    size = call.layer.size
    flat = call.weight(0)
    for_gates = ops.reshape(flat[: 2 * size * size], (size, 2 * size))
    for_candidate = ops.reshape(flat[2 * size * size :], (size, size))

    def step(states: tuple[Any, ...], held: Any) -> tuple[Any, ...]:
        (before,) = states
        gates = activate(call.attributes["active_gate_type"], held[:, : 2 * size] + ops.matmul(before, for_gates))
        update, reset = gates[:, :size], gates[:, size:]
        candidate = held[:, 2 * size :] + ops.matmul(before * reset, for_candidate)
        return (before - update * before + update * activate(call.layer.active_type, candidate),)

    value = a_sequence(call, 0)
    (output,) = _through(call, step, with_bias(call, value.tensor), value.mask, states=1)
    return Value(output, value.mask)


def _through(call: Call, step: Step, tensor: Any, mask: Any, states: int) -> Sequence[Any]:
    """Returns the states after each step; all of them start at zero."""
    first = [ops.zeros((ops.shape(tensor)[0], call.layer.size), dtype=tensor.dtype) for _ in range(states)]
    _, after = steps_taken(step, first, tensor, mask, reverse=bool(call.attributes.get("reversed", False)))
    return after
