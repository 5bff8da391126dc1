"""All that members of a job and servers say to each other: one dataclass per kind. Runs on both sides.

The order is that of `wire.Kind`: what a member says to the coordinator, what the coordinator says, what a worker says
to the server of a slice, what such a server says. `content` reads them and refuses what is malformed. What a payload
carries, and what a round or an offset of the header stands for, is in the class's docstring.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Self

from keraunos.exchange.content import As, Content, Natural, body_of, class_of, nested, read_fields
from keraunos.exchange.message_parts import (
    Denominators,
    KeptSlice,
    Parts,
    Places,
    RowsByName,
    RowsByRank,
    ShardFacts,
    SliceAddress,
    SliceFacts,
    StateSize,
    TallyField,
    Texts,
    texts,
)
from keraunos.exchange.tally import Tally
from keraunos.exchange.wire import Kind, Message

# What a member may tell of its threads.
MOST_THREADS = 64
MOST_TEXT = 6000


# What members say to the coordinator.


@dataclass(frozen=True)
class Hello(Content, kind=Kind.HELLO):
    """A member joins; `pulse` is the name of the connection that its signs of life come over."""

    host: str
    mark: str | None = None
    pulse: Annotated[bytes, As(bytes.fromhex, bytes.hex)] = b""
    versions: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Fetch(Content, kind=Kind.FETCH):
    """Asks for a piece of something that the coordinator has, from the offset on."""

    name: str


@dataclass(frozen=True)
class Ready(Content, kind=Kind.READY):
    """A worker has rows and a model, or the host of a slice a place for it, or both."""

    shard: ShardFacts | None = None
    slice: SliceAddress | None = None

    @classmethod
    def _read(cls, body: Mapping[str, Any]) -> Self:
        shard = read_fields(ShardFacts, body) if "rows" in body else None
        place = body.get("slice")
        return cls(shard, None if place is None else nested(SliceAddress).read(place))  # type: ignore[misc]  # it has one

    def body(self) -> dict[str, Any]:
        """The facts of the shard are the body's own."""
        shard = {} if self.shard is None else body_of(self.shard)
        return shard if self.slice is None else {**shard, "slice": body_of(self.slice)}


@dataclass(frozen=True)
class Report(Content, kind=Kind.REPORT):
    """How far a worker is within a lap; the payload is its metrics' state, of arrays of these shapes."""

    rows: Natural
    round: Natural
    epoch: Natural
    lap: Natural
    shapes: list[Any]
    so_far: bool
    tally: TallyField


@dataclass(frozen=True)
class Lap(Content, kind=Kind.LAP):
    """A worker has ended a lap; `split` is how many of the payload's arrays are not of validation rows.

    `skipped` rows led to what was not finite; `trained` says whether others did not.
    """

    rows: Natural
    epoch: Natural
    lap: Natural
    step: Natural
    ends_epoch: bool
    final: bool
    skipped: Natural
    trained: bool
    shapes: list[Any]
    split: Natural
    tally: TallyField


@dataclass(frozen=True)
class Parameters(Content, kind=Kind.PARAMETERS):
    """A piece of parameters, at the offset in the vector; `complete` with the last one."""

    complete: bool = False


@dataclass(frozen=True)
class State(Content, kind=Kind.STATE):
    """A piece of a rank's, or a slice's, state before the round.

    It is for the rank `target` to go on from; with `save` to write down; with `last` what training led to.
    """

    target: Annotated[int, As(key="for")]
    size: StateSize
    arrays: list[Any]
    complete: bool = False
    save: bool = False
    last: bool = False
    slice: SliceFacts | None = None


@dataclass(frozen=True)
class Norm(Content, kind=Kind.NORM):
    """A slice's part of a round's squared norm."""

    value: float


@dataclass(frozen=True)
class Failed(Content, kind=Kind.FAILED):
    """Why a member ends; nothing is asked of it but what went wrong, so that it is always heard."""

    error: str
    text: Annotated[str, As(key="message")] = ""
    stack: str = ""
    lines: Texts = ()
    host: str = "an unknown host"


