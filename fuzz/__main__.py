"""Fuzzes the targets one after the other and says what came of it; the exit status is 1 where something was found.

    python -m fuzz --target wire --seconds 600
    python -m fuzz --keep

An input that broke a target lies in OUT/TARGET; put it into tests/fuzz/corpus/TARGET, where the tests replay it, and
mend its cause. With --keep the inputs that reach more of the code are added to those in tests/fuzz/corpus, as few and
as small as will do.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from fuzz import TARGETS

CORPUS = Path("tests/fuzz/corpus")
MOST_FILES, MOST_BYTES, LARGEST = 300, 400_000, 4096
_PROGRESS = re.compile(r"cov: (\d+) ft: (\d+) corp: (\d+)/(\S+)")
_EXECUTED = re.compile(r"stat::number_of_executed_units:\s+(\d+)")
_SECONDS = re.compile(r"in (\d+) second")


@dataclass(frozen=True)
class Outcome:
    """What came of fuzzing a target: how much was run, what of the code was reached, and the inputs that broke it."""

    target: str
    executions: int
    seconds: int
    edges: int
    features: int
    corpus: str
    broken: tuple[Path, ...]

    def line(self) -> str:
        """A line of the table."""
        rate = self.executions / max(1, self.seconds)
        found = ", ".join(map(str, self.broken)) or "nothing"
        return (
            f"| `{self.target}` | {self.executions:,} | {rate:,.0f} | {self.edges} | {self.features} | {self.corpus} "
            f"| {found} |"
        )


def main(arguments: list[str] | None = None) -> int:
    """Fuzz what was asked for."""
    options = _options(arguments)
    outcomes = []
    for target in options.target:
        outcomes.append(_fuzzed(target, options.seconds, options.out))
        if options.keep:
            _keep(target, options.out)
    print("| target | executions | per s | edges | features | corpus | found |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | --- |")
    for outcome in outcomes:
        print(outcome.line(), flush=True)
    return 1 if any(outcome.broken for outcome in outcomes) else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--target", choices=TARGETS, nargs="*", default=list(TARGETS), help="all of them by default")
    parser.add_argument("--seconds", type=int, default=60, help="for how long each of them")
    parser.add_argument("--keep", action="store_true", help=f"add what is new to {CORPUS}")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"), help="the folder for logs and what was found")
    return parser.parse_args(arguments)


def _fuzzed(target: str, seconds: int, out: Path) -> Outcome:
    place = out / target
    (place / "corpus").mkdir(parents=True, exist_ok=True)
    kept = CORPUS / target
    kept.mkdir(parents=True, exist_ok=True)
    before = set(_broken(place))
    text = _engine(
        target,
        [f"-max_total_time={seconds}", f"-max_len={LARGEST}", "-timeout=60", "-rss_limit_mb=6000", "-len_control=20",
         "-print_final_stats=1", f"-artifact_prefix={place}/", str(place / "corpus"), str(kept)],
        place / "log.txt",
    )  # fmt: skip
    edges, features, files, size = (_PROGRESS.findall(text) or [("0", "0", "0", "0b")])[-1]
    executed = _EXECUTED.findall(text)
    lasted = _SECONDS.findall(text)
    return Outcome(
        target,
        int(executed[-1]) if executed else 0,
        int(lasted[-1]) if lasted else seconds,
        int(edges),
        int(features),
        f"{files} ({size})",
        tuple(each for each in _broken(place) if each not in before),
    )


def _broken(place: Path) -> list[Path]:
    return sorted(each for kind in ("crash", "timeout", "oom", "leak") for each in place.glob(f"{kind}-*"))


def _keep(target: str, out: Path) -> None:
    """Add what reaches more of the code to the inputs that the tests replay, as far as there is room."""
    kept = CORPUS / target
    with tempfile.TemporaryDirectory(prefix="fuzz-merge-") as folder:
        merged = Path(folder, "merged")
        merged.mkdir()
        # What is listed first is preferred: what is kept already stays.
        _engine(target, ["-merge=1", str(merged), str(kept), str(out / target / "corpus")], out / target / "merge.txt")
        known = {each.read_bytes() for each in kept.iterdir()}
        room = MOST_BYTES - sum(map(len, known))
        for content in sorted({each.read_bytes() for each in merged.iterdir()} - known, key=len):
            if len(known) >= MOST_FILES or len(content) > room or len(content) > LARGEST:
                break
            known.add(content)
            room -= len(content)
            (kept / sha256(content).hexdigest()[:16]).write_bytes(content)


def _engine(target: str, arguments: list[str], log: Path) -> str:
    """Run libFuzzer in a process of its own; what it said."""
    with log.open("w", errors="replace") as file:
        subprocess.run([sys.executable, "-m", "fuzz.engine", target, *arguments], stdout=file, stderr=file, check=False)
    return log.read_text(errors="replace")


if __name__ == "__main__":
    sys.exit(main())
