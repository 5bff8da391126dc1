"""A live model as an archive, with what must travel with it. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class WrittenModel:
    """A live model as an archive, with what another process needs to read it.

    Attributes:
        archive: the bytes, in the format of the model.
        code: custom objects that must travel with it: those handed over and those found in the model.
        trusted: the modules of the model's own classes, which whoever gets the archive from this process may import.
    """

    archive: bytes
    code: Mapping[str, Any] = field(default_factory=dict)
    trusted: tuple[str, ...] = ()
