"""What members say of themselves when they are ready, looked at before others are told. Runs on the driver; no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keraunos.batch import BatchSpec
from keraunos.exchange.message_parts import MOST_PARTS
from keraunos.exchange.wire import MAX_COUNTER, WireError

# Everyone is told where everyone's slice is, in one message.
_MOST_TEXT = 500
_MOST_ENTRIES = 20


def facts_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """What a worker has read and built; a `WireError` for numbers that no worker has."""
    facts = {
        "rows": int(body["rows"]),
        "validation_rows": int(body["validation_rows"]),
        "spec": body["spec"],
        "digest": str(body["digest"]),
    }
    if facts["spec"] is not None:
        BatchSpec.from_json(facts["spec"])
    counts = (facts["rows"], facts["validation_rows"])
    if min(counts) < 0 or max(counts) > MAX_COUNTER or not 1 <= int(body["parts"]) <= MOST_PARTS:
        raise WireError("a worker's numbers are out of range")
    return facts


def place_of(data: Any) -> dict[str, Any]:
    """Where a host's slice is, as far as workers need it; a `WireError` for what is far larger than that."""
    address, credentials = str(data["address"]), dict(data["credentials"])
    texts = [address, *credentials, *(str(each) for each in credentials.values())]
    if len(credentials) > _MOST_ENTRIES or max(map(len, texts)) > _MOST_TEXT:
        raise WireError("a slice's address or credentials are too long")
    return {"address": address, "credentials": credentials}
