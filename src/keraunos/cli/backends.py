"""The choice of the Keras backend for the demo. Runs on the driver."""

from __future__ import annotations

from keraunos.backends import BACKENDS, installed_backends
from keraunos.errors import ModelError


def choose_backend(wanted: str | None) -> str:
    """Returns the wanted backend or, if it is `None`, the first that is installed."""
    installed = installed_backends()
    if wanted is None and installed:
        return installed[0]
    if wanted is not None and wanted in installed:
        return wanted
    raise ModelError(
        f"Keras needs a backend that is installed. Expected {wanted or 'one of ' + ', '.join(BACKENDS)}. "
        f"Received: {', '.join(installed) or 'none'}. Install it with `pip install 'keraunos[{wanted or 'jax'}]'`."
    )
