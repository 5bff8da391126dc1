"""What the driver's log says of a fit. Runs on the driver."""

from __future__ import annotations

import logging

from keraunos.telemetry.events import FitEvent, Notice

logger = logging.getLogger(__name__)


def log(event: FitEvent) -> None:
    """Log an event that has a message; a subscriber of the fit's events."""
    if isinstance(event, Notice):
        logger.warning("%s", event.message)
