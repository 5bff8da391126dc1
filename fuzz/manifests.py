"""What tells of a saved training or model: manifests, the noted program, spark.ml's metadata, folders of graphs.

Every file is changed as its owner could change it, with the right checksum. Only the project's own errors come of that,
nothing outside of the folder is opened, and no module is imported that nobody trusts.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from fuzz.choices import Choices
from fuzz.json_values import INTEGERS, Values
from fuzz.watch import watched
from keraunos.checkpoints.checkpoint import Checkpoint
from keraunos.checkpoints.folder import LocalFolder
from keraunos.checkpoints.sealed_json import seal, unseal
from keraunos.checkpoints.store import JOB_FILE, MANIFEST_FILE, WRITER_FILE, CheckpointStore
from keraunos.cli.resume import _noted
from keraunos.errors import KeraunosError
from keraunos.launch.lap_book import LapBook
from keraunos.launch.program import PROGRAM_FILE, Program
from keraunos.launch.saver import Resumed
from keraunos.ml.estimator import KerasEstimator, KerasModel
from keraunos.ml.persistence import restored
from tests.security import malicious_folders
from tests.security.malicious_archives import MODULE

_IDENTITY = {"model": "m", "exchange": {"rule": "mean", "every": 1}, "columns": ["a", "b"]}
_FACTS = {
    "epochs": 2, "steps": None, "first_epoch": 0, "learning_rate": None, "ranks": [[0, 3], [1, 3]],
    "decided": {"lap": 0, "learning_rate": None, "last": False}, "laps_done": [[0, 1], [1, 1]],
    "steps_traced": [[0, 2], [1, 2]], "hooks": [], "book": LapBook().keep()[0],
    "slices": [{"rounds": [[0, 3], [1, 3]], "contributed": [[0, 9]], "applied": 3}],
}  # fmt: skip
_ARRAYS = {
    "rank-0": [np.ones((2, 2), np.float32), np.zeros(0, np.float32)],
    "rank-1": [np.ones((2, 2), np.float32), np.zeros(0, np.float32)],
    "slice-0": [np.ones(4, np.float32), np.zeros(0, np.float32)],
    "book": [np.ones(2)],
}
_PROGRAM = Program(("python", "train.py"), ("--epochs", "3"), "/", submitted=False).to_json()
_RULE = {"name": "sgd", "options": {"learning_rate": 0.1}, "home": None}
_KERAS_RULE = {
    "name": "keras",
    "options": {"module": "keras.optimizers", "class_name": "SGD", "config": {"learning_rate": 0.1}},
    "home": None,
}
_PARAMS = {
    "epochs": 2, "batchSize": 4, "rule": _RULE, "featuresCol": "features", "numWorkers": 1, "trustedModules": [MODULE],
    "exchange": {"send": "updates", "every": 1, "meet": "synchronous", "rule": "mean"}, "classWeight": [[0, 1.0]],
}  # fmt: skip
_WORDS = (
    "format", "number", "facts", "groups", "file", "size", "blake2b", "arrays", "<f4", "<f8", "|O", "bfloat16", "V4",
    "finfo", "__name__", "__path__", "(2,2)f4", "({", "rank-0.bin", "../secret", "/etc/hostname", "/etc/passwd",
    "model.keras", "history.json", "rule.npz", "file:///etc/hostname", MODULE, f"{MODULE}:mark", "os:system", "keras",
    "builtins", "name", "home", "options", "class_name", "module", "config", "registered_name", "sgd", "mean",
    "elastic", "uid", "paramMap", "trustedModules", "rule", "initialModel", "keraunos.compat.zoo.rules:BigDLSGD",
    "x:0", "out:0",
)  # fmt: skip


def one(data: bytes) -> None:
    """Write one of the files, changed, and read it as the product does."""
    choices = Choices(data)
    way = choices.pick((_checkpoint, _claim, _writer, _program, _fitted, _estimator, _graph))
    with tempfile.TemporaryDirectory(prefix="fuzz-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        read = way(choices, folder)
        with watched([name], [MODULE, "antigravity", "this"]), contextlib.suppress(KeraunosError):
            read()


def seeds() -> Iterator[bytes]:
    """Each file, nearly as it is written."""
    for way in range(7):
        yield bytes([way, *[0] * 6, 1, 5])
        for change in range(12):
            yield bytes([way, change, 1, 0, 2, 3, 1, 4, change, 0, 1, 5, 2, 2])
            yield bytes([way, 0, 0, 0, 0, 1, change, 1, change, 5, 3, 1])


def _checkpoint(choices: Choices, folder: Path) -> Callable[[], None]:
    for name, content in _written().items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    file = folder / "checkpoint-000000000002" / MANIFEST_FILE
    file.write_bytes(_content(choices, unseal(file.read_bytes())))

    def read() -> None:
        found = CheckpointStore(LocalFolder(folder)).latest()
        assert found is not None
        held = sum(array.nbytes for group in found.arrays.values() for array in group)
        assert held <= sum(each.stat().st_size for each in folder.rglob("*.bin"))
        schedule = SimpleNamespace(schedule=SimpleNamespace(epochs=2, steps=None))
        resumed = Resumed(found, cast("Any", schedule))
        resumed.standing()
        resumed.hooks()

    return read


def _claim(choices: Choices, folder: Path) -> Callable[[], None]:
    (folder / JOB_FILE).write_bytes(_content(choices, {"format": 2, "identity": json.loads(json.dumps(_IDENTITY))}))
    return lambda: CheckpointStore(LocalFolder(folder)).claim(_IDENTITY, ["columns"])


def _writer(choices: Choices, folder: Path) -> Callable[[], None]:
    store = CheckpointStore(LocalFolder(folder))
    store.take_over()
    values = Values(choices, _WORDS)
    content = values.edited({"token": "t", "host": "h", "process": 1})
    (folder / WRITER_FILE).write_bytes(json.dumps(content).encode() if choices.below(4) else _garbage(choices))
    return store._check_writer


def _program(choices: Choices, folder: Path) -> Callable[[], None]:
    content = Values(choices, _WORDS).edited(json.loads(json.dumps(_PROGRAM)))
    data = json.dumps(content).encode() if choices.below(4) else _garbage(choices)
    (folder / PROGRAM_FILE).write_bytes(data)
    (folder / PROGRAM_FILE).chmod(choices.pick((0o600, 0o666)))

    def read() -> None:
        found = _noted(str(folder))
        assert all(isinstance(word, str) for word in (*found.command, *found.arguments, found.folder))
        found.why_not()

    return read


def _fitted(choices: Choices, folder: Path) -> Callable[[], None]:
    """spark.ml's metadata of a fitted model, with its files."""
    facts = {
        "signature": malicious_folders.SIGNATURE, "backend": "jax", "floatx": "float32", "head": None,
        "rule": choices.pick((_RULE, _KERAS_RULE)), "lengths": {},
    }  # fmt: skip
    files = {"model.keras": _archive(), "history.json": b'{"epochs": [{"loss": 1.0}]}', "rule.npz": _npz()}
    if choices.below(4) == 3:
        history = Values(choices, _WORDS).edited(json.loads(files["history.json"]))
        files["history.json"] = json.dumps(history).encode() if choices.below(4) else _garbage(choices)
    if choices.below(4) == 3:
        files["rule.npz"] = _bytes_changed(choices, files["rule.npz"])
    return _metadata(choices, folder, KerasModel, facts, files)


