"""What a process takes from the system, as the system tells it."""

import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True)
class Footprint:
    descriptors: int
    resident: int

    @classmethod
    def of(cls, process: int) -> Self:
        folder = Path("/proc") / str(process)
        pages = int((folder / "statm").read_text().split()[1])
        return cls(len(list((folder / "fd").iterdir())), pages * resource.getpagesize())

    def or_more(self, other: Self) -> Self:
        return type(self)(max(self.descriptors, other.descriptors), max(self.resident, other.resident))
