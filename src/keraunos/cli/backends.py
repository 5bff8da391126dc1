"""Which of Keras's backends there are to choose from. Runs on the driver."""

from __future__ import annotations

from importlib.util import find_spec

from keraunos.errors import ModelError
from keraunos.job.training_job import BACKENDS


def choose_backend(wanted: str | None) -> str:
    """The backend that was asked for, or else the first that is installed."""
    installed = [name for name in BACKENDS if find_spec(name) is not None]
    if wanted is None and installed:
        return installed[0]
    if wanted is not None and wanted in installed:
        return wanted
    raise ModelError(
        f"Keras needs a backend that is installed. Expected {wanted or 'one of ' + ', '.join(BACKENDS)}. "
        f"Received: {', '.join(installed) or 'none'}. Install it with `pip install 'keraunos[{wanted or 'jax'}]'`."
    )
