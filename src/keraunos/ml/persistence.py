"""Saving and loading by spark.ml's own means, onto any Hadoop path. Runs on the driver.

    <path>/model.keras      the model as Keras saves it
    <path>/history.json     what the training measured (fitted models)
    <path>/metadata/        spark.ml's metadata: class, uid, Params; written last, so that what it names is there

Nothing is pickled. `PipelineModel.load` and the classes' own `load` read it back in any process.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReader, MLWriter

from keraunos.errors import JobError
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.rule_spec import RuleSpec
from keraunos.launch.hadoop_files import HadoopFolder
from keraunos.ml.params import Settings
from keraunos.ml.references import from_references, to_references

MODEL_FILE = "model.keras"
HISTORY_FILE = "history.json"

_EXTRA = "keraunos"
_OUTSIDE_OF_JSON = ("model", "customObjects", "callbacks")


@dataclass(frozen=True)
class Parts:
    """What is stored besides Params: files by name, and plain data for the metadata."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


T = TypeVar("T", bound=Settings)


class KerasWriter(MLWriter):  # type: ignore[misc]  # pyspark is used untyped
    """Writes an estimator or a fitted model; `overwrite()` replaces what is at the path.

    What it writes has Params, `_to_parts()` for what they do not hold, and a class method `_from_parts`. Params that
    the parts hold instead are listed in its `_OUTSIDE_OF_PARAMS`.
    """

    def __init__(self, instance: Any) -> None:
        super().__init__()
        self.instance = instance

    def save(self, path: str) -> None:
        """Save to a path; everything that can be refused is refused before anything there is changed."""
        if isinstance(path, bytes) or not str(path):
            raise JobError(f"The path to save to must be a non-empty string. Received: {path!r}.")
        path = str(path)
        parts = self.instance._to_parts()
        params = _params_to_json(self.instance)
        references = to_references(getattr(self.instance, "getCustomObjects", dict)())
        folder = HadoopFolder(self.sparkSession, path)
        if self.shouldOverwrite:
            self._handleOverwrite(path)
        elif folder.exists():
            raise JobError(
                f"The path to save to already exists. Expected a new path. Received: {path!r}. To replace what is "
                "there, use write().overwrite().save(path)."
            )
        for name, content in parts.files.items():
            folder.write(name, content)
        extra = {_EXTRA: {"facts": dict(parts.facts), "custom_objects": references, "files": sorted(parts.files)}}
        DefaultParamsWriter.saveMetadata(self.instance, path, self.sparkSession, extraMetadata=extra, paramMap=params)

    def saveImpl(self, path: str) -> None:
        """Spark's own name for what `save` does."""
        self.save(path)


class KerasReader(MLReader, Generic[T]):  # type: ignore[misc]  # pyspark is used untyped
    """Reads what `KerasWriter` wrote."""

    def __init__(self, cls: type[T]) -> None:
        super().__init__()
        self.cls = cls

    def load(self, path: str) -> T:
        """The estimator or model at the path."""
        path = str(path)
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        expected = f"{self.cls.__module__}.{self.cls.__name__}"
        if metadata["class"] != expected or _EXTRA not in metadata:
            raise JobError(
                f"The path does not hold a {self.cls.__name__}. Expected class {expected!r} in its metadata. Received: "
                f"{metadata['class']!r} at {path!r}. Load it with that class."
            )
        extra = metadata[_EXTRA]
        folder = HadoopFolder(self.sparkSession, path)
        files = {name: folder.read(name) for name in extra["files"]}
        custom_objects = from_references(extra["custom_objects"])
        instance: Any = self.cls._from_parts(Parts(files, extra["facts"]), custom_objects)
        instance._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(instance, metadata)
        if custom_objects:
            instance.setParams(customObjects=custom_objects)
        loaded: T = instance
        return loaded


def history_to_bytes(history: Any) -> bytes:
    """A history as the content of its file."""
    return json.dumps(history.to_json()).encode()


def history_from_bytes(content: bytes) -> Any:
    """The history in the content of its file."""
    from keraunos.telemetry.history import History

    return History.from_json(json.loads(content))


def _params_to_json(instance: Any) -> dict[str, Any]:
    """The Params that were set, as plain data that the Params' converters read back."""
    plain: dict[str, Any] = {}
    for param, value in instance._paramMap.items():
        if param.name in (*_OUTSIDE_OF_JSON, *getattr(instance, "_OUTSIDE_OF_PARAMS", ())):
            continue
        if isinstance(value, ExchangePlan | RuleSpec):
            plain[param.name] = value.to_json()
        elif param.name == "classWeight":
            plain[param.name] = [[label, weight] for label, weight in value.items()]
        else:
            plain[param.name] = value
    return plain
