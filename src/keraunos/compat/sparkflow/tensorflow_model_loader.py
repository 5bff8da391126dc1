"""SparkFlow's `tensorflow_model_loader`: trained TensorFlow models as stages of a pipeline. Runs on the driver.

A model is a checkpoint of TensorFlow 1.x (`name.meta`, `name.index` and `name.data-…`) or a SavedModel directory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.ml import PipelineModel

from keraunos.compat.sparkflow.graph_model import GraphModel
from keraunos.compat.sparkflow.tensorflow_async import SparkAsyncDLModel
from keraunos.errors import JobError, ModelError
from keraunos.launch.given_paths import GivenPath, given_path
from keraunos.launch.session_trust import session_trust
from keraunos.learners.graph_files import check_saved_model, read_meta_graph
from keraunos.trust import trusted_operations, trusting


def load_tensorflow_model(
    path: str,
    inputCol: str,
    tfInput: str,
    tfOutput: str,
    predictionCol: str = "predicted",
    tfDropout: str | None = None,
    toKeepDropout: bool = False,
) -> SparkAsyncDLModel:
    """Returns the model at a path as a Transformer.

    Args:
        path: the checkpoint's prefix, as `tf.train.Saver.save` returned it, or a SavedModel directory; on this machine
            or under any Hadoop path.
        inputCol: the column with the features.
        tfInput: the tensor that takes them; for a SavedModel also the name of an input of its serving signature.
        tfOutput: the tensor that predicts; for a SavedModel also the name of an output of its serving signature.
        predictionCol: the column that is added.
        tfDropout: the placeholder for dropout.
        toKeepDropout: whether that is the fraction that is kept.
    """
    with trusting(*session_trust()), _restored(path) as (session, names):
        asked = {
            "tfInput": names.get(tfInput, tfInput),
            "tfOutput": names.get(tfOutput, tfOutput),
            "tfDropout": tfDropout,
            "toKeepDropout": toKeepDropout,
        }
        loaded = SparkAsyncDLModel(inputCol=inputCol, predictionCol=predictionCol, **asked)
        loaded = loaded.holding(_graph_model(session, loaded))
        # Wrong names raise an error now, and not in the first `transform`.
        loaded._source()
    return loaded


def attach_tensorflow_model_to_pipeline(
    path: str,
    pipelineModel: PipelineModel,
    inputCol: str,
    tfInput: str,
    tfOutput: str,
    predictionCol: str = "predicted",
    tfDropout: str | None = None,
    toKeepDropout: bool = False,
) -> PipelineModel:
    """Returns a pipeline that ends with the model at a path; the arguments are those of `load_tensorflow_model`."""
    loaded = load_tensorflow_model(path, inputCol, tfInput, tfOutput, predictionCol, tfDropout, toKeepDropout)
    return PipelineModel([pipelineModel, loaded])


@contextmanager
def _restored(path: str) -> Iterator[tuple[Any, dict[str, str]]]:
    """A session with the model at a path, and its tensors by the names that a serving signature has for them."""
    import tensorflow as tf

    config = tf.compat.v1.ConfigProto(device_count={"GPU": 0})
    with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph, config=config) as session:
        given = given_path(path)
        if given.is_folder():
            with given.local() as folder:
                names = _load_saved_model(session, path, str(folder))
        else:
            names = {}
            with given.local_prefix() as prefix:
                _restore_checkpoint(session, given, str(prefix))
        yield session, names


def _restore_checkpoint(session: Any, given: GivenPath, prefix: str) -> None:
    """The checkpoint of that very name, and not the newest beside it."""
    import tensorflow as tf

    for ending in (".meta", ".index"):
        if not Path(prefix + ending).exists():
            names = given.parent().names()
            near = ", ".join(repr(each.removesuffix(".meta")) for each in names if each.endswith(".meta"))
            raise JobError(
                "`path` must be the prefix of a TensorFlow checkpoint, or a SavedModel directory. Received: "
                f"{given.text!r}, and there is no {given.text + ending!r}. Checkpoints there: {near or 'none'}."
            )
    meta = read_meta_graph(Path(prefix + ".meta"))
    saver = tf.compat.v1.train.import_meta_graph(meta, clear_devices=True)
    if saver is None:
        raise ModelError(f"The graph in {given.text + '.meta'!r} must have variables to restore. Received: none.")
    saver.restore(session, prefix)


def _load_saved_model(session: Any, path: str, folder: str) -> dict[str, str]:
    import tensorflow as tf

    check_saved_model(folder)
    try:
        loaded = tf.compat.v1.saved_model.load(session, [tf.saved_model.SERVING], folder)
    except (OSError, RuntimeError, ValueError) as error:
        raise JobError(
            "`path` must be the prefix of a TensorFlow checkpoint, or a SavedModel directory for serving. "
            f"Received: {path!r} ({error})."
        ) from error
    if "serving_default" not in loaded.signature_def:
        return {}
    signature = loaded.signature_def["serving_default"]
    return {name: info.name for part in (signature.inputs, signature.outputs) for name, info in part.items()}


def _graph_model(session: Any, asked: SparkAsyncDLModel) -> GraphModel:
    """The graph of a session with the values of its trainable variables and of all that the prediction needs."""
    import tensorflow as tf
    from google.protobuf import json_format

    from keraunos.compat.sparkflow import metagraph

    graph = session.graph
    output = metagraph.tensor(graph, asked.getTfOutput(), "tfOutput")
    needed = metagraph.needed_variables([output], [asked.getTfInput(), asked.getTfDropout()])
    text = json_format.MessageToJson(tf.compat.v1.train.export_meta_graph(graph=graph))
    trainable, others = metagraph.variables(graph)
    kept = [*trainable, *(each for each in others if each.name in needed)]
    return GraphModel(text, metagraph.values_of(session, kept), trusted_operations())
