"""`.keras` archives and `.h5` files: changed in their configuration, their weights and the bytes of the zip file.

Whatever they name, no module that nobody trusts is imported, nothing is started and no file elsewhere is opened; what
cannot be read ends with one of the project's own errors.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np

from fuzz.choices import Choices
from fuzz.json_values import SMALL, Values
from fuzz.manifests import _bytes_changed
from fuzz.watch import scratch_folder, watched
from keraunos.errors import KeraunosError
from keraunos.learners.archive_optimizer import without_optimizer
from keraunos.learners.archive_parts import arrays_in
from keraunos.learners.keras_archive import check_archive, from_archive, to_archive
from keraunos.learners.keras_files import check_keras_2_file, read_file
from tests.security import malicious_archives as made

_NOWHERE = Path("/nowhere/marker")
_WORDS = (
    made.MODULE, "Marking", "mark", "antigravity", "this", "os", "system", "builtins", "eval", "exec", "__main__",
    "keras", "keras.layers", "keras.src.layers", "keras.utils", "keras.saving", "keras.src.utils.file_utils",
    "keras.activations", "keras.losses", "keras.optimizers", "keras.initializers", "tf_keras", "tensorflow.raw_ops",
    "Dense", "Lambda", "Sequential", "Functional", "InputLayer", "TFSMLayer", "StringLookup", "TimeDistributed",
    "__lambda__", "__typespec__", "__tensor__", "__numpy__", "__class_type__", "__ellipsis__", "function", "relu",
    "get_file", "load_model", "deserialize", "module", "class_name", "config", "registered_name", "name", "layers",
    "vocabulary", "function_type", "lambda", "compile_config", "build_config", "activation", "dtype", "spec_name",
    "batch_shape", "units", "/etc/hostname", "/nowhere/marker", "keras.layers.Dense", "utils.get_file", "float32",
    "lora", "trainable", "variables", "seeds", "no_decay", "pattern", "shared_object_id", "mse", "sgd", "adam",
)  # fmt: skip


def one(data: bytes) -> None:
    """Change a file in one of several ways, and read it."""
    choices = Choices(data)
    read = choices.pick((_config, _config, _config, _zip, _weights, _extras, _old, _arrays))(choices)
    with watched([scratch_folder()], [made.MODULE, "antigravity", "this"]), contextlib.suppress(KeraunosError):
        read()
    assert made.MODULE not in sys.modules
    assert not _NOWHERE.exists()


def seeds() -> Iterator[bytes]:
    """Each way, with each of the configurations nearly as it is."""
    for number in range(len(_configs())):
        yield bytes([0, number, 0, 0, 0, 0, 4, 1])
        yield bytes([0, number, 1, 1, 0, 2, 3, number, 1, 2, 3, 4, 5])
        yield bytes([6, number, 0, 1, 0, 0, 4])
    for way in (3, 4, 5, 7):
        for number in range(8):
            yield bytes([way, number, 2, number, 40, 0, 7, 1, 3, 1, 30 * number, 1, 4])


def _config(choices: Choices) -> Callable[[], Any]:
    """An archive with a changed configuration, and with the files that Keraunos adds."""
    config = _changed(choices)
    archive = made.archive(config, {"keraunos.json": json.dumps(_facts())} if choices.below(4) == 3 else None)
    if choices.below(4) == 3:
        return lambda: check_archive(archive)
    return lambda: from_archive(archive)


def _zip(choices: Choices) -> Callable[[], Any]:
    """Any bytes of the file, those of the zip's own lists most of all."""
    archive = _plain() if choices.below(2) else made.archive(_configs()[0], compression=zipfile.ZIP_DEFLATED)
    ends = archive.rfind(b"PK\1\2", 0, archive.find(b"PK\5\6")) if choices.below(2) else 0
    archive = archive[:ends] + _bytes_changed(choices, archive[ends:])
    if choices.below(2):
        return lambda: without_optimizer(archive)
    return lambda: from_archive(archive)


def _weights(choices: Choices) -> Callable[[], Any]:
    """An archive whose file of weights was changed."""
    with zipfile.ZipFile(io.BytesIO(_plain())) as parts:
        files = {name: parts.read(name) for name in parts.namelist()}
    files["model.weights.h5"] = _bytes_changed(choices, files["model.weights.h5"])
    archive = _zipped(files)
    return lambda: from_archive(archive)


def _extras(choices: Choices) -> Callable[[], Any]:
    """An archive whose own facts, beside Keras's, were changed."""
    with zipfile.ZipFile(io.BytesIO(_plain())) as parts:
        files = {name: parts.read(name) for name in parts.namelist()}
    name = choices.pick(("keraunos.json", "metadata.json"))
    changed = Values(choices, _WORDS, SMALL).edited(json.loads(files[name]), 4)
    files[name] = json.dumps(changed).encode() if choices.below(8) else choices.take()
    archive = _zipped(files)
    return lambda: from_archive(archive)


def _old(choices: Choices) -> Callable[[], Any]:
    """An `.h5` file, whose configuration is in its attributes."""
    config = _changed(choices)
    folder = tempfile.mkdtemp(prefix="fuzz-")
    path = Path(folder, "model.h5")
    with h5py.File(path, "w") as file:
        file.attrs["model_config"] = json.dumps(config)[:60_000]
        file.create_group("model_weights")
    reads = choices.pick((read_file, check_keras_2_file))

    def read() -> None:
        try:
            reads(path)
        finally:
            path.unlink()
            path.parent.rmdir()

    return read


def _arrays(choices: Choices) -> Callable[[], Any]:
    """An npz file."""
    changed = _bytes_changed(choices, made.zeros_npz(0) if choices.below(2) else _npz())
    return lambda: arrays_in(changed)


def _changed(choices: Choices) -> Any:
    config = json.loads(json.dumps(choices.pick(_configs())))
    return Values(choices, _WORDS, SMALL).edited(config, 6) if choices.below(8) else config


def _zipped(files: dict[str, bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as parts:
        for name, content in files.items():
            parts.writestr(name, content)
    return held.getvalue()


@cache
def _configs() -> list[Any]:
    with zipfile.ZipFile(io.BytesIO(_plain())) as parts:
        plain = json.loads(parts.read("config.json"))
    return [plain, *(config for config, _ in made.malicious(_NOWHERE).values())]


@cache
def _plain() -> bytes:
    inputs = keras.Input((2,), name="input")
    hidden = keras.layers.Dense(2, name="hidden", activation="relu")(inputs)
    model = keras.Model(inputs, keras.layers.Dense(1, name="output")(keras.layers.Dropout(0.5)(hidden)))
    model.compile("adam", "mse")
    return to_archive(model)


@cache
def _facts() -> Any:
    with zipfile.ZipFile(io.BytesIO(_plain())) as parts:
        return json.loads(parts.read("keraunos.json"))


@cache
def _npz() -> bytes:
    held = io.BytesIO()
    np.savez(held, a=np.arange(6.0).reshape(2, 3), b=np.array("text"))
    return held.getvalue()
