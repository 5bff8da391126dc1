"""The base class of transports: how the workers of a job exchange vectors. Runs on workers.

Each transport is one file that implements it; `tests/conformance/transport_suite.py` tests them all. A placement names
the transport (`job/placement.py`); `registry` imports it when it is needed.
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
        """The layout of the whole vector."""

    def read(self) -> Vector:
        """Returns the parameters, in host memory."""

    def on_host(self, vector: Any) -> Vector:
        """Returns one of the learner's vectors in host memory: the same object if it is already there."""


class Transport(ABC):
    """One worker's connection to the others, through which it exchanges vectors under the job's plan.

    The order of calls: the context is entered; READY sends `address` to the others; `open` is called with the reply;
    then `join`, and for each round `contribute` or `pass_round`, and `collect`; at the end `leave`, and the context is
    left. A round that overlaps with the next is collected after the next round's steps and before its contribution.

    Threads: all calls come from the thread that trains. A transport waits with `client.wait_until`, which receives the
    driver's messages, lets other attendants of the client work, and ends the wait if the job is stopped.

    Ownership: the caller owns a contribution, and does not change it until `collect` returns. The transport owns a
    result, which is valid until the next contribution. A transport closes the threads, sockets, memory and processes
    that it has opened when the context is left, also after an error.

    Results: under a synchronous plan all workers collect bit-identical results: those of the plan's rule, applied to
    all contributions of the round in the order of the ranks.

    Failure: if a peer is lost and the round cannot be completed, `collect` raises `ExchangeError` or waits until the
    driver stops the job. It never waits without the client.

    If START gives this worker's rank a part of the vector, the worker is responsible for that part. Like the host of a
    slice, it sends the part on UPLOAD (unless the plan's rule runs on the workers), hands it over before the rounds in
    `saves`, and continues from `Start.kept`.

    Attributes:
        meets: how workers may meet over this transport.
        compresses: whether the transport supports the plan's `compression`; otherwise such a plan is refused.
        before_share: called in each round before any data of it leaves this worker, when `residual` already has the
            value with which the next round begins.
        saves: the rounds before which the training is saved; more are announced during the training. Set by `open`.
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
        """Refuse a plan that this transport cannot carry out."""
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
        """The address at which others reach this worker, or `None` if none of them needs to."""

    @abstractmethod
    def open(self, start: Start, learner: LearnerParameters, parts: int) -> None:
        """Start training, once all addresses are known; `parts` is the number of parts of a gradient."""

    @abstractmethod
    def join(self, *, wants_parameters: bool) -> tuple[int, Vector | None]:
        """Join; returns the round in which this rank continues, and the shared parameters.

        The parameters are a copy, or `None` if they were not requested and the rounds do not need them.
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

        `values` is in host memory, except that a gradient may be on the learner's device; the learner's `on_host`
        fetches it. `squared_norm` is passed under plans whose rule needs it.
        """

    @abstractmethod
    def pass_round(self, round_: int) -> None:
        """Take part in a round without a contribution."""

    @abstractmethod
    def collect(self, round_: int) -> Any:
        """Wait for the result of a round and return it: the new parameters, or the vector that the workers apply.

        It is in host memory; if the plan sends gradients, it may be on the learner's device.
        """

    @property
    @abstractmethod
    def empty(self) -> bool:
        """Whether the last `collect` had no result: all ranks passed, and the rule runs on the workers."""

    @abstractmethod
    def leave(self) -> None:
        """End this rank's contributions; the others continue without it."""

    @property
    def serves(self) -> bool:
        """Whether others may need this worker after it has left."""
        return False

    @property
    def contributed(self) -> Mapping[int, int]:
        """How many rows of each rank were applied here; empty if they are counted elsewhere."""
        return {}

    @property
    def residual(self) -> Vector:
        """A copy of the rounding errors that are added to this rank's next contribution; often empty."""
        return np.empty(0, np.float32)

    def restore_residual(self, residual: Vector) -> None:  # noqa: B027 - most have none
        """Continue from a value of `residual`."""

    def _about_to_share(self) -> None:
        """To be called by `contribute` and `pass_round` before anything leaves this worker."""
        if self.before_share is not None:
            self.before_share()
