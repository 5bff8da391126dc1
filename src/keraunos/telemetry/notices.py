"""Writes the messages of a fit to the driver's log. Runs on the driver."""

from __future__ import annotations

import logging

from keraunos.telemetry.events import FitEvent, Notice

logger = logging.getLogger(__name__)


def log(event: FitEvent) -> None:
    """Log an event if it has a message. Subscribes to the fit's events."""
    if isinstance(event, Notice):
        logger.warning("%s", event.message)
