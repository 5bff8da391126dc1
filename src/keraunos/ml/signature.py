"""What a model takes and gives, as plain data: names, shapes and types. Runs on the driver and on workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keraunos.job.id_range import IdRange

Shape = tuple[int | None, ...]


@dataclass(frozen=True)
class Port:
    """One input or output: its name, its shape without the row dimension (`None`: any length) and its type.

    `ids` says which elements of an input an Embedding looks up.
    """

    name: str
    shape: Shape
    dtype: str
    ids: tuple[IdRange, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` reads back."""
        told = {"name": self.name, "shape": list(self.shape), "dtype": self.dtype}
        return {**told, "ids": [each.to_json() for each in self.ids]} if self.ids else told

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Port:
        """The port that `to_json` described."""
        ids = tuple(IdRange.from_json(each) for each in data.get("ids", ()))
        return cls(data["name"], tuple(data["shape"]), data["dtype"], ids)


@dataclass(frozen=True)
class Signature:
    """The inputs that are known (none for a subclassed model that was built by calling it) and all outputs."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` reads back."""
        return {
            "inputs": [port.to_json() for port in self.inputs],
            "outputs": [port.to_json() for port in self.outputs],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Signature:
        """The signature that `to_json` described."""
        return cls(
            tuple(Port.from_json(port) for port in data["inputs"]),
            tuple(Port.from_json(port) for port in data["outputs"]),
        )
