"""`zoo.pipeline.api.net.Net`: models and graphs from files. Runs on the driver."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NoReturn

from keraunos.compat.zoo import frozen_graph
from keraunos.compat.zoo.frozen_graph import FrozenGraph
from keraunos.compat.zoo.pipeline.api.keras.models import KerasNet, net_around
from keraunos.compat.zoo.pipeline.api.keras.weight_files import read_weights
from keraunos.compat.zoo.pipeline.api.net.graph_net import GraphNet, with_trained_constants
from keraunos.compat.zoo.tensorflow_mode import tensorflow_2
from keraunos.errors import JobError, ModelError
from keraunos.launch.given_paths import given_path
from keraunos.launch.session_trust import session_trust
from keraunos.learners.keras_files import checked_config, read_file
from keraunos.trust import trusting

SAVED_MODEL = "saved_model.pb"


class Net:
    """Where programs load what was trained before."""

    @staticmethod
    def load(model_path: str, weight_path: str | None = None, bigdl_type: str = "float") -> KerasNet:
        """The `Sequential` or `Model` that `save` or `saveModel` wrote, with other weights if they are named."""
        _check_type(bigdl_type)
        found = KerasNet.load(model_path)
        if weight_path is not None:
            found.set_weights(read_weights(weight_path))
        return found

    @staticmethod
    def load_tf(
        path: str,
        inputs: str | Sequence[str] | None = None,
        outputs: str | Sequence[str] | None = None,
        byte_order: str = "little_endian",
        bin_file: str | None = None,
        bigdl_type: str = "float",
    ) -> GraphNet:
        """Returns a TensorFlow graph, whose weights are trained where it is a layer of a model.

        Args:
            path: a folder that `export_tf` wrote, a SavedModel, or, with `inputs` and `outputs`, a file with a frozen
                graph.
            inputs: the names of the tensors that are fed.
            outputs: the names of the tensors that are computed.
            byte_order: must be "little_endian".
            bin_file: must be left out: weights are in the graph.
            bigdl_type: must be "float".
        """
        _check_type(bigdl_type)
        if byte_order != "little_endian":
            raise JobError(f"`byte_order` must be 'little_endian'. Received: {byte_order!r}.")
        if bin_file is not None:
            raise JobError(f"`bin_file` must be left out. Received: {bin_file!r}. Freeze the weights into the graph.")
        return GraphNet(
            None, graph=with_trained_constants(_graph_at(path, _names(inputs), _names(outputs))), trainable=True
        )

    @staticmethod
    def load_keras(json_path: str | None = None, hdf5_path: str | None = None, by_name: bool = False) -> KerasNet:
        """The model that Keras described as JSON, or wrote whole as HDF5; with both, the latter has the weights.

        Args:
            json_path: what `to_json` returned.
            hdf5_path: what `save` or, with `json_path`, `save_weights` wrote.
            by_name: whether only the weights of layers whose names are known are read.
        """
        if json_path is None and (hdf5_path is None or by_name):
            raise JobError(
                "`json_path` must be given, or `hdf5_path` of a whole model without `by_name`. Received: "
                f"json_path={json_path!r}, hdf5_path={hdf5_path!r}, by_name={by_name!r}."
            )
        with tensorflow_2(), trusting(*session_trust()):
            if json_path is None:
                with given_path(str(hdf5_path), "hdf5_path").local() as file:
                    return net_around(read_file(file))
            model = _from_json(json_path)
            if hdf5_path is not None:
                _load_weights(model, hdf5_path, by_name=by_name)
            return net_around(model)

    @staticmethod
    def load_bigdl(model_path: str, *_: Any, **__: Any) -> NoReturn:
        """Refused: only BigDL reads its files."""
        raise _foreign("load_bigdl", "BigDL's own format", model_path)

    @staticmethod
    def load_torch(path: str, *_: Any, **__: Any) -> NoReturn:
        """Refused: these are files of Lua's Torch."""
        raise _foreign("load_torch", "the format of Torch 7", path)

    @staticmethod
    def load_caffe(def_path: str, *_: Any, **__: Any) -> NoReturn:
        """Refused: only Caffe reads its files."""
        raise _foreign("load_caffe", "Caffe's format", def_path)


def _graph_at(path: str, inputs: Sequence[str] | None, outputs: Sequence[str] | None) -> FrozenGraph:
    place = given_path(path)
    if place.child(SAVED_MODEL).exists():
        return frozen_graph.read_saved_model(path, inputs=inputs, outputs=outputs)
    if place.exists() and not place.is_folder():
        return frozen_graph.read_file(path, inputs, outputs)
    return frozen_graph.read_folder(path, inputs, outputs)[0]


def _from_json(path: str) -> Any:
    import keras

    text = given_path(path, "json_path").read().decode()
    try:
        needed = checked_config(json.loads(text), {})
        return keras.models.model_from_json(text, custom_objects=needed)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(
            f"`json_path` must hold a model that today's Keras reads. Received: {str(path)!r} "
            f"({' '.join(str(error).split())[:200]}). Build a model of an older Keras again, with "
            "zoo.pipeline.api.keras.layers."
        ) from error


def _load_weights(model: Any, path: str, *, by_name: bool) -> None:
    from keraunos.learners.archive_parts import check_hdf5

    options = {"by_name": True, "skip_mismatch": False} if by_name else {}
    try:
        with given_path(path, "hdf5_path").local() as file:
            check_hdf5(file.read_bytes())
            model.load_weights(str(file), **options)
    except ModelError:
        raise
    except (LookupError, OSError, TypeError, ValueError) as error:
        raise ModelError(
            f"`hdf5_path` must hold weights of the model in `json_path`. Received: {str(path)!r} "
            f"({' '.join(str(error).split())[:200]})."
        ) from error


def _names(given: str | Sequence[str] | None) -> list[str] | None:
    if given is None:
        return None
    return [given] if isinstance(given, str) else list(given)


def _check_type(bigdl_type: str) -> None:
    if bigdl_type != "float":
        raise JobError(f"`bigdl_type` must be 'float'. Received: {bigdl_type!r}.")


def _foreign(name: str, what: str, path: Any) -> JobError:
    return JobError(
        f"Net.{name} must be replaced: {what} is not read here. Received: {path!r}. Export the model as a TensorFlow "
        "graph for Net.load_tf, or build it of zoo.pipeline.api.keras.layers and set its weights."
    )