def _estimator(choices: Choices, folder: Path) -> Callable[[], None]:
    return _metadata(choices, folder, KerasEstimator, {}, {})


def _metadata(
    choices: Choices, folder: Path, kind: Any, facts: dict[str, Any], files: dict[str, bytes]
) -> Callable[[], None]:
    for name, content in files.items():
        (folder / name).write_bytes(content)
    metadata = {
        "class": f"{kind.__module__}.{kind.__name__}", "timestamp": 0, "sparkVersion": "4.0.0", "uid": "u",
        "paramMap": _PARAMS if kind is KerasEstimator else {"featuresCol": "features"}, "defaultParamMap": {},
        "keraunos": {"facts": facts, "custom_objects": {}, "files": sorted(files)},
    }  # fmt: skip
    values = Values(choices, _WORDS, [each for each in INTEGERS if abs(each) < 1 << 32])
    changed = values.edited(json.loads(json.dumps(metadata)), 3)
    return lambda: restored(kind, changed, lambda name: (folder / name).read_bytes(), str(folder)) and None


def _graph(choices: Choices, folder: Path) -> Callable[[], None]:
    """A folder with a frozen TensorFlow graph, where there is TensorFlow."""
    if importlib.util.find_spec("tensorflow") is None:
        return lambda: None
    from keraunos.compat.zoo.frozen_graph import GRAPH_FILE, META_FILE, FrozenGraph, read_folder

    meta: Any = {"input_names": ["x:0"], "output_names": ["out:0"], "variables": ["w:0"], "trainable": True}
    way = choices.below(3)
    graph = _bytes_changed(choices, _frozen()) if way == 0 else _frozen()
    if way == 1:
        meta = Values(choices, _WORDS).edited(meta)
    (folder / META_FILE).write_bytes(_garbage(choices) if choices.below(8) == 7 else json.dumps(meta).encode())
    (folder / GRAPH_FILE).write_bytes(graph)
    if way == 2:
        told = FrozenGraph(_frozen(), ("x:0",), ("out:0",)).to_json()
        changed = Values(choices, _WORDS).edited(json.loads(json.dumps(told)))
        return lambda: FrozenGraph.from_json(changed) and None
    return lambda: read_folder(str(folder)) and None


