"""What a TensorFlow graph that was read from a file may do. Runs on the driver and on workers.

A graph is a program. Most of its operations compute; some read and write files, speak to other machines or call
Python. Those are refused by name in a graph of a file, in the functions of its library too, unless the user trusts
them: as `tensorflow.raw_ops.ReadFile`, or all of them as `tensorflow.raw_ops`, in `spark.keraunos.trustedModules`. A
graph that is built in this process is the user's own, and is not checked.

A checkpoint's own operations that save and restore are left in a graph: the loader gives them the path. Whatever else
is run may not depend on them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from keraunos.errors import ModelError
from keraunos.trust import RAW_OPERATIONS, how_to_trust, is_trusted

# A checkpoint's own. The path is given by whoever restores.
_SAVING = frozenset(
    {
        "MergeV2Checkpoints", "Restore", "RestoreSlice", "RestoreV2", "Save", "SaveSlices", "SaveV2",
    }
)  # fmt: skip
_RESTORING = frozenset({"Restore", "RestoreSlice", "RestoreV2"})
_TABLES = frozenset({"InitializeTableFromTextFile", "InitializeTableFromTextFileV2"})
_TEXT = 7  # TensorFlow's number for strings
_PASS_ON = frozenset({"Identity", "StringJoin", "ShardedFilename", "PlaceholderWithDefault"})

_REFUSED = re.compile(
    r"""
    PyFunc|PyFuncStateless|EagerPyFunc                             # they call Python
    |ReadFile|WriteFile|MatchingFiles|WholeFileReader(V2)?|LMDBReader|IdentityReader(V2)?
    |(FixedLengthRecord|TFRecord|TextLine)Reader(V2)?|Reader[A-Z]\w*|RecordInput
    |(Experimental)?(CSV|FixedLengthRecord|LMDB|MatchingFiles|Sql|TFRecord|TextLine|Cache|Load|Save)Dataset(V\d)?
    |(Experimental)?DatasetToTFRecord|DatasetFromGraph|\w*Snapshot\w*Dataset\w*|SnapshotDataset\w*
    |DataService\w*|RegisterDataset\w*|DistributedSave
    |CreateSummary\w*|SummaryWriter|ImportEvent|Write\w*Summary|FlushSummaryWriter|CloseSummaryWriter
    |StatsAggregatorSetSummaryWriter|DebugIdentity\w*|DebugNanCount|DebugNumericSummary\w*
    |FileSystemSetConfiguration|LoadAndRemapMatrix|GenerateVocabRemapping|CheckpointHasTensor
    |InitializeTRTResource|TRTEngineOp|XlaCustomCall\w*|\w*LoadLibrary\w*
    |_?(Host)?Send|_?(Host)?Recv|RemoteCall|Rpc\w*|TryRpc|Collective\w*|\w*Bigtable\w*|Kafka\w*
    |ConfigureDistributedTPU|ConfigureAndInitializeGlobalTPU
    """,
    re.VERBOSE,
)


def check_graph(definition: Any, what: str, *, saving: bool = False, assets: Collection[str] = ()) -> None:
    """Refuse a graph with operations that touch more than its inputs.

    Args:
        definition: the GraphDef, with the functions of its library.
        what: what an error calls the graph, as "the graph of 'model.meta'".
        saving: whether a checkpoint's own operations may be in it; `check_reached` says what may depend on them.
        assets: the names of the operations that give the paths of the model's own files.
    """
    files = _Files(definition, assets)
    for node, place in _nodes(definition):
        own = (saving and node.op in _SAVING) or (node.op in _TABLES and files.is_given(node, place, 1))
        if not own:
            _check_node(node, place, what)


def check_reached(
    definition: Any, ends: Iterable[str], what: str, *, fed: Collection[str] = (), assets: Collection[str] = ()
) -> None:
    """Refuse what depends on operations that touch more than the graph's inputs, those of checkpoints included.

    Args:
        definition: the GraphDef.
        ends: the names of the operations that are run.
        what: what an error calls the graph.
        fed: the names of the operations whose values are given.
        assets: the names of the operations that give the paths of the model's own files.
    """
    files = _Files(definition, assets)
    for node, place in _reached(definition, ends, fed):
        own = bool(assets) and node.op in _TABLES and files.is_given(node, place, 1)
        if not own:
            _check_node(node, place, what)
        if assets and files.names_file(node, place):
            raise _refused(node, place, what)


def check_restoring(definition: Any, restore: str, path: str, what: str) -> None:
    """Refuse a checkpoint's own operations where they would restore from another place than they are told.

    Args:
        definition: the GraphDef.
        restore: the name of the operation that restores.
        path: the name of the operation whose value is the checkpoint's path.
        what: what an error calls the graph.
    """
    files = _Files(definition, {path})
    for node, place in _reached(definition, [restore], {path}):
        own = node.op in _RESTORING and files.is_given(node, place, 0)
        if not own:
            _check_node(node, place, what)
        if files.names_file(node, place):
            raise _refused(node, place, what)


class _Files:
    """Where the file names in a graph come from; `paths` are the operations whose value the loader gives."""

    def __init__(self, definition: Any, paths: Collection[str]) -> None:
        self._paths = paths
        self._scopes: dict[str | None, dict[str, Any]] = {None: {node.name: node for node in definition.node}}
        self._given: dict[str | None, set[str]] = {None: set(paths)}
        for function in definition.library.function:
            name = function.signature.name
            self._scopes[name] = {node.name: node for node in function.node_def}
            self._given[name] = {each.name for each in function.signature.input_arg}
        self._takes_files = self._callers()

    def is_given(self, node: Any, place: str | None, number: int) -> bool:
        """Whether an input of a node is a path of the loader's, or an argument of the function that it is in."""
        if len(node.input) <= number:
            return False
        name = _plain(node.input[number])
        for _ in range(len(self._scopes[place]) + 1):
            if name in self._given[place]:
                return True
            source = self._scopes[place].get(name)
            if source is None or source.op not in _PASS_ON or not source.input:
                return False
            name = _plain(source.input[0])
        return False

    def names_file(self, node: Any, place: str | None) -> bool:
        """Whether a node calls a function that opens files, with a text of its own among the arguments."""
        if not self._takes_files.intersection(_functions_of(node)):
            return False
        sources = [self._scopes[place].get(_plain(each)) for each in node.input]
        texts = [
            each for each in sources if each is not None and each.op == "Const" and each.attr["dtype"].type == _TEXT
        ]
        return any(place is not None or each.name not in self._paths for each in texts)

    def _callers(self) -> set[str]:
        """The functions in which files are opened, or that call such functions."""
        found = {
            name
            for name, nodes in self._scopes.items()
            if name is not None and any(node.op in {*_SAVING, *_TABLES} for node in nodes.values())
        }
        for _ in self._scopes:
            more = {
                name
                for name, nodes in self._scopes.items()
                if name is not None and any(found.intersection(_functions_of(node)) for node in nodes.values())
            }
            if more <= found:
                break
            found |= more
        return found


