"""What a built Keras model takes and gives: names, shapes and types. Runs on the driver; plain data on workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keraunos.errors import ModelError
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

    @classmethod
    def of(cls, model: Any, examples: Any = None) -> Signature:
        """The signature of a built model; `examples` are its symbolic inputs where the model itself has none."""
        if getattr(model, "_functional", None) is not None or hasattr(model, "_inputs_struct"):
            inputs = tuple(_port(name, tensor) for name, tensor in named_inputs(model).items())
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


def named_inputs(model: Any) -> dict[str, Any]:
    """The symbolic inputs of a functional model, or of a built Sequential, by the names that columns are given for."""
    struct = getattr(model, "_inputs_struct", None)
    if isinstance(struct, Mapping):
        return {str(name): tensor for name, tensor in struct.items()}
    return {str(tensor.name): tensor for tensor in model.inputs}


def _outputs(model: Any, outputs: Any) -> tuple[Port, ...]:
    """Named as a learner names what it predicts: by key, by the model's own names, or by number."""
    if isinstance(outputs, Mapping):
        return tuple(_port(str(name), tensor) for name, tensor in outputs.items())
    tensors = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    names = getattr(model, "output_names", None) or [f"output_{i + 1}" for i in range(len(tensors))]
    return tuple(_port(name, tensor) for name, tensor in zip(names, tensors, strict=True))


def _port(name: str, tensor: Any) -> Port:
    return Port(name, tuple(tensor.shape[1:]), str(tensor.dtype))
