"""What messages have in them beside plain values: ranks, places, the facts of shards. Runs on both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from keraunos.batch import BatchSpec
from keraunos.exchange.content import As, Natural, body_of, integer, number_between, read_fields
from keraunos.exchange.kept import Kept
from keraunos.exchange.tally import Tally
from keraunos.exchange.wire import MAX_RANK, WireError

# How many parts, each with a denominator of its own, a contribution may have.
MOST_PARTS = 64
_MOST_STATE_BYTES = 1 << 40
# Everyone is told where everyone's slice is, in one message.
_MOST_ADDRESS = 500
_MOST_ENTRIES = 20

Rank = Annotated[int, number_between(0, MAX_RANK)]
Parts = Annotated[int, number_between(1, MOST_PARTS)]
StateSize = Annotated[int, number_between(0, _MOST_STATE_BYTES)]


def _by_rank(pairs: Any) -> dict[int, int]:
    return {integer(rank): integer(count) for rank, count in pairs}


def texts(data: Any) -> tuple[str, ...]:
    """Texts that are shown to people, whatever they are."""
    if not isinstance(data, list):
        raise WireError("lines are a list")
    return tuple(str(each) for each in data)


def _denominators(data: Any) -> tuple[float | None, ...]:
    return tuple(None if each is None else float(each) for each in data)


RowsByRank = Annotated[dict[int, int], As(_by_rank, lambda counts: [list(each) for each in counts.items()])]
Denominators = Annotated[tuple[float | None, ...], As(_denominators, list)]
Texts = Annotated[Sequence[str], As(texts, list)]
# A slice without its arrays, which are the payload.
SliceFacts = Annotated[Kept, As(lambda data: Kept.from_json(data, []), Kept.to_json)]
TallyField = Annotated[Tally, As(Tally.from_json, Tally.to_json)]


@dataclass(frozen=True)
class ShardFacts:
    """What a worker has read and built."""

    rows: Natural
    validation_rows: Natural
    spec: Annotated[BatchSpec, As(BatchSpec.from_json, BatchSpec.to_json)] | None
    digest: str
    parts: Parts


def _credentials(data: Any) -> dict[str, Any]:
    credentials = dict(data)
    texts = [*credentials, *(str(each) for each in credentials.values())]
    if len(credentials) > _MOST_ENTRIES or max(map(len, texts), default=0) > _MOST_ADDRESS:
        raise WireError("a slice's credentials are too long")
    return credentials


def _address(value: Any) -> str:
    if len(str(value)) > _MOST_ADDRESS:
        raise WireError("a slice's address is too long")
    return str(value)


@dataclass(frozen=True)
class SliceAddress:
    """Where a host's slice can be reached, as far as workers need it."""

    address: Annotated[str, As(_address)]
    credentials: Annotated[Mapping[str, Any], As(_credentials)]


@dataclass(frozen=True)
class SlicePlace:
    """Where a slice can be reached, and which part of the vector it is."""

    address: str
    credentials: Mapping[str, Any]
    start: Natural
    stop: Natural
    host_rank: Rank | None = None
    ipv6: bool = False

    @property
    def connection(self) -> dict[str, Any]:
        """What a `Link` needs."""
        return {"address": self.address, "ipv6": self.ipv6, "credentials": self.credentials}


def _by_name(rows: Any) -> dict[int, int]:
    return {int(rank): integer(count) for rank, count in rows.items()}


def _places(data: Any) -> tuple[SlicePlace, ...]:
    return tuple(read_fields(SlicePlace, each) for each in data)


# The keys of a JSON object are texts.
RowsByName = Annotated[Mapping[int, int], As(_by_name, lambda rows: {str(rank): each for rank, each in rows.items()})]
Places = Annotated[Sequence[SlicePlace], As(_places, lambda places: [body_of(each) for each in places])]


@dataclass(frozen=True)
class KeptSlice:
    """What a slice was in an earlier fit, to be fetched by who hosts it now."""

    size: Natural
    arrays: list[Any]
    facts: SliceFacts
