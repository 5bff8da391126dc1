"""What ends an attempt, and not always the fit. Runs on the driver."""

from __future__ import annotations

from keraunos.errors import WorkerError


class PartLost(WorkerError):  # noqa: N818 - says what happened
    """A process was lost, and with it a part of the parameters that no other has."""
