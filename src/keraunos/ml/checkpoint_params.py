"""The Params that say where a training is saved while it runs, to go on from there. Runs on the driver."""

from __future__ import annotations

from keraunos.job.saving import Checkpoints, SaveEvery
from keraunos.ml import conversion
from keraunos.ml.declaration import param
from keraunos.ml.params import Settings


class HasCheckpoints(Settings):
    """Where, how often, and how many are kept."""

    checkpointDir, getCheckpointDir, setCheckpointDir = param(
        "A directory on any Hadoop path in which the training is saved while it runs. `fit` with the same job and the "
        "same directory goes on where the training was saved last; another job is refused there. Not set: nowhere.",
        conversion.text("checkpointDir"),
    )
    checkpointEvery, getCheckpointEvery, setCheckpointEvery = param(
        "How often the training is saved in `checkpointDir`: a number of epochs, or a text such as 'epoch', "
        "'500 rounds', '90 seconds' or '10 minutes'.",
        conversion.save_every,
        default="epoch",
    )
    checkpointKeep, getCheckpointKeep, setCheckpointKeep = param(
        "How many of the newest checkpoints are kept.", conversion.whole_number("checkpointKeep", at_least=1), default=2
    )

    def checkpoints(self) -> Checkpoints | None:
        """All three together; `None` where nothing is saved."""
        directory = self.getCheckpointDir()
        if directory is None:
            return None
        return Checkpoints(directory, SaveEvery.of(self.getCheckpointEvery()), self.getCheckpointKeep())
