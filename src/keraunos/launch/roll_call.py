"""Looking after the members of a fit: who is away, who is slow, whether anything moves. Runs on the driver.

The thread that follows the fit calls `look` again and again. What there is to say is logged; a worker that has been
away for longer than the job's patience ends the fit, or is left out of it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable

from keraunos.errors import WorkerError
from keraunos.exchange.coordination import Event, LeftOut
from keraunos.exchange.messages import Stacks
from keraunos.exchange.server import Server
from keraunos.exchange.tally import Tally
from keraunos.job.placement import FIRST_SERVER
from keraunos.job.training_job import TrainingJob
from keraunos.launch.attendance import Attendance, Change, Turn
from keraunos.launch.fit_events import FitEvents
from keraunos.launch.part_lost import PartLost
from keraunos.launch.rank_table import LostRows, RankTable, report_of, stragglers
from keraunos.launch.watchdog import Watchdog
from keraunos.telemetry.events import WorkerLost, WorkerReturned, WorkerSlow

# How long members are given to say where their threads are.
_STACKS_SECONDS = 10.0


class RollCall:
    """One fit's members, watched.

    Attributes:
        lost_rows: what is missing since a worker was left out.
        returns: how often each rank came back.
    """

    def __init__(
        self, job: TrainingJob, server: Server, events: FitEvents, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._job = job
        self._server = server
        self._events = events
        self._clock = clock
        self._attendance = Attendance(job.worker_patience)
        self._watchdog = Watchdog(job.stall_report_after)
        self._told_slow: set[int] = set()
        self._asked: dict[int, str] = {}
        self._ask_until: float | None = None
        self.lost_rows: list[LostRows] = []
        self.returns: Counter[int] = Counter()

    def look(self, expected: Iterable[int], others: Callable[[int], bool], abandon: Callable[[int], None]) -> None:
        """Look after those who are expected to be there.

        `others(rank)` says whether somebody is left to train without a rank; `abandon(rank)` is told that nobody waits
        for it any more. The one that was left out is also an event, `LeftOut`, which whoever counts ranks handles.
        """
        expected = set(expected) - self._server.gone
        for change in self._attendance.look(self._clock(), self._server.signs, expected):
            if change.turn is Turn.LOST:
                self._lose(change, others=others(change.rank), abandon=abandon)
            else:
                self._tell(change)
        tallies = {rank: self._server.tally(rank) or Tally() for rank in sorted(expected)}
        self._name_the_slow({rank: each for rank, each in tallies.items() if rank < FIRST_SERVER})
        place = tuple((rank, each.round, each.rows, each.steps) for rank, each in tallies.items())
        waiting = any(each.waiting_for for each in tallies.values())
        if self._watchdog.look(self._clock(), place, waiting=waiting):
            self._ask_for_stacks(tallies)
        if self._ask_until is not None and self._clock() > self._ask_until:
            self._tell_stacks()

    def hear_stacks(self, event: Event, said: Stacks) -> None:
        """A member said where its threads are."""
        self._asked[event.rank] = "\n".join(
            [f"{self._name(event.rank)}, {_doing(said.tally)}:", *(each.rstrip() for each in said.stacks)]
        )
        if self._ask_until is not None and all(self._asked.values()):
            self._tell_stacks()

    def own_silence(self) -> str:
        """What explains the end of workers where it was the driver that was silent; nothing where it was not."""
        silent = self._server.longest_silence
        if silent < self._job.driver_patience:
            return ""
        address, patience = self._server.connection["address"], self._job.driver_patience
        return (
            f" Nothing was heard from the driver at {address} for {silent:.0f} s, and workers wait for {patience:g} s "
            "(driverPatience): the driver stood still. With checkpointDir the training goes on from where it was saved "
            "last."
        )

    def table(self, rows: Callable[[int], int]) -> RankTable:
        """What each rank did; `rows` gives the rows it has read."""
        ranks = [rank for rank in sorted(self._server.state.members) if rank < FIRST_SERVER]
        return RankTable(
            [
                report_of(rank, self._host(rank), self._server.tally(rank), rows(rank), self.returns[rank])
                for rank in ranks
            ]
        )

    def _tell(self, change: Change) -> None:
        rank, host, seconds = change.rank, self._host(change.rank), change.seconds
        if change.turn is Turn.BACK:
            said = f"{self._name(rank)} is back after {seconds:.0f} s."
            self._events.publish(WorkerReturned(rank=rank, host=host, seconds=seconds, message=said))
            return
        said = (
            f"{self._name(rank)} has given no sign of life for {seconds:.0f} s. It is waited for up to "
            f"{self._job.worker_patience:.0f} s (workerPatience)."
        )
        self._events.publish(WorkerLost(rank=rank, host=host, seconds=seconds, message=said))

    def _lose(self, change: Change, *, others: bool, abandon: Callable[[int], None]) -> None:
        rank, hosts = change.rank, self._job.placement.holds_part(change.rank)
        if hosts:
            raise PartLost(f"{self._name(rank)} is lost: {self._why(change, hosts=hosts, others=others)}")
        if self._job.on_worker_lost == "stop" or not others:
            raise WorkerError(self._why(change, hosts=hosts, others=others), rank=rank, host=self._host(rank))
        self._server.leave_out(rank)
        abandon(rank)
        self._server.events.put(Event(LeftOut(change.seconds), rank))

    def _why(self, change: Change, *, hosts: bool, others: bool) -> str:
        tally = self._server.tally(change.rank)
        last = f" It was last seen {_doing(tally)}." if tally is not None else ""
        if hosts:
            advice = "It held a part of the parameters, without which nobody can go on; servers='driver' needs it less."
        elif not others:
            advice = "It was the last one that trained."
        else:
            advice = "onWorkerLost='continue' goes on without it and its rows."
        return (
            f"nothing was heard from it for {change.seconds:.0f} s, as long as workerPatience allows. Expected: "
            f"a sign every 2 s.{last} Look for a lost executor, a process that was killed for its memory or "
            f"stopped, or a network that is cut, on that host and in the executor's log. {advice}{self.own_silence()}"
        )

    def _name_the_slow(self, tallies: dict[int, Tally]) -> None:
        for each in stragglers(tallies):
            if each.rank not in self._told_slow:
                self._told_slow.add(each.rank)
                costs = "the others have waited for it" if self._job.exchange.waits else "it has fallen behind"
                said = (
                    f"{self._name(each.rank)} is slow: {each.seconds:.3g} s per step, where the median is "
                    f"{each.median:.3g} s; {costs} for about {each.cost:.0f} s so far. Look for other load, fewer "
                    "cores or a slower device on that host."
                )
                self._events.publish(
                    WorkerSlow(
                        rank=each.rank,
                        host=self._host(each.rank),
                        seconds_per_step=each.seconds,
                        median=each.median,
                        message=said,
                    )
                )

    def _ask_for_stacks(self, tallies: dict[int, Tally]) -> None:
        missing = ", ".join(map(str, self._server.missing))
        waits = f"; the driver's slice waits for rank(s) {missing}" if missing else ""
        doing = "\n".join(f"  {self._name(rank)}: {_doing(each)}" for rank, each in tallies.items())
        self._events.warn(
            f"Nothing has moved for {self._watchdog.still:.0f} s (stallReportAfter){waits}. The workers are asked "
            f"where they are.\n{doing}"
        )
        self._asked = dict.fromkeys(tallies, "")
        self._ask_until = self._clock() + _STACKS_SECONDS
        self._server.probe()

    def _tell_stacks(self) -> None:
        self._ask_until = None
        told = [text or f"{self._name(rank)} does not answer." for rank, text in sorted(self._asked.items())]
        self._events.warn("Where the workers are:\n" + "\n\n".join(told))

    def _name(self, rank: int) -> str:
        what = f"The server of slice {rank - FIRST_SERVER}" if rank >= FIRST_SERVER else f"Worker {rank}"
        return f"{what} on {self._host(rank)}"

    def _host(self, rank: int) -> str:
        member = self._server.state.members.get(rank)
        return "an unknown host" if member is None else member.host


def _doing(tally: Tally) -> str:
    waiting = f", waiting for {tally.waiting_for}" if tally.waiting_for else ""
    return (
        f"in round {tally.round} after {tally.rows} rows{waiting} (sent last: {tally.sent or 'nothing'}, "
        f"received last: {tally.received or 'nothing'})"
    )
