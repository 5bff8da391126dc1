"""Where the layer types of the language are found. Runs on the driver."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from keraunos.compat.paddle.language_values import unknown
from keraunos.errors import ModelError

if TYPE_CHECKING:
    from keraunos.compat.paddle.layer_types.draft import Draft

_FAMILIES = (
    "dense",
    "images",
    "image_shapes",
    "mixed",
    "arithmetic",
    "sequences",
    "recurrent",
    "costs",
    "structured_costs",
)

_GROUPS = (
    "recurrent groups, memories, generation and beam search are not run here. The nearest are layers of type "
    "'lstmemory', 'gated_recurrent' and 'recurrent', which go through a whole sequence"
)

# Types of Paddle that cannot be had, and why.
REFUSED = {
    **dict.fromkeys(
        (
            "agent", "sequence_agent", "gather_agent", "sequence_gather_agent", "scatter_agent",
            "sequence_scatter_agent", "recurrent_layer_group", "memory", "beam_search", "lstm_step", "gru_step",
            "gru_step_naive",
        ),
        _GROUPS,
    ),
    "classification_error": "it is an evaluator: write Evaluator(name=…, type='classification_error', inputs=…)",
    "print": "nothing is printed while tasks train. Transform a DataFrame and look at the layer's column instead",
    "priorbox": "layers of object detection are not run here",
    "detection_output": "layers of object detection are not run here",
    "multibox_loss": "layers of object detection are not run here",
}  # fmt: skip


@dataclass(frozen=True)
class LayerType:
    """One type of layers.

    Attributes:
        name: what `type=` calls it.
        class_name: the name of Paddle's class, which can be called as well.
        build: completes a draft: size, parameters, settings of inputs.
        inputs: the least and the most inputs; `None` for any number.
        bias: whether it has one by default; `None` if it cannot have one.
        active_type: its default activation.
        attributes: what else it takes, with defaults; `REQUIRED` if there is none.
        reads: the arguments of `Input` for it besides the parameter: `conv`, `pool` …
        keeps_image: whether its output is an image of the same size as its first input.
        is_cost: whether it is a cost.
        positional: the order of the class's arguments.
    """

    name: str
    class_name: str
    build: Callable[[Draft], None]
    inputs: tuple[int, int | None] = (1, 1)
    bias: bool | None = None
    active_type: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    reads: str = ""
    keeps_image: bool = False
    is_cost: bool = False
    positional: tuple[str, ...] = ("name", "inputs")


REQUIRED = object()
LAYER_TYPES: dict[str, LayerType] = {}


def layer_type(
    name: str, class_name: str, **about: Any
) -> Callable[[Callable[[Draft], None]], Callable[[Draft], None]]:
    """Register the function that completes drafts of a type; `about` are fields of `LayerType`."""

    def register(build: Callable[[Draft], None]) -> Callable[[Draft], None]:
        LAYER_TYPES[name] = LayerType(name, class_name, build, **about)
        return build

    return register


def all_types() -> Mapping[str, LayerType]:
    """Returns every type, by name."""
    for family in _FAMILIES:
        importlib.import_module(f"keraunos.compat.paddle.layer_types.{family}")
    return MappingProxyType(LAYER_TYPES)


def type_named(layer: str, name: str) -> LayerType:
    """Returns the type of that name, which a layer asks for."""
    if name in REFUSED:
        raise ModelError(
            f"Layer {layer!r} is of type {name!r}, which is not there: {REFUSED[name]}. Received: {name!r}."
        )
    known = all_types()
    if name not in known:
        raise ModelError(f"Layer {layer!r}: " + unknown("the language", "layer type", name, known))
    return known[name]
