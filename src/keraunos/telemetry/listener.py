"""Who is told what happens in a fit. Runs on the driver."""

from __future__ import annotations

from keraunos.telemetry.events import FitEvent


class Listener:
    """Told of every event of the fits that it is given to; any object with these two methods will do.

    Each fit calls it from a thread of its own, one event after the other in the order in which they happened: the first
    is `Started`, the last is `Ended`, and then `close` is called. A listener of several fits that run at once is called
    by several threads; `event.fit` tells the fits apart.

    Training never waits for a listener. What it raises is counted and logged once. Of a listener that is too slow,
    events that find its queue full are left out, but never the last one; and a fit that has ended waits for it for some
    seconds only.
    """

    def on_event(self, event: FitEvent) -> None:
        """Something has happened."""

    def close(self) -> None:
        """The fit is over, and its last event was told. Another fit may begin."""
