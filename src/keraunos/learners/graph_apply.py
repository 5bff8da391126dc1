"""The part of a training operation that applies gradients, without the part that computes them. Runs on workers.

A graph's `train_op` usually asks for more than the gradients: batch statistics move first, a loss is returned. To apply
the gradient of all workers only what changes variables by the gradients is wanted, and no batch is at hand. So the
nodes behind `train_op` are copied as far as they can be computed from the gradients, the variables and the constants.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from keraunos.errors import ModelError
from keraunos.learners.graph_analysis import PLACEHOLDERS, READERS, VARIABLES
from keraunos.learners.graph_checks import shown


@dataclass(frozen=True)
class Application:
    """A GraphDef to be copied in, the tensors to be put in place of its missing inputs, and the nodes to be run."""

    definition: Any
    missing: tuple[str, ...]
    writers: tuple[str, ...]


def application_of(definition: Any, train_op: str, given: Collection[str], trained: Collection[str]) -> Application:
    """What `train_op` does to variables once the tensors in `given` have their values."""
    nodes = {node.name: node for node in definition.node}
    out_of_reach = _after_placeholders(nodes, given)
    behind = _behind(nodes, [train_op], given)
    writers = [name for name in behind if name not in out_of_reach and _changed_by(nodes[name], nodes)]
    changed = {each for name in writers for each in _changed_by(nodes[name], nodes)}
    untouched = [name for name in trained if name not in changed]
    if untouched:
        raise ModelError(
            "`train_op` must change every trained variable by what is given for `gradients`, without a batch. "
            f"Received: one that does not for {shown(untouched)}. Give the tensors that its optimizer's "
            "apply_gradients was given, or let workers take whole steps, as with send='updates'."
        )
    copied = _behind(nodes, writers, given) - out_of_reach
    copied -= {name for name in copied if nodes[name].op in VARIABLES}
    kept = type(definition)(library=definition.library, versions=definition.versions)
    missing: set[str] = set()
    for name in sorted(copied):
        node = kept.node.add()
        node.CopyFrom(nodes[name])
        inputs = [each for each in node.input if not each.startswith("^") or each[1:] in copied]
        del node.input[:]
        node.input.extend(inputs)
        missing.update(each for each in map(_tensor, inputs) if each in given or _node(each) not in copied)
        if "_class" in node.attr:
            del node.attr["_class"]
    return Application(kept, tuple(sorted(missing)), tuple(writers))


def _after_placeholders(nodes: Mapping[str, Any], given: Collection[str]) -> set[str]:
    """The nodes that need a placeholder, except where a given tensor stands between."""
    consumers = defaultdict(list)
    for node in nodes.values():
        for each in node.input:
            if not each.startswith("^") and _tensor(each) not in given:
                consumers[_node(each)].append(node.name)
    waiting = [node.name for node in nodes.values() if node.op in PLACEHOLDERS]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(consumers[name])
    return found


def _behind(nodes: Mapping[str, Any], names: Collection[str], given: Collection[str]) -> set[str]:
    """The nodes that these need, except for those that only a given tensor needs."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(_node(each) for each in nodes[name].input if _tensor(each) not in given)
    return found


def _changed_by(node: Any, nodes: Mapping[str, Any]) -> list[str]:
    """The variables that a node gets hold of, unless it is known to read them only."""
    if node.op in READERS:
        return []
    return [_node(each) for each in node.input if not each.startswith("^") and nodes[_node(each)].op in VARIABLES]


def _tensor(text: str) -> str:
    return text if ":" in text or text.startswith("^") else f"{text}:0"


def _node(text: str) -> str:
    return text.removeprefix("^").partition(":")[0]
