"""Analytics Zoo's `zoo.util.tf`: a session's graph as a folder. Runs on the driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keraunos.compat.zoo.frozen_graph import export_folder


def export_tf(
    sess: Any,
    folder: str,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    generate_backward: bool = False,
    allow_non_differentiable_input: bool = True,
) -> None:
    """Write the part of a session's graph that leads from `inputs` to `outputs`, with its values, to a folder.

    The folder gets `frozen_inference_graph.pb` and `graph_meta.json`, which `TFNet.from_export_folder` reads.

    Args:
        sess: the session.
        folder: a folder of this machine, or under any Hadoop path.
        inputs: the tensors that are fed.
        outputs: the tensors that are computed.
        generate_backward: whether the variables may be trained where the graph is read.
        allow_non_differentiable_input: whether, with `generate_backward`, an input may have no gradient.
    """
    export_folder(
        sess,
        folder,
        inputs,
        outputs,
        generate_backward=generate_backward,
        allow_non_differentiable_input=allow_non_differentiable_input,
    )
