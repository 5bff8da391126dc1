"""What was launched, as the driver sees it. Runs on the driver."""

from __future__ import annotations

from typing import Protocol


class Workers(Protocol):
    """What was launched."""

    def check(self) -> None:
        """Raise what ended the workers early; return while they run, or when they ended well."""

    def ended(self) -> bool:
        """Whether all of them are gone."""

    def advice(self) -> str:
        """What a user may do when workers do not come."""

    def abandon(self, rank: int) -> None:
        """The training goes on without this rank: nobody waits for its end, and how it ends is no error."""
