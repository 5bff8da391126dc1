"""A Keras model that exists, as a fitted one is kept: from memory, from a file, or from another fitted model.

Runs on the driver.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keraunos.errors import ModelError
from keraunos.launch.session_trust import session_trust
from keraunos.learners.framework_imports import import_keras
from keraunos.ml.keras.embeddings import with_ids
from keraunos.ml.keras.signature import signature_of
from keraunos.ml.model import FittedModel
from keraunos.ml.signature import Signature
from keraunos.session.registry import session_of
from keraunos.trust import trusting

_ZIP = b"PK"


@dataclass(frozen=True)
class Existing:
    """The live model, its archive with the custom code that travels with it, and what it takes and gives."""

    model: Any
    archive: bytes
    custom_objects: Mapping[str, Any]
    signature: Signature
    backend: str
    floatx: str
    trusted: tuple[str, ...] = ()


def existing(given: Any, layer: str | Sequence[str] | None, custom_objects: Mapping[str, Any]) -> Existing:
    """What is to be served: the model that was given, or the part of it that ends in `layer`.

    Args:
        given: a live Keras model, compiled or not; the path of a `.keras` file; or a fitted model.
        layer: the name of a layer, or several, whose outputs are served in place of the model's own.
        custom_objects: custom code that the model needs.
    """
    keras = import_keras()
    from keraunos.learners.custom_code import check_portable
    from keraunos.learners.keras_archive import check_archive, write_live
    from keraunos.learners.model_parts import part_of

    backend, floatx = keras.config.backend(), keras.config.floatx()
    archive, signature = None, None
    trusted: tuple[str, ...] = ()
    if isinstance(given, FittedModel):
        model, archive, signature = given.model, given._trained.archive, given._trained.signature
        backend, floatx, trusted = given._trained.backend, given._trained.floatx, given._trained.trusted
    elif isinstance(given, str | os.PathLike):
        archive = _read(given)
        with trusting(*session_trust()):
            model = _model_in(archive, given, custom_objects)
            trusted = check_archive(archive, custom_objects)
        check_portable(archive, custom_objects)
    elif isinstance(given, keras.Model):
        model = given
    else:
        raise ModelError(
            f"`model` must be a Keras 3 model, the path of a .keras file, or a fitted model. Received: {type(given)!r}."
        )
    _check_built(model)
    if layer is not None:
        with keras.saving.custom_object_scope(dict(custom_objects)):
            model, archive, signature = part_of(model, layer), None, None
    code = custom_objects
    if archive is None:
        written = write_live(model, custom_objects)
        archive, code, trusted = written.archive, written.code, written.trusted
    return Existing(
        model=model,
        archive=archive,
        custom_objects=code,
        signature=with_ids(model, _signature(model))[0] if signature is None else signature,
        backend=backend,
        floatx=floatx,
        trusted=trusted,
    )


def symbolic_inputs(model: Any) -> Any:
    """Symbolic inputs of a model with a `call` of its own, of the shapes that it was built for."""
    import keras

    built = model.get_build_config() or {}
    shapes = built.get("input_shape")
    is_list = isinstance(shapes, list | tuple) and bool(shapes) and isinstance(shapes[0], list | tuple)
    if shapes is None or is_list:
        raise ModelError(
            f"The model {model.name!r} must take one input, or a dict of inputs, to be served. Received: a "
            f"{type(model).__name__} that was built for {built!r}. Give its `call` one argument, a tensor or a "
            "dict, or build a functional model around it."
        )

    def tensor(shape: Any) -> Any:
        return keras.KerasTensor((None, *shape[1:]), dtype=keras.config.floatx())

    if isinstance(shapes, Mapping):
        return {name: tensor(shape) for name, shape in shapes.items()}
    return tensor(shapes)


def _read(given: str | os.PathLike[str]) -> bytes:
    """The file's content: of a local file where there is one, and otherwise of what Hadoop finds under the path."""
    path = os.fspath(given)
    if not isinstance(path, str) or not path:
        raise ModelError(f"`model` must be the path of a .keras file. Received: {given!r}.")
    content = Path(path).read_bytes() if Path(path).is_file() else _read_by_hadoop(path)
    if not content.startswith(_ZIP):
        raise ModelError(
            f"`model` must be the path of a .keras file, as `model.save` writes it. Received: {path!r}, a file of "
            "another format. Read it with the Keras that wrote it, and save it again as .keras."
        )
    return content


def _read_by_hadoop(path: str) -> bytes:
    from py4j.protocol import Py4JError
    from pyspark.sql import SparkSession

    try:
        folder = session_of(SparkSession.builder.getOrCreate()).folder(path)
        if folder.has("metadata"):
            raise ModelError(
                f"`model` must be the path of a .keras file. Received: {path!r}, a folder that a fitted model was "
                "saved to. Read it with the `load` of its class."
            )
        if not folder.exists():
            raise ModelError(f"`model` must be the path of a .keras file. Received: {path!r}, where there is none.")
        return folder.read("")
    except Py4JError as error:
        raise ModelError(
            f"`model` must be the path of a .keras file. Received: {path!r}, which Hadoop cannot read: "
            f"{' '.join(str(error).split())[:300]}"
        ) from error


def _model_in(archive: bytes, given: Any, custom_objects: Mapping[str, Any]) -> Any:
    from keraunos.learners.keras_archive import from_archive

    try:
        return from_archive(archive, custom_objects)
    except KeyError as error:
        raise ModelError(
            f"`model` must be the path of a .keras file, as `model.save` writes it. Received: {given!r}, an archive "
            "without a model."
        ) from error


def _check_built(model: Any) -> None:
    if not model.built:
        raise ModelError(
            f"The model {model.name!r} must know the shapes of its inputs before it can be served. Received: a model "
            "that was not built. Call it once on a batch of rows, or begin it with keras.Input."
        )


def _signature(model: Any) -> Signature:
    from keraunos.learners.model_parts import graph_of

    if graph_of(model) is not None:
        return signature_of(model)
    return signature_of(model, symbolic_inputs(model))
