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
        """What is known of workers that do not come, and what a user may do."""

    def preparing(self, seconds: float) -> bool:
        """Whether workers cannot have come yet because their rows are being computed, or were within these seconds."""

    def abandon(self, rank: int) -> None:
        """The training goes on without this rank: nobody waits for its end, and how it ends is no error."""
