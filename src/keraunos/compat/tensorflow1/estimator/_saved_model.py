"""A model of an `Estimator` as a SavedModel. Runs on the driver."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keraunos.compat.tensorflow1 import _mode
from keraunos.compat.tensorflow1.estimator._specs import EstimatorSpec
from keraunos.compat.tensorflow1.estimator.export import ExportOutput, PredictOutput

_v1 = _mode.tensorflow_1()
_DEFAULT = "serving_default"


def write_saved_model(session: Any, base: str, receiver: Any, spec: EstimatorSpec) -> bytes:
    """Write a session's model into a folder that is named by the time. Returns its path."""
    folder = Path(base, str(int(time.time())))
    while folder.exists():
        folder = folder.with_name(str(int(folder.name) + 1))
    inputs = {name: _v1.saved_model.build_tensor_info(each) for name, each in receiver.receiver_tensors.items()}
    signatures = {}
    for name, output in _outputs(spec).items():
        tensors = {key: _v1.saved_model.build_tensor_info(each) for key, each in output.tensors().items()}
        signatures[name] = _v1.saved_model.build_signature_def(inputs, tensors, output.method)
    builder = _v1.saved_model.Builder(str(folder))
    builder.add_meta_graph_and_variables(
        session,
        [_v1.saved_model.tag_constants.SERVING],
        signature_def_map=signatures,
        main_op=_v1.tables_initializer(),
    )
    builder.save()
    return str(folder).encode()


def _outputs(spec: EstimatorSpec) -> dict[str, ExportOutput]:
    given = spec.export_outputs
    outputs: dict[str, ExportOutput] = dict(given) if isinstance(given, Mapping) else {}
    if not outputs:
        raise ValueError(
            "`export_outputs` must be given in the EstimatorSpec of a model that is exported. Received: none. Give "
            "{'serving_default': tf.estimator.export.PredictOutput(predictions)}."
        )
    if _DEFAULT not in outputs:
        if len(outputs) > 1:
            raise ValueError(f"One of several `export_outputs` must be {_DEFAULT!r}. Received: {sorted(outputs)}.")
        outputs[_DEFAULT] = next(iter(outputs.values()))
    wrong = [name for name, each in outputs.items() if not isinstance(each, ExportOutput)]
    if wrong:
        raise ValueError(
            f"`export_outputs` must be {PredictOutput.__name__} or the like. Received: {outputs[wrong[0]]!r}."
        )
    return outputs
