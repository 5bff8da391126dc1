"""Arrays of different lengths: how long they become. Runs on the driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from keraunos.errors import DataError, JobError
from keraunos.job.columns import Slot
from keraunos.ml.schema import SlotSpec
from keraunos.ml.signature import Port

Longest = Callable[[Sequence[str]], Mapping[str, int | None]]


def padded_slots(
    slots: tuple[Slot, ...],
    specs: tuple[SlotSpec, ...],
    ports: Sequence[Port],
    max_length: int | None,
    longest: Longest,
) -> tuple[Slot, ...]:
    """The slots of a fit with the length that their arrays become.

    That is the length of the model's input; where it is open, `max_length`; without, what `longest` finds.
    """
    arrays = [_is_ragged(slot, spec) for slot, spec in zip(slots, specs, strict=True)]
    if not any(arrays):
        told = ", ".join(repr(column) for slot in slots for column in slot.columns)
        raise JobError(
            "`pad` is for arrays of different lengths. Expected a column of arrays in `featuresCol`. Received: "
            f"{told}, of which none is one. Leave `pad` unset."
        )
    fixed = [_fixed_length(slot, ports) for slot in slots]
    unknown = [
        slot.columns[0]
        for slot, length, is_array in zip(slots, fixed, arrays, strict=True)
        if is_array and length is None and max_length is None
    ]
    found = longest(unknown) if unknown else {}
    if any(found[column] is None for column in unknown):
        raise DataError("The DataFrame has no rows to train on. Expected at least one. Received: 0 rows.")
    made = []
    for slot, length, is_array in zip(slots, fixed, arrays, strict=True):
        target = length or max_length or max(1, found.get(slot.columns[0]) or 1)
        made.append(replace(slot, length=target, cut=max_length) if is_array else slot)
    return tuple(made)


def served_slots(
    slots: tuple[Slot, ...],
    specs: tuple[SlotSpec, ...],
    ports: Sequence[Port],
    max_length: int | None,
    lengths: Mapping[str, int],
) -> tuple[Slot, ...]:
    """The slots of `transform`: as long as in training, and longer only where nothing is cut and the input is open."""
    made = []
    for slot, spec in zip(slots, specs, strict=True):
        fixed = _fixed_length(slot, ports)
        length = fixed or lengths.get(slot.name or "") or max_length
        padded = replace(slot, length=length or 1, cut=max_length, grows=fixed is None and max_length is None)
        made.append(padded if _is_ragged(slot, spec) else slot)
    return tuple(made)


def lengths_of(slots: Sequence[Slot]) -> dict[str, int]:
    """The lengths of slots by the names of their inputs, for a fitted model to remember."""
    return {slot.name or "": slot.length for slot in slots if slot.length is not None}


def with_length(slots: Sequence[Slot], shapes: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The shapes of rows once they are padded."""
    return [
        shape if slot.length is None else (slot.length, *shape[1:]) for slot, shape in zip(slots, shapes, strict=True)
    ]


def _is_ragged(slot: Slot, spec: SlotSpec) -> bool:
    """Whether the slot is a column of arrays; vectors have one size."""
    return slot.kind == "number" and not slot.stacked and spec.is_array


def _fixed_length(slot: Slot, ports: Sequence[Port]) -> int | None:
    named = [port for port in ports if slot.name is None or port.name == slot.name]
    return named[0].shape[0] if len(named) == 1 and named[0].shape else None
