"""What Spark knows of the tasks of a fit: what they do, why they failed, which executors were lost. Runs on the driver.

A worker that never came to the driver cannot say why. Spark often can: its status store has the error of each task that
failed, and the reason why an executor was removed.
"""

from __future__ import annotations

import itertools
import logging
import re
import time
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError

logger = logging.getLogger(__name__)

# How much of what Spark says of a failure is shown.
_MOST_LINES = 6
_MOST_TEXT = 1500
_TRACE = "Traceback (most recent call last)"
_OF_JAVA = ("Driver stacktrace", "Caused by:", "org.apache.spark", "java.")
# How many tasks of a stage are looked at, the newest first.
_MOST_TASKS = 100

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
        last_error: what Spark says of that failure.
        java_memory: what Java said where it ran out of memory in any of them.
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


def tasks_of(context: Any, tag: str, since: float) -> Tasks:
    """What Spark knows of the jobs with a tag, and of executors that were lost since a time, in seconds of the epoch.

    Returns nothing known where Spark is gone or has forgotten them.
    """
    try:
        store = context._jsc.sc().statusStore()
        stages = _stages(context, tag)
        failures = sorted(failure for stage in stages for failure in _failures(store, stage))
        _, place, text = failures[-1] if failures else (0, "", "")
        memory = [found for _, _, each in failures if (found := java_memory(each))]
        return Tasks(
            running=sum(int(stage.numActiveTasks()) for stage in stages),
            failed=sum(int(stage.numFailedTasks()) for stage in stages),
            last_place=place,
            last_error=excerpt(text),
            java_memory=memory[-1] if memory else "",
            lost_executor=_lost_executor(store, since),
        )
    except (Py4JError, OSError, AttributeError) as error:
        logger.debug("Spark's status store does not answer: %s", error)
        return Tasks()


def computes_rows(context: Any, tag: str, seconds: float) -> bool:
    """Whether jobs with a tag do something now that comes before their last stage, or did so within these seconds.

    Only asked before any worker has come: a stage that is complete is none of the workers'.
    """
    try:
        scala = context._jsc.sc()
        known = scala.dagScheduler().stageIdToStage()
        for stage in _stages(context, tag):
            ended = stage.completionTime()
            if ended.isDefined() and str(stage.status()) == "COMPLETE":
                if time.time() - ended.get().getTime() / 1000 < seconds:
                    return True
            elif stage.numActiveTasks():
                found = known.get(stage.stageId())
                if found.isDefined() and found.get().getClass().getSimpleName() == "ShuffleMapStage":
                    return True
    except (Py4JError, OSError, AttributeError) as error:
        logger.debug("Spark does not say what it does: %s", error)
    return False


def java_memory(text: str) -> str:
    """What Java says where it ran out of memory; nothing where it did not."""
    found = _JAVA_MEMORY.search(text)
    return found.group().strip() if found else ""


def excerpt(text: str, marker: str = "") -> str:
    """What a failure of Spark's says: the lines with the marker, the end of Python's trace, or the first lines."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    if marker:
        return " ".join([line for line in lines if marker in line][:_MOST_LINES])[:_MOST_TEXT]
    traces = [number for number, line in enumerate(lines) if _TRACE in line]
    if not traces:
        return " ".join(lines[:_MOST_LINES])[:_MOST_TEXT]
    # What Java adds stands behind the trace, and what went wrong at its end.
    python = list(itertools.takewhile(lambda line: not line.startswith(_OF_JAVA), lines[traces[-1] + 1 :]))
    return " ".join(python[-_MOST_LINES:])[-_MOST_TEXT:]


def _stages(context: Any, tag: str) -> list[Any]:
    """The last attempts of the stages of the jobs with a tag."""
    scala = context._jsc.sc()
    store = scala.statusStore()
    jobs = [store.job(number) for number in scala.statusTracker().getJobIdsForTag(tag)]
    numbers = sorted({int(number) for job in jobs for number in _each(job.stageIds())})
    return [stage for stage in map(store.lastStageAttempt, numbers) if str(stage.status()) != "SKIPPED"]


def _failures(store: Any, stage: Any) -> list[tuple[int, str, str]]:
    """The failed attempts of a stage's tasks: their number, where they ran, and Spark's words."""
    if not stage.numFailedTasks():
        return []
    tasks = _each(store.taskList(stage.stageId(), stage.attemptId(), _MOST_TASKS))
    return [
        (int(task.taskId()), f"at task {task.index()} on {task.host()}", str(task.errorMessage().get()))
        for task in tasks
        if task.errorMessage().isDefined()
    ]


def _lost_executor(store: Any, since: float) -> str:
    lost = [
        (int(each.removeTime().get().getTime()), f"{each.id()} at {each.hostPort()}: {each.removeReason().get()}")
        for each in _each(store.executorList(False))  # noqa: FBT003 - Scala knows no names here
        if each.removeTime().isDefined() and each.removeReason().isDefined()
    ]
    recent = [(when, text) for when, text in lost if when >= since * 1000]
    return excerpt(max(recent)[1]) if recent else ""


def _each(sequence: Any) -> list[Any]:
    """The elements of a Scala sequence."""
    return [sequence.apply(index) for index in range(sequence.size())]
