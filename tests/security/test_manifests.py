"""The manifest of a checkpoint is a file like any other: what it claims is looked at before it is believed."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from keraunos.checkpoints.checkpoint import Checkpoint
from keraunos.checkpoints.folder import LocalFolder
from keraunos.checkpoints.sealed_json import seal, unseal
from keraunos.checkpoints.store import CheckpointStore
from keraunos.errors import CheckpointError
from keraunos.launch.callbacks import KerasCallbacks


def changed(manifest, **group):
    return {**manifest, "groups": {"parameters": {**manifest["groups"]["parameters"], **group}}}


LIES = {
    "a file above": lambda each: changed(each, file="../../secret.bin"),
    "a file elsewhere": lambda each: changed(each, file="/etc/hostname"),
    "a group above": lambda each: {**each, "groups": {"../../secret": each["groups"]["parameters"]}},
    "another file of the folder": lambda each: changed(each, file="manifest.json"),
    "a size beyond any memory": lambda each: changed(each, arrays=[["float64", [1 << 50]]], size=1 << 53),
    "arrays beyond any memory": lambda each: changed(each, arrays=[["float64", [1 << 50]]]),
    "a negative shape": lambda each: changed(each, arrays=[["float32", [-4]]]),
    "two negative shapes": lambda each: changed(each, arrays=[["float32", [-2, -2]]]),
    "a shape of texts": lambda each: changed(each, arrays=[["float32", ["4"]]]),
    "a shape that is none": lambda each: changed(each, arrays=[["float32", 4]]),
    "python objects": lambda each: changed(each, arrays=[["object", [2]]]),
    "a type that is none": lambda each: changed(each, arrays=[["finfo", [4]]]),
    "a size that is a text": lambda each: changed(each, size="16"),
    "no groups": lambda each: {**each, "groups": None},
    "groups in a list": lambda each: {**each, "groups": [1, 2]},
    "no facts": lambda each: {**each, "facts": 3},
    "nothing": lambda each: {},
    "a list": lambda each: [],
}


@pytest.mark.parametrize("lie", sorted(LIES))
def test_a_manifest_that_lies_is_skipped(lie, tmp_path, caplog):
    secret = tmp_path / "secret.bin"
    secret.write_bytes(np.arange(4, dtype=np.float32).tobytes())
    folder = tmp_path / "checkpoints"
    store = CheckpointStore(LocalFolder(str(folder)))
    store.write(Checkpoint(1, {"good": True}, {"parameters": [np.ones(4, np.float32)]}))
    store.write(Checkpoint(2, {"good": False}, {"parameters": [np.arange(4, dtype=np.float32)]}))
    file = folder / "checkpoint-000000000002" / "manifest.json"
    file.write_bytes(bytes(seal(LIES[lie](unseal(file.read_bytes())))))
    found = store.latest()
    assert found is not None
    assert found.number == 1
    assert "is incomplete and is skipped" in caplog.text


def test_a_manifest_that_never_ends_is_skipped(tmp_path):
    folder = tmp_path / "checkpoints"
    store = CheckpointStore(LocalFolder(str(folder)))
    store.write(Checkpoint(1, {}, {"parameters": [np.ones(4, np.float32)]}))
    file = folder / "checkpoint-000000000001" / "manifest.json"
    deep = "[" * 200_000
    whole = bytes(seal("replaced")).replace(json.dumps("replaced").encode(), deep.encode())
    file.write_bytes(whole)
    with pytest.raises(CheckpointError, match="No checkpoint"):
        store.latest()


def test_a_checkpoint_does_not_say_where_a_callback_writes_nor_what_it_does(tmp_path):
    class Remembering:
        def __init__(self):
            self.filepath = str(tmp_path / "mine" / "model.keras")
            self.best = 3.0
            self.word = "warm"
            self.function = len

        def on_epoch_end(self, epoch, logs=None):
            """What it does."""

    callback = Remembering()
    hooks = KerasCallbacks([callback], epochs=3, goes_on=True)
    hooks._list = SimpleNamespace(on_epoch_begin=lambda epoch: None)
    told = {
        "filepath": "/somewhere/else.keras",
        "best": 1.5,
        "word": "cold",
        "wait": 2,
        "function": "text",
        "on_epoch_end": "text",
        "__class__": "text",
    }
    facts = {"callbacks": [{name: {"value": value} for name, value in told.items()}], "logs": {}}
    hooks.go_on_from(facts, [], 1)
    assert callback.filepath == str(tmp_path / "mine" / "model.keras")
    assert (callback.best, callback.word, callback.wait, callback.function) == (1.5, "cold", 2, len)
    assert callable(callback.on_epoch_end)
