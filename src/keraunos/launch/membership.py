"""Who takes part in a fit: who has joined, is ready, has trained to the end, and has left. Runs on the driver.

No I/O and no clock. Ranks from `FIRST_SERVER` on are servers of slices.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from keraunos.exchange.message_parts import ShardFacts
from keraunos.job.placement import FIRST_SERVER
from keraunos.job.training_job import TrainingJob


class Membership:
    """The members of one fit.

    Attributes:
        hosts: where the workers that have joined are, by rank.
        ready: what workers have read, by rank, in the order in which they said so.
        left: the members that are gone, and those that were left out.
    """

    def __init__(self, job: TrainingJob) -> None:
        self.hosts: dict[int, str] = {}
        self.ready: dict[int, ShardFacts] = {}
        self.left: set[int] = set()
        self._job = job
        self._done: set[int] = set()
        self._servers: set[int] = set()
        self._incarnations: dict[int, int] = {}

    def begin(self, rank: int, incarnation: int) -> None:
        """A member's process is there."""
        if rank >= FIRST_SERVER:
            self._servers.add(rank)
        self._incarnations[rank] = incarnation

    def join(self, rank: int, host: str) -> None:
        """A worker may take part."""
        self.hosts[rank] = host

    def finish(self, rank: int) -> None:
        """A worker has trained to the end."""
        self._done.add(rank)

    def leave(self, rank: int) -> None:
        """A member is gone."""
        self.left.add(rank)

    def host(self, rank: int) -> str:
        """Where a worker is, for a message."""
        return self.hosts.get(rank, "a host")

    def rows(self) -> dict[int, int]:
        """How many rows each worker has that is ready."""
        return {rank: shard.rows for rank, shard in self.ready.items()}

    def has_returned(self, rank: int, incarnation: int) -> bool:
        """Whether this is a later process of a member than the one that is known."""
        return incarnation > self._incarnations[rank]

    @property
    def settled(self) -> int:
        """How many are ready, or gone already."""
        return len(self.ready.keys() | self.left)

    @property
    def nobody_can_train(self) -> bool:
        """Whether all workers are gone and none of them had rows."""
        return not self.ready and len(self.left) >= self._job.workers

    @property
    def servers_missing(self) -> bool:
        """Whether servers that are tasks of their own are still to come."""
        return len(self._servers) < self._job.placement.server_tasks

    @property
    def everyone(self) -> AbstractSet[int]:
        """All members that ever came."""
        return self.hosts.keys() | self._servers

    @property
    def all_trained(self) -> bool:
        """Whether nobody trains any more."""
        return len(self.left | self._done) >= self._job.workers

    @property
    def training(self) -> set[int]:
        """The ranks that train, or will."""
        return set(range(self._job.workers)) - self.left - self._done

    @property
    def present(self) -> AbstractSet[int]:
        """The workers that have joined and not left."""
        return self.hosts.keys() - self.left

    @property
    def holders(self) -> set[int]:
        """The members that hold a part of the parameters."""
        return {rank for rank in self.everyone if self._job.placement.holds_part(rank)}

    @property
    def expected(self) -> AbstractSet[int]:
        """The members that must give signs of life."""
        return ((self.hosts.keys() - self._done) | self.holders) - self.left

    def has_others(self, rank: int) -> bool:
        """Whether somebody who has rows trains, or has trained to the end, beside a rank."""
        return bool(self.hosts.keys() - (self.left - self._done) - {rank})
