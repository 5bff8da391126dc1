"""Determines which layers of a network return sequences, from their use in the network. Runs on the driver.

Most layers take each step of a sequence as its own row: all that they take and what they give are sequences
together, or none is. Some layers take sequences and nothing else, some give them. What is said of one layer so holds
for all that it shares its steps with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from keraunos.compat.paddle.model_config import EvaluatorConfig, LayerConfig, ModelConfig

# Types with their own rule: the inputs that must be sequences. They share no steps, or determine it themselves.
_TAKES: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("recurrent", "lstmemory", "gated_recurrent", "mdlstmemory"), (0,)),
    **dict.fromkeys(("max", "average", "seqlastins", "seqfirstins", "seqreshape", "subseq"), (0,)),
    **dict.fromkeys(("seqconcat", "crf", "crf_decoding", "ctc", "warp_ctc", "lambda_cost"), (0, 1)),
    "expand": (1,),
    "blockexpand": (),
    "trans": (),
    "resize": (),
}
_GIVES = frozenset(
    {
        "recurrent", "lstmemory", "gated_recurrent", "mdlstmemory", "seqconcat", "seqreshape", "subseq", "expand",
        "crf_decoding", "blockexpand",
    }
)  # fmt: skip
# Evaluators that compare step by step, and those that compare sequences of different lengths.
_STEP_BY_STEP = frozenset(
    {"classification_error", "seq_classification_error", "precision_recall", "chunk", "pnpair", "last-column-auc"}
)
_OF_SEQUENCES = frozenset({"chunk", "ctc_edit_distance", "seq_classification_error"})


def sequences(model: ModelConfig, costs: Iterable[str], known: Iterable[str] = ()) -> set[str]:
    """Returns the names of the layers that return sequences.

    Args:
        model: the network.
        costs: the layers among them that return one number per row, whatever their inputs.
        known: layers that are known to return sequences.
    """
    groups = _Groups(layer.name for layer in model.layers)
    apart = set(costs)
    found = set(known)
    for layer in model.layers:
        found.update(_told(layer))
        for one, other in _sharing(layer, is_cost=layer.name in apart):
            groups.join(one, other)
    for evaluator in model.evaluators:
        if evaluator.type in _OF_SEQUENCES:
            found.update(evaluator.input_layers)
        for one, other in _compared(evaluator):
            groups.join(one, other)
    marked = {groups.root(name) for name in found}
    return {layer.name for layer in model.layers if groups.root(layer.name) in marked}


def _told(layer: LayerConfig) -> Iterator[str]:
    """Yields the layers that must return sequences because of this one."""
    for at in _TAKES.get(layer.type, ()):
        if at < len(layer.inputs):
            yield layer.inputs[at].layer
    if layer.type in _GIVES or layer.active_type == "sequence_softmax":
        yield layer.name
    for each in layer.inputs:
        if each.settings.get("proj", {}).get("type") == "context":
            yield each.layer


def _sharing(layer: LayerConfig, *, is_cost: bool) -> Iterator[tuple[str, str]]:
    """Pairs of layers that are sequences together."""
    names = [each.layer for each in layer.inputs]
    if layer.type in _TAKES or not names:
        return
    if layer.type == "selective_fc" and layer.attributes.get("has_selected_colums", True):
        names.pop()
    if not is_cost:
        names.append(layer.name)
    for name in names[1:]:
        yield names[0], name


def _compared(evaluator: EvaluatorConfig) -> Iterator[tuple[str, str]]:
    if evaluator.type in _STEP_BY_STEP:
        for name in evaluator.input_layers[1:]:
            yield evaluator.input_layers[0], name


class _Groups:
    """Names that belong together, each group known by one of them."""

    def __init__(self, names: Iterable[str]) -> None:
        self._above = {name: name for name in names}

    def root(self, name: str) -> str:
        """Returns the representative name of the group."""
        while self._above[name] != name:
            name = self._above[name]
        return name

    def join(self, one: str, other: str) -> None:
        """Make one group of the groups of both."""
        self._above[self.root(one)] = self.root(other)
