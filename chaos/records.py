"""What came of a run: judged, written as a line of JSON, and all of them as a table."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from chaos import expectations
from chaos.expectations import FINISHED, WRONG
from chaos.scenarios import DISK, DRIVER, SERVER, SYNCHRONOUS, Scenario


@dataclass
class Record:
    """One run.

    Attributes:
        outcome: finished, refused (with a clear error), hang or wrong.
        ranks: for each fault whom it hit.
        struck: for each fault the seconds from the first epoch's end to it; `None` where nobody was left to hit.
        recovery: for each fault the seconds from it to the next sign that its rank goes on.
        contributed: the rows of each rank that the servers applied, where the engine counts them.
        due: the rows of each rank that they should have applied.
        difference: the largest difference of a weight from the undisturbed fit's, for synchronous plans.
        left: processes and files that were still there afterwards.
        problems: what is not as it should be.
    """

    scenario: Scenario
    outcome: str = WRONG
    message: str = ""
    seconds: float = 0.0
    ranks: list[int | None] = field(default_factory=list)
    struck: list[float | None] = field(default_factory=list)
    recovery: list[float | None] = field(default_factory=list)
    contributed: Mapping[str, int] | None = None
    due: dict[str, int] = field(default_factory=dict)
    accuracy: float | None = None
    undisturbed: float | None = None
    difference: float | None = None
    left: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def judge(self) -> None:
        """Find what is not as it should be."""
        if self.outcome not in expectations.allowed(self.scenario):
            self.problems.append(f"{self.outcome}, where the table allows less")
        if self.left:
            self.problems.append("something is left behind")
        if self.outcome != FINISHED:
            return
        wrong = [*self._wrong_contributions(), *self._wrong_model()]
        if wrong:
            self.outcome = WRONG
            self.problems += wrong

    def _wrong_contributions(self) -> list[str]:
        if self.contributed is None:
            return []
        return [
            f"rank {rank} contributed {self.contributed.get(rank, 0)} rows, not {rows}"
            for rank, rows in self.due.items()
            if self.contributed.get(rank, 0) != rows
        ]

    def _wrong_model(self) -> list[str]:
        wrong = []
        accuracy, undisturbed, difference = self.accuracy or 0.0, self.undisturbed or 0.0, self.difference
        if not accuracy >= undisturbed - expectations.ACCURACY_LOSS:
            wrong.append(f"accuracy {accuracy:.3f}, undisturbed {undisturbed:.3f}")
        compared = difference is not None and expectations.same_weights(self.scenario)
        if compared and not difference <= expectations.SAME_WEIGHTS:
            wrong.append(f"weights differ by {difference:.1e}")
        return wrong

    def to_line(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self))


HEAD = (
    "run",
    "plan",
    "servers",
    "rows",
    "faults (after s, back after s)",
    "outcome",
    "contributed",
    "accuracy",
    "Δ weights",
)


def table(records: Sequence[Record]) -> str:
    """All runs as Markdown, and how many ended how."""
    lines = [f"| {' | '.join(HEAD)} |", f"|{' --- |' * len(HEAD)}"]
    lines += [f"| {' | '.join(_cells(record))} |" for record in records]
    counts = {
        outcome: sum(each.outcome == outcome for each in records)
        for outcome in ("finished", "refused", "hang", "wrong")
    }
    told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    leaks = sum(bool(each.left) for each in records)
    lines += ["", f"{len(records)} runs: {told}; {leaks} left something behind; {_problems(records)}."]
    return "\n".join([*lines, "", *_recoveries(records)]) + "\n"


def _recoveries(records: Sequence[Record]) -> list[str]:
    """How often each fault struck, and how long it took until whom it hit went on, by where the parameters live."""
    found: dict[tuple[str, str | int], list[float | None]] = {}
    for record in records:
        # The last faults may not have come: the fit was over before.
        for fault, struck, back in zip(record.scenario.faults, record.struck, record.recovery):
            if struck is not None:
                found.setdefault((fault.kind, record.scenario.servers), []).append(back)
    lines = ["| fault | servers | times | back after s, median | at most |", f"|{' --- |' * 5}"]
    for (kind, servers), backs in sorted(found.items(), key=str):
        known = [back for back in backs if back is not None]
        figures = f"{statistics.median(known):.1f} | {max(known):.1f}" if known else " | "
        lines.append(f"| {kind} | {servers!r} | {len(backs)} | {figures} |")
    return lines


def fill(document: Path, text: str, name: str = "chaos") -> None:
    """Put the text between a document's marks, in place of what was there."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    before, found, rest = document.read_text(encoding="utf-8").partition(begin)
    _, ending, after = rest.partition(end)
    if not found or not ending:
        raise ValueError(f"{document} must hold the lines {begin.strip()!r} and {end.strip()!r}.")
    document.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def _problems(records: Sequence[Record]) -> str:
    found = [f"run {each.scenario.number}: {'; '.join(each.problems)}" for each in records if each.problems]
    return "all as they should be" if not found else f"not as they should be: {'. '.join(found)}"


def _cells(record: Record) -> list[str]:
    scenario = record.scenario
    return [
        str(scenario.number),
        scenario.plan,
        repr(scenario.servers),
        "shuffled" if scenario.shuffled else "direct",
        "; ".join(_fault(record, number) for number in range(len(scenario.faults))),
        record.outcome,
        _contributed(record),
        "" if record.accuracy is None else f"{record.accuracy:.3f} ({record.undisturbed or math.nan:.3f})",
        f"{record.difference:.0e}" if record.difference is not None and scenario.plan in SYNCHRONOUS else "",
    ]


def _fault(record: Record, number: int) -> str:
    fault = record.scenario.faults[number]
    rank = record.ranks[number] if number < len(record.ranks) else None
    whom = "" if fault.kind in {DRIVER, DISK, SERVER} else f" {fault.rank if rank is None else rank}"
    lasting = f" for {fault.seconds:.0f} s" if fault.seconds else ""
    struck = record.struck[number] if number < len(record.struck) else None
    if struck is None:
        return f"{fault.kind}{whom}{lasting} (nobody left)"
    back = record.recovery[number] if number < len(record.recovery) else None
    return f"{fault.kind}{whom}{lasting} ({struck:.1f}, {'not' if back is None else f'{back:.1f}'})"


def _contributed(record: Record) -> str:
    if record.contributed is None or not record.due:
        return ""
    return ", ".join(f"{record.contributed.get(rank, 0)} of {rows}" for rank, rows in sorted(record.due.items()))