def _content(choices: Choices, told: Any) -> bytes:
    """A sealed file: changed and sealed again, or with any content."""
    way = choices.below(8)
    if way == 7:
        return _garbage(choices)
    if way == 6:
        return _resealed(_garbage(choices))
    try:
        return seal(Values(choices, _WORDS).edited(told))
    except UnicodeEncodeError:
        return b""


def _resealed(body: bytes) -> bytes:
    placeholder = seal("")
    from keraunos.checkpoints import sealed_json

    digits = sealed_json._digits(body)
    return placeholder[: len(sealed_json._BEFORE)] + digits + sealed_json._BETWEEN + body + sealed_json._AFTER


def _garbage(choices: Choices) -> bytes:
    way = choices.below(4)
    return choices.take() if way < 3 else choices.pick((b"[", b'{"a":', b"\xff", b"1")) * choices.pick((1, 600, 90_000))


def _bytes_changed(choices: Choices, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(1 + choices.below(6)):
        place = (choices.byte() << 8 | choices.byte()) % (len(changed) + 1)
        way = choices.below(3)
        if way == 0:
            changed[place : place + 1] = choices.take(1)
        elif way == 1:
            changed[place : place + choices.byte()] = b""
        else:
            changed[place:place] = choices.piece()
    return bytes(changed)


@cache
def _written() -> dict[str, bytes]:
    """The files of a folder with two whole checkpoints."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        store = CheckpointStore(LocalFolder(name))
        store.write(Checkpoint(1, _FACTS, _ARRAYS))
        store.write(Checkpoint(2, _FACTS, _ARRAYS))
        return {str(each.relative_to(name)): each.read_bytes() for each in Path(name).rglob("*") if each.is_file()}


@cache
def _archive() -> bytes:
    return malicious_folders.plain_archive()


@cache
def _npz() -> bytes:
    held = io.BytesIO()
    np.savez(held, **{"0": np.zeros(2)})
    return held.getvalue()


@cache
def _frozen() -> bytes:
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [None, 2], name="x")
        tf.matmul(x, tf.constant([[1.0], [2.0]], name="w"), name="out")
    return bytes(graph.as_graph_def().SerializeToString())
