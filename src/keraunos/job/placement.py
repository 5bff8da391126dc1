"""Where the parameters live, and what follows from it. Runs on the driver and on workers.

Users say it as `servers`: `"driver"`, `"workers"`, or a number of servers; or, where workers share by themselves over
a transport that is not built in, its home, `"module:Class"`. `placement_of` reads that, once; everyone else asks the
placement.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from keraunos.errors import JobError
from keraunos.job.exchange_plan import ExchangePlan

# Servers that are tasks of their own have ranks from here on.
FIRST_SERVER = 1 << 19

# The home of the transport to slices on our own servers.
SLICES = "keraunos.exchange.transports.slices:Slices"


@dataclass(frozen=True)
class Placement:
    """One place for the parameters.

    Attributes:
        server_tasks: how many servers are tasks of their own.
        transport: the home, `module:Class`, of what workers exchange vectors through.
    """

    server_tasks: int = 0
    transport: str = SLICES

    @property
    def on_driver(self) -> bool:
        """Whether the driver has the parameters and the rule, so that neither is lost before the fit is."""
        return False

    @property
    def on_workers(self) -> bool:
        """Whether each worker answers for a part of the parameters, and says where it can be reached."""
        return False

    @property
    def on_slices(self) -> bool:
        """Whether the parameters are slices of our own servers."""
        return self.transport == SLICES

    def hosts(self, trains: Iterable[int]) -> list[int]:
        """The ranks that host the slices, in the order of the slices; none where the driver has the only one."""
        return []

    def holds_part(self, rank: int) -> bool:
        """Whether a part of the parameters is lost with that member, also where it comes back."""
        return rank in self.hosts([rank])

    def has_member(self, rank: int, workers: int) -> bool:
        """Whether a worker or a server of a job with so many workers may have that rank."""
        return 0 <= rank < workers or FIRST_SERVER <= rank < FIRST_SERVER + self.server_tasks

    def needs_all_workers(self, plan: ExchangePlan) -> bool:
        """Whether no worker can go on before all of them run."""
        return plan.waits or self.on_workers

    def tasks(self, workers: int) -> int:
        """How many tasks there are in all."""
        return workers + self.server_tasks

    def needed_slots(self, plan: ExchangePlan, workers: int) -> int:
        """How many of the tasks must run at once for training to go on at all."""
        return self.tasks(workers if self.needs_all_workers(plan) else 1)

    def workers_in(self, slots: int) -> int:
        """How many workers there is room for in so many slots."""
        return max(1, slots - self.server_tasks)

    def shares_port(self, ports: tuple[int, int] | None) -> bool:
        """Whether a slice is behind the coordinator's own port, and served by its thread."""
        return False


@dataclass(frozen=True)
class OnDriver(Placement):
    """One slice, which the driver serves in threads beside the coordinator."""

    @property
    def on_driver(self) -> bool:
        """Whether the driver has the parameters and the rule."""
        return True

    def shares_port(self, ports: tuple[int, int] | None) -> bool:
        """Whether a slice is behind the coordinator's own port: where no other may be used."""
        return ports is not None and ports[0] == ports[1]


@dataclass(frozen=True)
class OnWorkers(Placement):
    """As many slices as workers train, each hosted by one of them."""

    @property
    def on_workers(self) -> bool:
        """Whether each worker answers for a part of the parameters."""
        return True

    def hosts(self, trains: Iterable[int]) -> list[int]:
        """The workers that train."""
        return sorted(trains)


@dataclass(frozen=True)
class AmongWorkers(OnWorkers):
    """No servers: workers exchange vectors over a transport of their own, and each answers for a part of them."""


@dataclass(frozen=True)
class InTasks(Placement):
    """As many slices as there are servers, each in a task of its own."""

    def hosts(self, trains: Iterable[int]) -> list[int]:
        """The servers, whoever trains."""
        return list(range(FIRST_SERVER, FIRST_SERVER + self.server_tasks))


ON_DRIVER = OnDriver()


def placement_of(servers: Any) -> Placement:
    """The placement that `servers` stands for; what is neither a place nor a number of servers is refused."""
    if isinstance(servers, int) and not isinstance(servers, bool) and servers >= 1:
        return InTasks(servers)
    if isinstance(servers, str) and servers in _PLACES:
        return _PLACES[servers]
    if isinstance(servers, str) and _is_home(servers):
        return AmongWorkers(transport=servers)
    raise JobError(
        "`servers` must be 'driver', 'workers', or a number of servers of at least 1; or the home of a transport "
        f"between workers, 'module:Class'. Received: {servers!r}."
    )


def _is_home(text: str) -> bool:
    module, _, name = text.partition(":")
    return name.isidentifier() and all(part.isidentifier() for part in module.split("."))


_PLACES = {"driver": ON_DRIVER, "workers": OnWorkers()}
