"""Saving and loading by spark.ml's own means, onto any Hadoop path. Runs on the driver.

    <path>/model.keras      the model, under the name that its format gives it
    <path>/history.json     what the training measured (fitted models)
    <path>/rule.npz         what the rule on the server remembered (fitted models, where it remembers something)
    <path>/metadata/        spark.ml's metadata: class, uid, Params; written last, so that what it names is there

It is written beside the path and takes its place when it is whole. Nothing is pickled. `PipelineModel.load` and the
classes' own `load` read it back in any process that trusts the code that it names (see `keraunos.trust`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pyspark.errors import PySparkRuntimeError
from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReader, MLWriter

from keraunos.errors import ClusterError, JobError, KeraunosError
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.rule_spec import RuleSpec
from keraunos.launch.preflight import check_running
from keraunos.launch.session_trust import session_trust
from keraunos.launch.whole_folders import written_whole
from keraunos.ml.begun_pipelines import remove_begun
from keraunos.ml.params import Settings
from keraunos.ml.references import from_references, to_references
from keraunos.ml.saved_code import check_rules, file_names, without_trust
from keraunos.session.registry import session_of, was_stopped
from keraunos.trust import trusting

HISTORY_FILE = "history.json"

_EXTRA = "keraunos"
RULE_FILE = "rule.npz"
# What Python raises where data has not the shape that it should have.
_NOT_AS_WRITTEN = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_OUTSIDE_OF_JSON = ("model", "customObjects", "callbacks", "listeners", "trustedModules", "validationData")


@dataclass(frozen=True)
class Parts:
    """What is stored besides Params: files by name, plain data for the metadata, and the custom code of the files."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    custom_objects: Mapping[str, Any] = field(default_factory=dict)


T = TypeVar("T", bound=Settings)


class PartsWriter(MLWriter):  # type: ignore[misc]  # pyspark is used untyped
    """Writes an estimator or a fitted model; `overwrite()` replaces what is at the path.

    What it writes has Params, `_to_parts()` for what they do not hold, and a class method `_from_parts`. Params that
    the parts hold instead are listed in its `_OUTSIDE_OF_PARAMS`.
    """

    def __init__(self, instance: Any) -> None:
        super().__init__()
        self.instance = instance

    def save(self, path: str) -> None:
        """Save to a path; what was there stays until the new is whole, and stays for good where something goes wrong.

        A pipeline of which this is a stage that cannot be saved is not left there half-written.
        """
        if isinstance(path, bytes) or not str(path):
            raise JobError(f"The path to save to must be a non-empty string. Received: {path!r}.")
        path = str(path)
        spark = _running(self, "save")
        if not self.shouldOverwrite and session_of(spark).folder(path).exists():
            raise JobError(
                f"The path to save to already exists. Expected a new path. Received: {path!r}. To replace what is "
                "there, use write().overwrite().save(path)."
            )
        try:
            self._save_whole(spark, path)
        except BaseException:
            if not self.shouldOverwrite:
                remove_begun(spark, path, self.instance.uid)
            raise

    def _save_whole(self, spark: Any, path: str) -> None:
        """Everything that can be refused is refused before anything is written, which then is beside the path."""
        parts = self.instance._to_parts()
        params = _params_to_json(self.instance)
        references = to_references({**getattr(self.instance, "getCustomObjects", dict)(), **parts.custom_objects})
        extra = {_EXTRA: {"facts": dict(parts.facts), "custom_objects": references, "files": sorted(parts.files)}}
        session = session_of(spark)
        with written_whole(session, path) as aside:
            folder = session.folder(aside)
            for name, content in parts.files.items():
                folder.write(name, content)
            DefaultParamsWriter.saveMetadata(self.instance, aside, spark, extraMetadata=extra, paramMap=params)

    def saveImpl(self, path: str) -> None:
        """Spark's own name for what `save` does."""
        self.save(path)


class PartsReader(MLReader, Generic[T]):  # type: ignore[misc]  # pyspark is used untyped
    """Reads what `PartsWriter` wrote."""

    def __init__(self, cls: type[T]) -> None:
        super().__init__()
        self.cls = cls

    def load(self, path: str) -> T:
        """The estimator or model at the path."""
        path = str(path)
        spark = loading_session(self)
        metadata = _as_job_errors(path, lambda: DefaultParamsReader.loadMetadata(path, spark))
        with trusting(*session_trust(spark)):
            return restored(self.cls, metadata, lambda name: session_of(spark).folder(path).read_own(name), path)


def restored(cls: type[T], metadata: Any, read: Callable[[str], bytes], path: str) -> T:
    """The estimator or model that metadata describes, with the code that is trusted here.

    Args:
        cls: what it must be.
        metadata: spark.ml's metadata; nothing in it is believed before it is looked at.
        read: gives the content of a file of the folder by its name.
        path: where it was found, for messages.

    Raises:
        JobError: where the metadata is of something else, names what is not trusted, or is no metadata.
    """
    found: T = _as_job_errors(path, lambda: _restored(cls, metadata, read, path))
    return found


def _restored(cls: type[T], told: Mapping[str, Any], read: Callable[[str], bytes], path: str) -> T:
    metadata = without_trust(told)
    expected = f"{cls.__module__}.{cls.__name__}"
    if metadata["class"] != expected or _EXTRA not in metadata:
        raise JobError(
            f"The path does not hold a {cls.__name__}. Expected class {expected!r} in its metadata. Received: "
            f"{metadata['class']!r} at {path!r}. Load it with that class."
        )
    extra = metadata[_EXTRA]
    check_rules(metadata)
    files = {name: read(name) for name in file_names(extra["files"])}
    custom_objects = from_references(extra["custom_objects"])
    instance: Any = cls._from_parts(Parts(files, extra["facts"]), custom_objects)
    instance._resetUid(metadata["uid"])
    DefaultParamsReader.getAndSetParams(instance, metadata)
    if custom_objects:
        instance.setParams(customObjects=custom_objects)
    loaded: T = instance
    return loaded


def _as_job_errors(path: str, read: Callable[[], Any]) -> Any:
    """What reading gives; what it meets that is not as it was written becomes a `JobError`."""
    try:
        return read()
    except KeraunosError:
        raise
    except _NOT_AS_WRITTEN as error:
        raise JobError(
            f"What is saved at {path!r} cannot be read. Expected: metadata and files as `save` writes them. Received: "
            f"{type(error).__name__}: {str(error)[:200]}. Save it again."
        ) from error


def loading_session(reader: MLReader[Any]) -> Any:
    """The Spark session of a reader; made here where loading is the first thing that a process does with Spark."""
    from pyspark.sql import SparkSession

    # Where a session was stopped, another one is not started behind its back.
    if reader._sparkSession is None and SparkSession.getActiveSession() is None and not was_stopped():
        SparkSession.builder.getOrCreate()
    return _running(reader, "load")


def _running(user: MLWriter | MLReader[Any], method: str) -> Any:
    """The Spark session of a writer or a reader, which must be running."""
    try:
        spark = user.sparkSession
    except PySparkRuntimeError as error:
        raise ClusterError(
            f"`{method}` needs Spark, and there is no session: it was stopped, or not created yet. Create one with "
            "SparkSession.builder.getOrCreate()."
        ) from error
    check_running(session_of(spark), method, "Create a new one with SparkSession.builder.getOrCreate().")
    return spark


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
        elif param.name == "classWeight" and not isinstance(value, str):
            plain[param.name] = [[label, weight] for label, weight in value.items()]
        else:
            plain[param.name] = value
    return plain