def _check_node(node: Any, place: str | None, what: str) -> None:
    to_file = node.op == "PrintV2" and node.attr["output_stream"].s.startswith(b"file:")
    if (to_file or node.op in {*_SAVING, *_TABLES} or _REFUSED.fullmatch(node.op)) and not is_trusted(
        f"{RAW_OPERATIONS}.{node.op}"
    ):
        raise _refused(node, place, what)


def _refused(node: Any, place: str | None, what: str) -> ModelError:
    where = "" if place is None else f" in the function {place!r}"
    return ModelError(
        f"The operation {node.name!r} of type {node.op!r}{where} of {what} is not trusted, because it touches files, "
        f"other machines or Python. Expected: operations that compute. Received: {node.op!r}. "
        f"{how_to_trust(f'{RAW_OPERATIONS}.{node.op}')}."
    )


def _nodes(definition: Any) -> Iterator[tuple[Any, str | None]]:
    for node in definition.node:
        yield node, None
    for function in definition.library.function:
        for node in function.node_def:
            yield node, function.signature.name


def _reached(definition: Any, ends: Iterable[str], fed: Collection[str]) -> Iterator[tuple[Any, str | None]]:
    """The nodes that these depend on, and those of the functions that they call, whatever calls them."""
    nodes = {node.name: node for node in definition.node}
    functions = {function.signature.name: function for function in definition.library.function}
    found: set[str] = set()
    called: set[str] = set()
    waiting = [_plain(name) for name in ends]
    while waiting:
        name = waiting.pop()
        if name in found or name in fed or name not in nodes:
            continue
        found.add(name)
        yield nodes[name], None
        waiting += [_plain(each) for each in nodes[name].input]
        called |= set(_functions_of(nodes[name]))
    # A function that has a gradient of its own may have it called in its place.
    gradients = {each.function_name: each.gradient_func for each in definition.library.gradient}
    seen: set[str] = set()
    while called - seen:
        name = (called - seen).pop()
        seen.add(name)
        called |= {gradients[name]} if name in gradients else set()
        for node in functions[name].node_def if name in functions else ():
            yield node, name
            called |= set(_functions_of(node))


def _functions_of(node: Any) -> Iterator[str]:
    # An operation may be a function itself, by its type.
    yield node.op
    for value in node.attr.values():
        if value.HasField("func"):
            yield value.func.name
        for each in value.list.func:
            yield each.name


def _plain(name: str) -> str:
    return name.removeprefix("^").partition(":")[0]
