"""The types of data layers' rows. Runs on the driver.

Paddle's configurations do not declare it: its data providers did, with the names used here. The network's use of
a data layer determines most of it, the DataFrame's columns the rest, and a user may declare it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from keraunos.compat.paddle.lowering.call import layer_type
from keraunos.compat.paddle.lowering.step_flow import sequences
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

# Layers whose second input is a class number, or a sequence of them.
_LABELLED = frozenset(
    {
        "multi-class-cross-entropy",
        "multi_class_cross_entropy_with_selfnorm",
        "huber",
        "crf",
        "crf_decoding",
        "ctc",
        "warp_ctc",
        "classification_error",
        "auc-validation",
        "pnpair-validation",
    }
)
# Other inputs that are ids, by type and place.
_IDS = frozenset({("multiplex", 0), ("subseq", 1), ("subseq", 2), ("eos_id", 0)})
_LABELLED_EVALUATORS = frozenset(
    {
        "classification_error",
        "seq_classification_error",
        "precision_recall",
        "chunk",
        "ctc_edit_distance",
        "pnpair",
        "last-column-auc",
    }
)


@dataclass(frozen=True)
class DataKind:
    """The type of one data layer.

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
        """The type of a row, or of a step of it."""
        return self.name.removesuffix(SEQUENCE)


def inferred(model: ModelConfig, given: Mapping[str, DataKind] | None = None) -> dict[str, DataKind]:
    """Returns the type of each data layer: as given, otherwise from its use in the network."""
    given = dict(given or {})
    data = [layer for layer in model.layers if layer.type == "data"]
    unknown = sorted(set(given) - {layer.name for layer in data})
    if unknown:
        raise JobError(one_of("data layer", unknown[0], [layer.name for layer in data]))
    known = [name for name, kind in given.items() if kind.is_sequence]
    costs = [layer.name for layer in model.layers if layer.type != "data" and layer_type(layer.type).is_cost]
    steps = sequences(model, costs, known)
    return {layer.name: given.get(layer.name) or _used_as(model, layer, layer.name in steps) for layer in data}


def _used_as(model: ModelConfig, data: LayerConfig, is_sequence: bool) -> DataKind:
    element = next(_elements(model, data.name), DENSE_VECTOR)
    return DataKind(element + SEQUENCE if is_sequence and element != SPARSE_BINARY_VECTOR else element)


def _elements(model: ModelConfig, name: str) -> Iterator[str]:
    """Yields the kind of step that each use of a data layer expects, as far as the use determines it."""
    for layer in model.layers:
        for at, each in enumerate(layer.inputs):
            if each.layer == name and (told := _element(layer, at)) is not None:
                yield told
    for evaluator in model.evaluators:
        if evaluator.type in _LABELLED_EVALUATORS and name in evaluator.input_layers[1:2]:
            yield INTEGER_VALUE


def _element(layer: LayerConfig, at: int) -> str | None:
    if layer.inputs[at].settings.get("proj", {}).get("type") == "table" or (layer.type, at) in _IDS:
        return INTEGER_VALUE
    if layer.type in _LABELLED and at == 1:
        return INTEGER_VALUE
    if layer.type in ("nce", "hsigmoid"):
        # The label comes after the inputs that have weights.
        return INTEGER_VALUE if at == sum(each.parameter is not None for each in layer.inputs) else None
    last = len(layer.inputs) - 1
    if layer.type == "selective_fc" and at == last and layer.attributes.get("has_selected_colums", True):
        return SPARSE_BINARY_VECTOR
    return None
