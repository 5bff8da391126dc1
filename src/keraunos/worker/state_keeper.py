"""Where a rank stands, and what it needs to continue there after it was lost. Runs on workers.

Where each worker applies the gradients itself, any live one has the weights and the optimizer's state, and gives
them to a rank that has come back. Otherwise the servers have the weights, and a rank leaves its optimizer's state
(and weights that are its own) with the driver every so many rounds. One that is alive when another takes its rank
(Spark runs a whole stage again when the shuffled rows of a lost executor are gone) leaves them as its last words.
"""

from __future__ import annotations

import logging

import numpy as np

from keraunos.exchange.client import Client, StateLost
from keraunos.exchange.messages import Snapshot
from keraunos.exchange.transports.transport import Transport
from keraunos.exchange.wire import Message
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.training_job import TrainingJob
from keraunos.learners.learner import Learner
from keraunos.parameters import Vector
from keraunos.worker.rounds import Rounds

logger = logging.getLogger(__name__)

_SELDOM = 100
# What a round must be long, and the state small, for the state to travel with each.
_LONG = 10
_MOST_BYTES = 16 << 20


class StateKeeper:
    """One rank's place in the training.

    Attributes:
        round: the one that is open.
        others_have_it: whether every rank has the same weights and optimizer's state.
    """

    def __init__(
        self, job: TrainingJob, client: Client, learner: Learner, rounds: Rounds, transport: Transport, *, alone: bool
    ) -> None:
        self.round = 0
        self._client = client
        self._learner = learner
        self._rounds = rounds
        self._transport = transport
        self._every = _SELDOM if job.state_every is None else job.state_every
        self._may_leave_always = job.state_every is None and _has_long_rounds(job.exchange)
        self.others_have_it = job.exchange.applies_on_workers
        self._leaves_state = not self.others_have_it or alone
        self._own_weights = self.others_have_it or job.exchange.pulls_on_workers
        self._asked: tuple[int, int] | None = None
        self._settled = False
        client.on(Snapshot, self._remember)
        client.attend(None, self._answer)

    def leave_always(self) -> None:
        """Leave the state with every round, ahead of its contribution, where that is cheap beside the round's steps."""
        size = sum(array.nbytes for array in (self._transport.residual, *self._learner.optimizer_state()))
        if self._may_leave_always and size <= _MOST_BYTES:
            self._every = 0
            # The steps of a round are taken when it is shared: this is what the next one begins with.
            self._transport.before_share = lambda: self._send(self._client.rank, self.round + 1)

    def stand(self) -> None:
        """This rank has what its open round begins with: for others, and for whoever takes its rank."""
        self._settled = True
        # In the middle of a round it is not known what its contribution will be rounded by.
        self._client.last_words = lambda: self._send(self._client.rank, with_residual=False)

    def end_round(self) -> None:
        """The open round is over."""
        self.round += 1
        if self._every and self._leaves_state and self.round % self._every == 0:
            self._send(self._client.rank)

    def save(self, *, whole: bool) -> None:
        """Give the driver what this rank needs to go on from here; not `whole` where another rank gives the same."""
        own = [*self._learner.optimizer_state()] if whole else []
        weights = self._rounds.weights() if whole and self._own_weights else np.empty(0, np.float32)
        self._client.save(self.round, [weights, self._transport.residual, *own])

    def recover(self, parameters: Vector | None) -> Vector | None:
        """Bring the optimizer to where this rank stands; the weights to continue from."""
        found = self._client.ask_for_state(self.round, from_others=self.others_have_it)
        if found is None:
            if not self.others_have_it:
                logger.warning("rank %d comes back before its optimizer's state was kept", self._client.rank)
                return parameters
            raise StateLost(
                f"Rank {self._client.rank} was lost in round {self.round}, and no live worker has the weights and the "
                "optimizer's state to continue from."
            )
        kept_at, (weights, residual, *optimizer) = found
        if kept_at != self.round:
            logger.warning(
                "rank %d continues in round %d with an optimizer's state of round %d",
                self._client.rank, self.round, kept_at,
            )  # fmt: skip
        elif residual.size:
            self._transport.restore_residual(residual)
        self._learner.restore_optimizer(optimizer)
        return weights if self._own_weights else parameters

    def _remember(self, message: Message, snapshot: Snapshot) -> None:
        self._asked = (snapshot.target, message.round)

    def _answer(self) -> bool:
        """Give a rank that came back what it asked for, once this one has reached that round too."""
        if self._asked is None or self._asked[1] != self.round or not self._settled:
            return False
        target, self._asked = self._asked[0], None
        self._send(target)
        return True

    def _send(self, target: int, round_: int | None = None, *, with_residual: bool = True) -> None:
        weights = self._rounds.weights() if self._own_weights else np.empty(0, np.float32)
        at = self.round if round_ is None else round_
        # The residual is each rank's own.
        is_own = with_residual and target == self._client.rank
        residual = self._transport.residual if is_own else np.empty(0, np.float32)
        self._client.send_state(at, [weights, residual, *self._learner.optimizer_state()], target)


def _has_long_rounds(plan: ExchangePlan) -> bool:
    """Whether workers take some steps by themselves and then wait for each other."""
    alone = plan.synchronous and plan.send != "gradients" and not plan.pulls_on_workers
    return alone and (plan.every == "epoch" or int(plan.every) >= _LONG)
