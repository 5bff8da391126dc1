"""The base class of listeners, which receive the events of a fit. Runs on the driver."""

from __future__ import annotations

from keraunos.telemetry.events import FitEvent


class Listener:
    """Receives the events of the fits that it is given to. Any object with these two methods can be a listener.

    Each fit calls it from a separate thread, with one event after the other in order: the first is `Started`, the last
    is `Ended`, and then `close` is called. If several fits run at once, several threads call it; `event.fit` identifies
    the fit.

    Training never waits for a listener. Its exceptions are counted and logged once. If it is too slow and its queue is
    full, events are dropped, but never the last one. A fit that has ended waits only some seconds for it.
    """

    def on_event(self, event: FitEvent) -> None:
        """Called with each event."""

    def close(self) -> None:
        """Called after the last event of a fit. Another fit may follow."""
