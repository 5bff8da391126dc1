"""Shuffles of `tf.data` pipelines that have no seed. Runs on the driver.

Each task runs the whole pipeline and keeps some of its elements, so that all of them must see one order.
"""

from __future__ import annotations

from typing import Any


def with_seeds(graph: bytes) -> bytes:
    """Returns the pipeline with a seed for every shuffle that has none; the same ones every time."""
    from tensorflow.core.framework import graph_pb2

    parsed = graph_pb2.GraphDef.FromString(graph)
    constants = {node.name: node for node in parsed.node if node.op == "Const"}
    unseeded = [node for node in parsed.node if node.op.startswith("Shuffle") and _has_no_seed(node, constants)]
    for number, node in enumerate(unseeded, 1):
        for place in (2, 3):
            name = f"keraunos_seed_{number}_{place}"
            parsed.node.append(_constant(name, number))
            node.input[place] = name
    return bytes(parsed.SerializeToString()) if unseeded else graph


def _has_no_seed(node: Any, constants: dict[str, Any]) -> bool:
    """Returns whether both of its seeds are constants of 0, which means no seed."""
    from tensorflow.python.framework import tensor_util

    given = [constants.get(name.partition(":")[0]) for name in node.input[2:4]]
    if len(given) < 2:
        return False
    return all(each is not None and not tensor_util.MakeNdarray(each.attr["value"].tensor).any() for each in given)


def _constant(name: str, value: int) -> Any:
    import numpy as np
    from tensorflow.core.framework import node_def_pb2
    from tensorflow.python.framework import tensor_util

    node = node_def_pb2.NodeDef(name=name, op="Const")
    tensor = tensor_util.make_tensor_proto(np.int64(value))
    node.attr["value"].tensor.CopyFrom(tensor)
    node.attr["dtype"].type = tensor.dtype
    return node
