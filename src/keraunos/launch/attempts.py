"""A fit that goes on after it has lost a part of the parameters. Runs on the driver.

Where parameters live on executors, a lost process takes its part with it, and the other parts are of no use without it.
The training is then launched again and goes on from where it was saved last: nothing of it is lost or done twice, only
the time since. Where the user named no directory, it is saved in a temporary one meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from keraunos import scratch
from keraunos.checkpoints.folder import Folder, LocalFolder
from keraunos.checkpoints.store import CheckpointStore
from keraunos.job.saving import Checkpoints, SaveEvery
from keraunos.job.training_job import TrainingJob
from keraunos.launch.fit import Saving
from keraunos.launch.part_lost import PartLost
from keraunos.launch.training_result import TrainingResult

_MOST_RESTARTS = 4
_SAVED_EVERY = SaveEvery(30.0, "seconds")


@contextmanager
def saved(
    job: TrainingJob, checkpoints: Checkpoints | None, folder_of: Callable[[str], Folder] = LocalFolder
) -> Iterator[Saving | None]:
    """Where a training is saved: where the user wants it, or, where a part of it may be lost, while it runs.

    Temporary folders of drivers that were killed are removed first.
    """
    scratch.remove_abandoned()
    if checkpoints is not None:
        yield Saving(CheckpointStore(folder_of(checkpoints.directory), checkpoints.keep), checkpoints.every)
    elif job.placement.on_driver:
        yield None
    else:
        with scratch.folder("checkpoints") as folder:
            yield Saving(CheckpointStore(LocalFolder(folder)), _SAVED_EVERY)


def until_whole(
    attempt: Callable[[], TrainingResult], saving: Saving | None, warn: Callable[[str], None]
) -> TrainingResult:
    """Attempt it again where a part of the parameters was lost and something is saved, but not for ever."""
    for _ in range(_MOST_RESTARTS if saving is not None else 0):
        try:
            return attempt()
        except PartLost as lost:
            warn(f"{lost} The training is launched again and goes on from where it was saved last.")
    return attempt()
