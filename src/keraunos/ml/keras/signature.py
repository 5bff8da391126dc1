"""What a built Keras model takes and gives. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keraunos.errors import ModelError
from keraunos.ml.signature import Port, Signature


def signature_of(model: Any, examples: Any = None) -> Signature:
    """The signature of a built model; `examples` are its symbolic inputs where the model itself has none."""
    if getattr(model, "_functional", None) is not None or hasattr(model, "_inputs_struct"):
        inputs = tuple(_port(name, tensor) for name, tensor in named_inputs(model).items())
        from keraunos.learners.keras_archive import output_structure

        return Signature(inputs, _outputs(model, output_structure(model)))
    if examples is None:
        raise ModelError(
            f"The outputs of the model {model.name!r} must be known. Received: a subclassed model whose inputs "
            "are unknown. Give the columns of its inputs in `featuresCol`."
        )
    return Signature((), _outputs(model, model.compute_output_spec(examples)))


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
