"""The Params that say where a training is saved while it runs, to go on from there. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from keraunos.job.saving import Checkpoints, SaveEvery
from keraunos.ml import conversion
from keraunos.ml.params import Settings, param


class HasCheckpoints(Settings):
    """Where, how often, and how many are kept."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"checkpointEvery": "epoch", "checkpointKeep": 2}

    checkpointDir = param(
        "checkpointDir",
        "A directory on any Hadoop path in which the training is saved while it runs. `fit` with the same job and the "
        "same directory goes on where the training was saved last; another job is refused there. Not set: nowhere.",
        conversion.text("checkpointDir"),
    )
    checkpointEvery = param(
        "checkpointEvery",
        "How often the training is saved in `checkpointDir`: a number of epochs, or a text such as 'epoch', "
        "'500 rounds', '90 seconds' or '10 minutes'.",
        conversion.save_every,
    )
    checkpointKeep = param(
        "checkpointKeep",
        "How many of the newest checkpoints are kept.",
        conversion.whole_number("checkpointKeep", at_least=1),
    )

    def getCheckpointDir(self) -> str | None:
        """Where the training is saved while it runs; `None` for nowhere."""
        value: str | None = self._get("checkpointDir")
        return value

    def setCheckpointDir(self, value: str) -> Self:
        """Set where the training is saved while it runs."""
        return self.setParams(checkpointDir=value)

    def getCheckpointEvery(self) -> int | str:
        """How often the training is saved."""
        value: int | str = self._get("checkpointEvery")
        return value

    def setCheckpointEvery(self, value: int | str) -> Self:
        """Set how often the training is saved."""
        return self.setParams(checkpointEvery=value)

    def getCheckpointKeep(self) -> int:
        """How many of the newest checkpoints are kept."""
        return int(self._get("checkpointKeep"))

    def setCheckpointKeep(self, value: int) -> Self:
        """Set how many of the newest checkpoints are kept."""
        return self.setParams(checkpointKeep=value)

    def checkpoints(self) -> Checkpoints | None:
        """All three together; `None` where nothing is saved."""
        directory = self.getCheckpointDir()
        if directory is None:
            return None
        return Checkpoints(directory, SaveEvery.of(self.getCheckpointEvery()), self.getCheckpointKeep())