@dataclass(frozen=True)
class Done(Content, kind=Kind.DONE):
    """A worker has trained to the end."""


@dataclass(frozen=True)
class Bye(Content, kind=Kind.BYE):
    """A member leaves; the host of a slice says how many rows of each rank were applied there."""

    contributed: RowsByRank = field(default_factory=dict)


@dataclass(frozen=True)
class Ask(Content, kind=Kind.ASK):
    """A rank that came back asks for its state before the round: its own, or what any of the others has."""

    from_others: bool = False


@dataclass(frozen=True)
class Losses(Content, kind=Kind.LOSSES):
    """The payload is the losses and rows of consecutive steps; the round is the first step's number."""


@dataclass(frozen=True)
class Pulse(Content, kind=Kind.PULSE):
    """A sign of life."""

    tally: Tally

    @classmethod
    def _read(cls, body: Mapping[str, Any]) -> Self:
        return cls(Tally.from_json(body))

    def body(self) -> dict[str, Any]:
        """The tally's own."""
        return self.tally.to_json()


@dataclass(frozen=True)
class Stacks(Content, kind=Kind.STACKS):
    """Where the threads of a member are, as far as it is text of a sensible size."""

    tally: Tally
    stacks: tuple[str, ...]

    @classmethod
    def _read(cls, body: Mapping[str, Any]) -> Self:
        stacks = texts(body["stacks"])[:MOST_THREADS]
        return cls(Tally.from_json(body), tuple(each[-2 * MOST_TEXT :] for each in stacks))

    def body(self) -> dict[str, Any]:
        """The tally's own, and the stacks."""
        return {**self.tally.to_json(), "stacks": list(self.stacks)}


@dataclass(frozen=True)
class Got(Content, kind=Kind.GOT):
    """Up to which number a member has the coordinator's letters, and whether it wants those after it again."""

    got: Natural = 0
    again: bool = False


@dataclass(frozen=True)
class Missed(Content, kind=Kind.MISSED):
    """The round before which to save was over when it was announced."""


@dataclass(frozen=True)
class Diverged(Content, kind=Kind.DIVERGED):
    """What a worker has is not finite, behind so many steps."""

    epoch: int
    step: int
    what: str


# What the coordinator says.


@dataclass(frozen=True)
class Welcome(Content, kind=Kind.WELCOME):
    """The member has joined; the sizes of what there is to fetch."""

    sizes: Mapping[str, Any]


@dataclass(frozen=True)
class Blob(Content, kind=Kind.BLOB):
    """The piece that was asked for, as the payload."""


@dataclass(frozen=True)
class Go(Content, kind=Kind.GO):
    """What the driver decided after a lap."""

    lap: int
    learning_rate: float | None
    last: bool


@dataclass(frozen=True)
class Start(Content, kind=Kind.START):
    """Training starts, or goes on where the rank left it.

    Attributes:
        rows: every rank's rows, from which each derives the rounds.
        slices: where the slices are, in their order.
        common: memory that all workers of one host share for results.
        bells: memory for their doorbells.
        again: whether the rank trained before.
        laps_done: how many laps the rank has ended.
        decided: what the driver decided last.
        kept: what the slice that this member hosts was.
        saves: before which rounds to save.
    """

    rows: RowsByName = field(default_factory=dict)
    slices: Places = ()
    common: Mapping[str, Any] | None = None
    bells: Mapping[str, Any] | None = None
    again: bool = False
    laps_done: Natural = 0
    decided: Annotated[Go, nested(Go)] | None = None
    kept: Annotated[KeptSlice, nested(KeptSlice)] | None = None
    learning_rate: float | None = None
    traces_losses: bool = False
    saves: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Stop(Content, kind=Kind.STOP):
    """The job has ended for this member, and why."""

    reason: str = ""


@dataclass(frozen=True)
class Alive(Content, kind=Kind.ALIVE):
    """A sign of life: up to which number the member's letters are here, and how many were sent to it."""

    got: Natural = 0
    sent: Natural = 0


