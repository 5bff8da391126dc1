"""The status of jobs in classic Spark's own SparkContext, and Spark's log. Runs on the driver.

A worker that never joined cannot report why. Spark often can: its status store has the error of each task that
failed, and the reason why an executor was removed. The JVM's SparkContext is given by a function, because it is gone
where Spark was stopped.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JError

from keraunos.session.task_status import Tasks, excerpt, java_memory

logger = logging.getLogger(__name__)

# How many tasks of a stage are inspected, the newest first.
_MOST_TASKS = 100
# The name of the appender that writes to a file.
_FILE = "keraunos"


def tasks_of(scala: Callable[[], Any], tag: str, since: float) -> Tasks:
    """Spark's status of the jobs with a tag, and of executors that were lost since a time, in seconds of the epoch.

    Returns nothing known where Spark is gone or has forgotten them.
    """
    try:
        store = scala().statusStore()
        stages = _stages(scala(), tag)
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


def computes_rows(scala: Callable[[], Any], tag: str, seconds: float) -> bool:
    """Whether jobs with a tag do something now that comes before their last stage, or did so within these seconds.

    Only asked before any worker has come: a stage that is complete is not one of the workers'.
    """
    try:
        spark = scala()
        known = spark.dagScheduler().stageIdToStage()
        for stage in _stages(spark, tag):
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


def log_to_file(jvm: Any, path: str) -> None:
    """Write Spark's log, from INFO on, to a file, and only errors to where it went before."""
    log4j = jvm.org.apache.logging.log4j
    logging_context = log4j.LogManager.getContext(False)  # noqa: FBT003 - Java knows no names
    configuration = logging_context.getConfiguration()
    layout = log4j.core.layout.PatternLayout.newBuilder().withPattern("%d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex").build()
    file = log4j.core.appender.FileAppender.newBuilder().withFileName(path)
    file = file.setName(_FILE).setLayout(layout).build()
    file.start()
    root = configuration.getRootLogger()
    for name, appender in dict(root.getAppenders()).items():
        root.removeAppender(name)
        if name != _FILE:
            root.addAppender(appender, log4j.Level.ERROR, None)
    root.addAppender(file, log4j.Level.INFO, None)
    logging_context.updateLoggers()


def _stages(spark: Any, tag: str) -> list[Any]:
    """Returns the last attempts of the stages of the jobs with a tag."""
    store = spark.statusStore()
    jobs = [store.job(number) for number in spark.statusTracker().getJobIdsForTag(tag)]
    numbers = sorted({int(number) for job in jobs for number in _each(job.stageIds())})
    return [stage for stage in map(store.lastStageAttempt, numbers) if str(stage.status()) != "SKIPPED"]


def _failures(store: Any, stage: Any) -> list[tuple[int, str, str]]:
    """Returns the failed attempts of a stage's tasks: their number, where they ran, and Spark's words."""
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
    """Returns the elements of a Scala sequence."""
    return [sequence.apply(index) for index in range(sequence.size())]
