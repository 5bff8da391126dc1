"""How the workers of a job exchange vectors: what a worker's rounds speak through. Runs on workers.

The base class of all transports; one file each implements it, and `tests/conformance/transport_suite.py` tests them
all. A placement names the transport (`job/placement.py`); `registry` imports it when it is needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from keraunos.errors import PlanError
from keraunos.exchange.client import Client
from keraunos.exchange.message_parts import SliceAddress
from keraunos.exchange.messages import Start
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.placement import Placement
from keraunos.job.saving import SavePoints
from keraunos.parameters import Layout, Vector


class LearnerParameters(Protocol):
    """What a transport needs of the worker's learner."""

    @property
    def layout(self) -> Layout:
        """Of the whole vector."""

    def read(self) -> Vector:
        """The parameters, in host memory."""

    def on_host(self, vector: Any) -> Vector:
        """A vector of the learner's in host memory; itself where it is there already."""


class Transport(ABC):
    """One worker's way to exchange vectors with the others under the job's plan.

    The order of calls: the context is entered; READY tells the others `address`; `open` is called with the answer;
    then `join`, and for each round `contribute` or `pass_round`, and `collect`; at the end `leave`, and the context is
    left. A round that overlaps with the next is collected after the next round's steps and before its contribution.

    Threads: all calls come from the thread that trains. A transport waits with `client.wait_until`, which sees to it
    that the driver is heard, that other attendants of the client work, and that a job that is stopped ends the wait.

    Ownership: a contribution is the rounds', and stays as it is until `collect` returns. A result is the transport's,
    and is valid until the next contribution. Whoever opens threads, sockets, memory or processes closes them when the
    context is left, also after an error.

    Results: under a synchronous plan every worker collects the same bits, which are those of the plan's rule applied
    to all contributions of the round in the order of the ranks.

    Failure: where a peer is lost and the round cannot be completed, `collect` raises `ExchangeError` or waits until
    the driver stops the job. It never waits without the client.

    Each worker answers for the part of the vector that START gives to its rank, where START gives one: as the host of a
    slice does, it sends that part on UPLOAD (unless the plan's rule runs on the workers), hands it over before the
    rounds in `saves`, and continues from `Start.kept`.

    Attributes:
        meets: how workers may meet over this transport.
        compresses: whether vectors travel as the plan's `compression` says; otherwise such a plan is refused.
        before_share: called in each round before anything of it leaves this worker, once `residual` is what the next
            round begins with.
        saves: before which rounds the training is saved; more are announced as it goes. Known from `open` on.
    """

    meets: ClassVar[Sequence[str]] = ("synchronous",)
    compresses: ClassVar[bool] = False

    def __init__(
        self,
        client: Client,
        plan: ExchangePlan,
        placement: Placement,
        workers: int,
        ports: tuple[int, int] | None = None,
    ) -> None:
        self.before_share: Callable[[], None] | None = None
        self.saves = SavePoints()
        self._client = client
        self._plan = plan
        self._placement = placement
        self._workers = workers
        self._ports = ports

    @classmethod
    def check(cls, plan: ExchangePlan) -> None:
        """Refuse a plan that cannot be carried out over this transport."""
        if plan.meet not in cls.meets:
            expected = " or ".join(map(repr, cls.meets))
            raise PlanError(f"The transport {cls.__name__} needs meet={expected}. Received: meet={plan.meet!r}.")
        if plan.compression is not None and not cls.compresses:
            raise PlanError(
                f"The transport {cls.__name__} does not compress. Expected: no `compression`. Received: "
                f"{plan.compression!r}."
            )

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    @property
    @abstractmethod
    def address(self) -> SliceAddress | None:
        """Where others reach this worker; `None` where nobody needs to."""

    @abstractmethod
    def open(self, start: Start, learner: LearnerParameters, parts: int) -> None:
        """Training starts, and everyone's address is known; `parts` is how many parts a gradient has."""

    @abstractmethod
    def join(self, *, wants_parameters: bool) -> tuple[int, Vector | None]:
        """Take part; returns the round at which this rank stands, and the shared parameters.

        The parameters are a copy; `None` where they were not asked for and the rounds can do without.
        """

    @abstractmethod
    def contribute(
        self,
        round_: int,
        values: Any,
        denominators: Sequence[float | None],
        rows: int,
        squared_norm: float | None = None,
    ) -> None:
        """Contribute to a round.

        `values` is in host memory; a gradient may be on the learner's device, from where the learner's `on_host`
        fetches it. `squared_norm` comes with contributions of plans whose rule asks for it.
        """

    @abstractmethod
    def pass_round(self, round_: int) -> None:
        """Take part in a round without a contribution."""

    @abstractmethod
    def collect(self, round_: int) -> Any:
        """Wait for the result of a round and return it: the new parameters, or what the workers are to apply.

        It is in host memory; where the plan sends gradients it may be on the learner's device.
        """

    @property
    @abstractmethod
    def empty(self) -> bool:
        """Whether what was collected last is no result: everyone has passed, and the rule runs on the workers."""

    @abstractmethod
    def leave(self) -> None:
        """Contribute no more; the others continue without this rank."""

    @property
    def serves(self) -> bool:
        """Whether others may need this worker after it has left."""
        return False

    @property
    def contributed(self) -> Mapping[int, int]:
        """How many rows of each rank were applied here; nothing where that is counted elsewhere."""
        return {}

    @property
    def residual(self) -> Vector:
        """What was rounded off this rank's contributions and goes with its next one: a copy, often of nothing."""
        return np.empty(0, np.float32)

    def restore_residual(self, residual: Vector) -> None:  # noqa: B027 - most have none
        """Continue from what `residual` was."""

    def _about_to_share(self) -> None:
        """To be called by `contribute` and `pass_round` before anything leaves this worker."""
        if self.before_share is not None:
            self.before_share()
