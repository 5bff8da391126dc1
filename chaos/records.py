"""What came of a run: judged, written as a line of JSON, and all of them as a table."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from chaos import expectations
from chaos.expectations import FINISHED, HANG, INTERRUPTED, REFUSED, WRONG
from chaos.scenarios import SYNCHRONOUS, WITHOUT_RANK, Fault, Scenario
from tests.clusters.fit_spec import STAGES, TRAIN

LEFT_BEHIND = "something is left behind"


@dataclass
class Record:
    """One run.

    Attributes:
        outcome: finished, refused (with a clear error), interrupted (and the next fit finished), hang or wrong.
        hit: the faults whose moment came, in that order.
        ranks: for each of them whom it hit.
        struck: for each of them the seconds from the fit's beginning to it; `None` where nobody was left to hit.
        recovery: for each of them the seconds from it to the next sign that its rank goes on.
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
    hit: list[Fault] = field(default_factory=list)
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
            self.problems.append(LEFT_BEHIND)
        rank = next((rank for rank in self.ranks if rank is not None), None)
        if self.outcome == REFUSED and not expectations.names_the_silent(self.scenario, self.message, rank):
            self.problems.append("the error does not say who was silent")
        if self.outcome not in {FINISHED, INTERRUPTED}:
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
SUMMARY_HEAD = (
    "fault",
    "runs",
    "right",
    "clean errors",
    "wrong",
    "hangs",
    "left behind",
    "back after s, median",
    "at most",
)


def table(records: Sequence[Record]) -> str:
    """All runs as Markdown, how many ended how, and the same by fault."""
    lines = _rows(HEAD, [_cells(record) for record in records])
    counts = {
        outcome: sum(each.outcome == outcome for each in records)
        for outcome in (FINISHED, REFUSED, INTERRUPTED, HANG, WRONG)
    }
    told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    leaks = sum(bool(each.left) for each in records)
    lines += ["", f"{len(records)} runs: {told}; {leaks} left something behind; {_problems(records)}."]
    return "\n".join([*lines, "", *summary(records), "", *stages(records)]) + "\n"


def summary(records: Sequence[Record]) -> list[str]:
    """What came of the runs in which each kind of fault struck, and how long it took until whom it hit went on."""
    found: dict[str, list[tuple[Record, float | None]]] = {}
    for record in records:
        for fault, back in _struck(record):
            found.setdefault(fault.label, []).append((record, back))
    rows = []
    for label, times in sorted(found.items()):
        # A run in which the same kind struck twice counts once.
        runs = list({id(record): record for record, _ in times}.values())
        known = [back for _, back in times if back is not None]
        figures = [f"{statistics.median(known):.1f}", f"{max(known):.1f}"] if known else ["", ""]
        rows.append([label, *map(str, _counts(runs)), *figures])
    return _rows(SUMMARY_HEAD, rows)


def stages(records: Sequence[Record]) -> list[str]:
    """How often each kind of fault struck at each stage."""
    struck = [fault for record in records for fault, _ in _struck(record)]
    rows = [
        [label, *(str(sum(each.label == label and each.stage == stage for each in struck)) for stage in STAGES)]
        for label in sorted({each.label for each in struck})
    ]
    return _rows(("struck at", *STAGES), rows)


def _struck(record: Record) -> list[tuple[Fault, float | None]]:
    """The faults that hit somebody, and how long it took until whom they hit went on."""
    came = zip(record.hit, record.struck, record.recovery, strict=True)
    return [(fault, back) for fault, struck, back in came if struck is not None]


def _counts(runs: Sequence[Record]) -> list[int]:
    """Each run is right, clean, wrong or a hang; any may have left something behind, too."""
    hangs = sum(each.outcome == HANG for each in runs)
    good = [each for each in runs if each.outcome not in {HANG, WRONG} and set(each.problems) <= {LEFT_BEHIND}]
    right = sum(each.outcome == FINISHED for each in good)
    left = sum(bool(each.left) for each in runs)
    return [len(runs), right, len(good) - right, len(runs) - len(good) - hangs, hangs, left]


def _rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows)]


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
        "; ".join(_fault(record, fault) for fault in scenario.faults),
        record.outcome,
        _contributed(record),
        "" if record.accuracy is None else f"{record.accuracy:.3f} ({record.undisturbed or math.nan:.3f})",
        f"{record.difference:.0e}" if record.difference is not None and scenario.plan in SYNCHRONOUS else "",
    ]


def _fault(record: Record, fault: Fault) -> str:
    lasting = f" for {fault.seconds:.0f} s" if fault.seconds else ""
    where = "" if fault.stage == TRAIN else f" at {fault.stage}"
    number = record.hit.index(fault) if fault in record.hit else None
    rank = fault.rank if number is None or record.ranks[number] is None else record.ranks[number]
    told = f"{fault.label}{'' if fault.kind in WITHOUT_RANK else f' {rank}'}{lasting}{where}"
    struck = None if number is None else record.struck[number]
    if number is None or struck is None:
        return f"{told} (nobody left)"
    back = record.recovery[number]
    return f"{told} ({struck:.1f}, {'not' if back is None else f'{back:.1f}'})"


def _contributed(record: Record) -> str:
    if record.contributed is None or not record.due:
        return ""
    return ", ".join(f"{record.contributed.get(rank, 0)} of {rows}" for rank, rows in sorted(record.due.items()))