@dataclass(frozen=True)
class Upload(Content, kind=Kind.UPLOAD):
    """Send the parameters; `last` when training is over."""

    last: bool = False


@dataclass(frozen=True)
class Snapshot(Content, kind=Kind.SNAPSHOT):
    """Send the state before the round, for another rank to go on from."""

    target: Annotated[int, As(key="for")]


@dataclass(frozen=True)
class TotalNorm(Content, kind=Kind.TOTAL_NORM):
    """A round's squared norm over all slices."""

    value: float


@dataclass(frozen=True)
class Release(Content, kind=Kind.RELEASE):
    """Training is over for everyone."""


@dataclass(frozen=True)
class HeldState(Content, kind=Kind.HELD):
    """What there is of the state that was asked for, to be fetched; a size of 0 is none."""

    size: Natural
    arrays: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Probe(Content, kind=Kind.PROBE):
    """Say where your threads are."""


@dataclass(frozen=True)
class Remove(Content, kind=Kind.REMOVE):
    """Serve the slice without a rank from now on; `for_good` where it may not come back."""

    rank: int
    for_good: bool


@dataclass(frozen=True)
class Save(Content, kind=Kind.SAVE):
    """Save what you have before the round; slices of a plan without common rounds: what you have now."""


@dataclass(frozen=True)
class Recall(Content, kind=Kind.RECALL):
    """Send the parameters that you kept when the lap began."""


# What workers say to the server of a slice. `shared`: the worker has opened the memory that it was offered.


@dataclass(frozen=True)
class Join(Content, kind=Kind.JOIN):
    """A worker joins; `mark` is its host's where it may share memory."""

    parts: Parts
    mark: str | None = None
    wants_parameters: bool = False
    shared: bool = False


@dataclass(frozen=True)
class Push(Content, kind=Kind.PUSH):
    """A chunk of a contribution to the round; the last one says what it consists of.

    Without a payload it is in shared memory as a whole.
    """

    rows: Natural | None = None
    denominators: Denominators = ()
    squared_norm: float | None = None
    shared: bool = False


@dataclass(frozen=True)
class Pass(Content, kind=Kind.PASS):
    """A worker takes part in the round without a contribution."""

    shared: bool = False


@dataclass(frozen=True)
class Leave(Content, kind=Kind.LEAVE):
    """A worker contributes no more."""

    shared: bool = False


@dataclass(frozen=True)
class Again(Content, kind=Kind.AGAIN):
    """A worker waits for the round's result: it, or the contribution, may have been lost."""

    shared: bool = False


# What the server of a slice says.


@dataclass(frozen=True)
class Offers:
    """Memory to share: for the worker's contributions, and for results where those are not in common memory."""

    upload: Mapping[str, Any]
    result: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Joined(Content, kind=Kind.JOINED):
    """The worker has joined; the round is the one that it contributes to next."""

    shared: Annotated[Offers, nested(Offers)] | None = None


@dataclass(frozen=True)
class RoundResult(Content, kind=Kind.RESULT):
    """A chunk of a round's result, or without a payload word that it is in shared memory.

    Attributes:
        first: it is the parameters for one who joins.
        empty: nobody has contributed, and there is none.
        coded: the payload was made by the plan's codec.
        staleness: how many contributions of others were applied between the parameters that the receiver's was computed
            with and that one; 0 where all are applied at once.
    """

    first: bool = False
    empty: bool = False
    coded: bool = False
    staleness: Natural = 0


@dataclass(frozen=True)
class Refused(Content, kind=Kind.REFUSED):
    """The rank is not listened to; without a reason a newer incarnation of it is."""

    reason: str | None = None


@dataclass(frozen=True)
class Resend(Content, kind=Kind.RESEND):
    """The round's contribution has not come."""


def content_of(message: Message) -> Content:
    """What a message says; a `WireError` where it is not what its kind says."""
    return class_of(message.kind).of(message.body)
