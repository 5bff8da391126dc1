"""What a built Keras model takes and gives: names, shapes and types. Runs on the driver; plain data on workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keraunos.errors import ModelError

Shape = tuple[int | None, ...]


@dataclass(frozen=True)
class Port:
    """One input or output: its name, its shape without the row dimension (`None`: any length) and its type."""

    name: str
    shape: Shape
    dtype: str

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` reads back."""
        return {"name": self.name, "shape": list(self.shape), "dtype": self.dtype}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Port:
        """The port that `to_json` described."""
        return cls(data["name"], tuple(data["shape"]), data["dtype"])


@dataclass(frozen=True)
class Signature:
    """The inputs that are known (none for a subclassed model that was built by calling it) and all outputs."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    @classmethod
    def of(cls, model: Any, examples: Any = None) -> Signature:
        """The signature of a built model; `examples` are its symbolic inputs where the model itself has none."""
        if getattr(model, "_functional", None) is not None or hasattr(model, "_inputs_struct"):
            struct = getattr(model, "_inputs_struct", None)
            named = (
                struct.items() if isinstance(struct, Mapping) else ((tensor.name, tensor) for tensor in model.inputs)
            )
            inputs = tuple(_port(str(name), tensor) for name, tensor in named)
            from keraunos.learners.keras_archive import output_structure

            return cls(inputs, _outputs(model, output_structure(model)))
        if examples is None:
            raise ModelError(
                f"The outputs of the model {model.name!r} must be known. Received: a subclassed model whose inputs "
                "are unknown. Give the columns of its inputs in `featuresCol`."
            )
        return cls((), _outputs(model, model.compute_output_spec(examples)))

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


def _outputs(model: Any, outputs: Any) -> tuple[Port, ...]:
    """Named as a learner names what it predicts: by key, by the model's own names, or by number."""
    if isinstance(outputs, Mapping):
        return tuple(_port(str(name), tensor) for name, tensor in outputs.items())
    tensors = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    names = getattr(model, "output_names", None) or [f"output_{i + 1}" for i in range(len(tensors))]
    return tuple(_port(name, tensor) for name, tensor in zip(names, tensors, strict=True))


def _port(name: str, tensor: Any) -> Port:
    return Port(name, tuple(tensor.shape[1:]), str(tensor.dtype))
