"""Keras's layers that only TensorFlow can run, whatever Keras itself runs on. Runs on the driver and on workers.

They take strings, or look numbers up as strings: text to word numbers, values to their places in a vocabulary, hashes.
Keras imports TensorFlow for them by itself. Here is what has to be known before: whether a model needs it, whether it
is installed, and whether vocabularies are there.
"""

from __future__ import annotations

import importlib.util
from typing import Any

from keraunos import scratch
from keraunos.errors import ModelError
from keraunos.learners.archive_parts import config_of

NAMES = ("HashedCrossing", "Hashing", "IntegerLookup", "StringLookup", "TextVectorization")
STRING = "string"


def in_archive(archive: bytes) -> bool:
    """Whether the model in a `.keras` archive has such a layer, or takes strings."""
    return _needed(config_of(archive))


def in_model(model: Any) -> list[Any]:
    """The layers of a model, and of the models in it, that only TensorFlow can run."""
    return [layer for layer in model._flatten_layers() if is_one(layer)]


def is_one(layer: Any) -> bool:
    """Whether this is one of the layers, or of a class made from one."""
    return any(kind.__name__ in NAMES and kind.__module__.partition(".")[0] == "keras" for kind in type(layer).__mro__)


def check_installed(what: str) -> None:
    """Raise where a model needs TensorFlow and it is not installed in this process's environment."""
    if importlib.util.find_spec("tensorflow") is None:
        raise ModelError(
            f"{what} has layers that only TensorFlow can run ({', '.join(NAMES)}), on every backend of Keras. "
            "Expected: TensorFlow on the driver and on all executors. Received: an environment without it. "
            "Run pip install 'keraunos[tensorflow]'."
        )


def check_vocabularies(model: Any) -> None:
    """Refuse a layer without its vocabulary, and a vocabulary that would not come back from an archive as it is."""
    for layer in in_model(model):
        if not hasattr(layer, "get_vocabulary"):
            continue
        words = layer.get_vocabulary(include_special_tokens=False)
        if not words:
            raise ModelError(
                f"The layer {layer.name!r} has no vocabulary, so every value would be an unknown one. Expected: a "
                f"{type(layer).__name__} that was adapted or was given a vocabulary. Received: an empty vocabulary. "
                f"Call `adapt` with some of the texts or values first, as in layer.adapt([row[0] for row in "
                "df.select('text').limit(10000).collect()])."
            )
        # Keras writes a vocabulary that was adapted one word per line, and reads it back by its lines.
        given = getattr(getattr(layer, "_lookup_layer", layer), "input_vocabulary", None)
        broken = [word for word in words if isinstance(word, str) and word.splitlines() != [word]]
        if given is None and broken:
            raise ModelError(
                f"The vocabulary of the layer {layer.name!r} cannot be saved: Keras writes one entry per line. "
                f"Expected: entries that are not empty and hold no line break. Received: {str(broken[0])!r}. Replace "
                f"line breaks before `adapt`, or give the layer its vocabulary: {type(layer).__name__}(vocabulary=...)."
            )


def copy_vocabularies(model: Any, copy: Any) -> None:
    """Give the layers of a copy, made from the model's configuration alone, the vocabularies that were adapted."""
    for layer, twin in zip(in_model(model), in_model(copy), strict=True):
        if not hasattr(layer, "get_vocabulary"):
            continue
        store: dict[str, Any] = {}
        with scratch.folder("vocabulary") as folder:
            layer.save_own_variables(store)
            layer.save_assets(folder)
            twin.load_own_variables(store)
            twin.load_assets(folder)


def _needed(config: Any) -> bool:
    if isinstance(config, list):
        return any(_needed(item) for item in config)
    if not isinstance(config, dict):
        return False
    if config.get("class_name") in NAMES and str(config.get("module")).partition(".")[0] == "keras":
        return True
    inner = config.get("config")
    if config.get("class_name") == "InputLayer" and isinstance(inner, dict) and inner.get("dtype") == STRING:
        return True
    return any(_needed(value) for value in config.values())
