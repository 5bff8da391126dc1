"""What the rows of a data layer are. Runs on the driver.

Paddle's configurations do not say it: its data providers did, in the words that are kept here. What a network does with
a data layer tells most of it, the DataFrame's columns tell the rest, and a user may say it outright.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from keraunos.compat.paddle.model_config import LayerConfig, ModelConfig
from keraunos.errors import JobError, one_of

DENSE_VECTOR, INTEGER_VALUE, SPARSE_BINARY_VECTOR = "dense_vector", "integer_value", "sparse_binary_vector"
SEQUENCE = "_sequence"
KINDS = (
    DENSE_VECTOR,
    INTEGER_VALUE,
    SPARSE_BINARY_VECTOR,
    DENSE_VECTOR + SEQUENCE,
    INTEGER_VALUE + SEQUENCE,
)

# Costs whose second input is a class number.
_LABELLED = frozenset(
    {
        "multi-class-cross-entropy",
        "multi_class_cross_entropy_with_selfnorm",
        "huber",
        "crf",
        "crf_decoding",
        "ctc",
        "warp_ctc",
        "nce",
        "hsigmoid",
        "classification_error",
    }
)
# Those among them that take sequences of labels, and layers that take sequences and nothing else.
_OF_SEQUENCES = frozenset({"crf", "crf_decoding", "ctc", "warp_ctc"})


@dataclass(frozen=True)
class DataKind:
    """What one data layer takes.

    Attributes:
        name: one of `KINDS`.
        image: height, width and channels, where rows are images as Spark's image tables have them.
    """

    name: str
    image: tuple[int, int, int] | None = None

    def __post_init__(self) -> None:
        if self.name not in KINDS:
            raise JobError(one_of("input type", self.name, KINDS))

    @property
    def is_sequence(self) -> bool:
        """Whether a row is a sequence."""
        return self.name.endswith(SEQUENCE)

    @property
    def element(self) -> str:
        """What a row is, or a step of it."""
        return self.name.removesuffix(SEQUENCE)


def inferred(model: ModelConfig, given: Mapping[str, DataKind] | None = None) -> dict[str, DataKind]:
    """What each data layer takes: as given, otherwise as the network uses it."""
    given = dict(given or {})
    data = [layer for layer in model.layers if layer.type == "data"]
    unknown = sorted(set(given) - {layer.name for layer in data})
    if unknown:
        raise JobError(one_of("data layer", unknown[0], [layer.name for layer in data]))
    return {layer.name: given.get(layer.name) or DataKind(_used_as(model, layer)) for layer in data}


def _used_as(model: ModelConfig, data: LayerConfig) -> str:
    for layer in model.layers:
        for at, each in enumerate(layer.inputs):
            if each.layer != data.name:
                continue
            if each.settings.get("proj", {}).get("type") == "table":
                return INTEGER_VALUE
            if layer.type in _LABELLED and at == 1:
                return INTEGER_VALUE + (SEQUENCE if layer.type in _OF_SEQUENCES else "")
            if layer.type == "multiplex" and at == 0:
                return INTEGER_VALUE
    return DENSE_VECTOR
