"""The status of a job's tasks in Spark, and the essential part of Spark's error messages. Runs on the driver."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

# The maximum length of Spark's error message that is shown.
_MOST_LINES = 6
_MOST_TEXT = 1500
_TRACE = "Traceback (most recent call last)"
_OF_JAVA = ("Driver stacktrace", "Caused by:", "org.apache.spark", "java.")

_JAVA_MEMORY = re.compile(r"java\.lang\.OutOfMemoryError[^\r\n]*")
MEMORY_ADVICE = (
    "Give executors a larger heap (spark.executor.memory; spark.driver.memory where the master is local), or make rows "
    "and partitions smaller."
)


@dataclass(frozen=True)
class Tasks:
    """The tasks of a fit, as Spark sees them.

    Attributes:
        running: how many run now.
        failed: how many attempts have failed.
        last_place: which task failed last, and on which host.
        last_error: Spark's message for that failure.
        java_memory: Java's message if any of them ran out of memory.
        lost_executor: the executor that was lost last, and why.
    """

    running: int = 0
    failed: int = 0
    last_place: str = ""
    last_error: str = ""
    java_memory: str = ""
    lost_executor: str = ""

    def __str__(self) -> str:
        parts = []
        if self.last_place:
            parts.append(
                f"{self.failed} attempt(s) at its tasks have failed, the last {self.last_place}: {self.last_error}"
            )
        if self.java_memory and self.java_memory not in self.last_error:
            parts.append(f"Before that Java ran out of memory: {self.java_memory}")
        if self.lost_executor:
            parts.append(f"The executor that was lost last is {self.lost_executor}")
        sentences = [f"{part.rstrip('.')}." for part in parts]
        return " ".join([*sentences, MEMORY_ADVICE] if self.java_memory else sentences)


def java_memory(text: str) -> str:
    """Returns Java's message if it ran out of memory, otherwise an empty text."""
    found = _JAVA_MEMORY.search(text)
    return found.group().strip() if found else ""


def excerpt(text: str, marker: str = "") -> str:
    """The essential part of Spark's error message: the marked lines, the end of Python's trace, or the first lines."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    if marker:
        return " ".join([line for line in lines if marker in line][:_MOST_LINES])[:_MOST_TEXT]
    traces = [number for number, line in enumerate(lines) if _TRACE in line]
    if not traces:
        return " ".join(lines[:_MOST_LINES])[:_MOST_TEXT]
    # Java's lines follow the trace, and the error is at its end.
    python = list(itertools.takewhile(lambda line: not line.startswith(_OF_JAVA), lines[traces[-1] + 1 :]))
    return " ".join(python[-_MOST_LINES:])[-_MOST_TEXT:]
