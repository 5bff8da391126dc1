"""What parts of a TensorFlow graph need, read and write. Runs on the driver.

Works on the operations and tensors of a live graph; TensorFlow itself is not imported.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

VARIABLES = frozenset({"VarHandleOp", "VariableV2", "Variable"})
PLACEHOLDERS = frozenset({"Placeholder", "PlaceholderV2"})
PYTHON = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})

# What hands a variable on, without looking at its value.
_HAND_ON = frozenset({"Switch", "Enter", "Merge", "RefSwitch", "RefEnter", "RefMerge", "RefIdentity"})

# What looks at a variable and leaves it as it is.
READERS = frozenset(
    {
        "ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape", "VarIsInitializedOp", "Identity",
        "IsVariableInitialized",
    }
)  # fmt: skip


def closure(operations: Iterable[Any], fed: Collection[str] = ()) -> dict[str, Any]:
    """Every operation, by name, that these need, and they themselves; what makes a fed tensor is not needed."""
    found: dict[str, Any] = {}
    waiting = list(operations)
    while waiting:
        operation = waiting.pop()
        if operation.name in found:
            continue
        found[operation.name] = operation
        waiting.extend(operation.control_inputs)
        waiting.extend(tensor.op for tensor in operation.inputs if tensor.name not in fed)
    return found


def variables_in(operations: Iterable[Any]) -> list[Any]:
    """The operations that are variables, in the order of their creation."""
    found = [operation for operation in operations if operation.type in VARIABLES]
    return sorted(found, key=lambda operation: int(operation._id))


def written_in(operations: dict[str, Any]) -> set[str]:
    """The names of the variables that one of these operations may change."""
    return {variable.name for variable in variables_in(operations.values()) if _is_written(variable, operations)}


def _is_written(variable: Any, operations: dict[str, Any]) -> bool:
    waiting, seen = list(variable.outputs), set()
    while waiting:
        tensor = waiting.pop()
        for consumer in tensor.consumers():
            if consumer.name not in operations or (consumer.name, tensor.name) in seen:
                continue
            seen.add((consumer.name, tensor.name))
            if consumer.type in _HAND_ON:
                waiting.extend(consumer.outputs)
            elif _writes(consumer, tensor):
                return True
    return False


def _writes(consumer: Any, tensor: Any) -> bool:
    if tensor.dtype.name == "resource":
        # Whatever is not known to read only, such as a call of a function, may write.
        return consumer.type not in READERS
    if not tensor.dtype._is_ref_dtype:
        return False
    arguments = consumer.op_def.input_arg
    places = [i for i, each in enumerate(consumer.inputs) if each is tensor]
    return any(arguments[min(place, len(arguments) - 1)].is_ref for place in places)


def pruned(definition: Any, names: Collection[str]) -> None:
    """Leave only the named nodes in a GraphDef, and nothing in them that refers to the others or to other machines."""
    kept = [node for node in definition.node if node.name in names]
    for node in kept:
        if "/job:" in node.device:
            node.device = ""
        colocated = node.attr["_class"].list.s if "_class" in node.attr else []
        wanted = [each for each in colocated if each.decode().removeprefix("loc:@") in names]
        if len(wanted) != len(colocated):
            del node.attr["_class"].list.s[:]
            node.attr["_class"].list.s.extend(wanted)
            if not wanted:
                del node.attr["_class"]
    copies = [type(node).FromString(node.SerializeToString()) for node in kept]
    del definition.node[:]
    definition.node.extend(copies)
