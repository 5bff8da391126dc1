"""What every fitted model is: a model that serves predictions as DataFrame columns. Runs on the driver."""

from __future__ import annotations

import hashlib
import threading
import uuid
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from pyspark.ml import Model
from pyspark.ml.util import MLReadable, MLWritable

from keraunos.errors import ColumnError
from keraunos.formats.model_format import ModelFormat
from keraunos.formats.registry import format_named
from keraunos.job.columns import Slot
from keraunos.job.model_formats import checked_home
from keraunos.launch.rank_table import RankTable
from keraunos.ml.continuation import RuleState
from keraunos.ml.continuation_params import HasSaveOptimizer
from keraunos.ml.datasets import check_dataset
from keraunos.ml.description import described
from keraunos.ml.fitting import checked_inputs
from keraunos.ml.inference import Serving
from keraunos.ml.padding import served_slots
from keraunos.ml.params import HasAllowNaN, HasPadding, HasServing
from keraunos.ml.persistence import (
    HISTORY_FILE,
    RULE_FILE,
    Parts,
    PartsReader,
    PartsWriter,
    history_from_bytes,
    history_to_bytes,
)
from keraunos.ml.rendering import Rendering
from keraunos.ml.schema import find_slots
from keraunos.ml.serving import is_case_sensitive, with_predictions
from keraunos.ml.signature import Signature
from keraunos.session.registry import session_of
from keraunos.telemetry.history import History

_IMAGES_AT_ONCE = 64


@dataclass(frozen=True)
class Trained:
    """A trained model as plain data: its archive, what it takes and gives, how it was trained.

    `lengths` has the length that arrays were padded to, by input. `trusted` are the modules that the archive may name:
    those of the live model that was trained, or those that were allowed when the model was loaded. They are not saved.
    """

    archive: bytes
    history: History
    signature: Signature
    backend: str
    floatx: str
    head: Mapping[str, Any] | None = None
    ranks: RankTable = field(default_factory=RankTable)
    rule: RuleState | None = None
    lengths: Mapping[str, int] = field(default_factory=dict)
    trusted: tuple[str, ...] = ()

    @property
    def facts(self) -> dict[str, Any]:
        """What tells how to use the archive, for the metadata."""
        return {
            "signature": self.signature.to_json(),
            "backend": self.backend,
            "floatx": self.floatx,
            "head": None if self.head is None else dict(self.head),
            "rule": None if self.rule is None else self.rule.rule.to_json(),
            "lengths": dict(self.lengths),
        }


class FittedModel(Model, HasServing, HasAllowNaN, HasPadding, HasSaveOptimizer, MLReadable, MLWritable):  # type: ignore[misc]  # pyspark is used untyped
    """A trained model as a spark.ml Transformer; a subclass names the format of its models."""

    format: ClassVar[str]
    """The name of the format."""

    def __init__(self, trained: Trained) -> None:
        super().__init__()
        self._trained = trained
        self._key = hashlib.sha256(trained.archive).hexdigest()
        self._live: dict[str, Any] = {}
        self._lock = threading.Lock()

    @property
    def model(self) -> Any:
        """The trained model itself, live on the driver; loaded when it is first asked for."""
        with self._lock:
            if "model" not in self._live:
                self._live["model"] = self._kind().read(
                    self._trained.archive, self.getCustomObjects(), self._trained.trusted
                )
            return self._live["model"]

    @property
    def history(self) -> History:
        """What the training measured, epoch by epoch."""
        return self._trained.history

    @property
    def ranks(self) -> RankTable:
        """What each worker did in the fit that this model comes from; empty where it was loaded."""
        return self._trained.ranks

    def __repr__(self) -> str:
        told = self._trained
        kind = type(self).__name__
        title = self._kind().title(told.archive)
        return described(kind, self.uid, title, told.backend, told.signature, told.history)

    def copy(self, extra: Mapping[Any, Any] | None = None) -> Self:
        """A copy with other Params; the trained model itself is shared, since it never changes."""
        copied: Self = super().copy(None if extra is None else dict(extra))
        copied._live = dict(self._live)
        return copied

    def write(self) -> PartsWriter:
        """A writer that saves to any Hadoop path."""
        return PartsWriter(self)

    @classmethod
    def read(cls) -> PartsReader[Self]:
        """A reader of what `write` saved."""
        return PartsReader(cls)

    @abstractmethod
    def _rendering(self) -> Rendering:
        """How the model's outputs become columns."""

    def _feature_slots(self, dataset: Any) -> tuple[Slot, ...]:
        """What feeds the model's inputs from a DataFrame."""
        slots, specs = find_slots(
            dataset.schema,
            self.getFeaturesCol(),
            "featuresCol",
            case_sensitive=is_case_sensitive(dataset.sparkSession),
            pixels=self.getPixels(),
            strings=True,
        )
        self._kind().check_served(self._trained.archive)
        floatx, ports = self._trained.floatx, self._trained.signature.inputs
        slots = checked_inputs(slots, specs, self._trained.signature, backend=self._backend(), floatx=floatx)
        if self.getPad():
            return served_slots(slots, specs, ports, self.getMaxLength(), self._trained.lengths)
        return slots

    @classmethod
    def _kind(cls) -> ModelFormat:
        """The format of its models."""
        return format_named(cls.format)

    def _backend(self) -> str:
        return self.getBackend() or self._trained.backend

    def _transform(self, dataset: Any) -> Any:
        check_dataset(dataset, "transform")
        slots = self._feature_slots(dataset)
        custom_objects = self.getCustomObjects()
        # Custom code that no worker could find is refused before rows are read.
        self._kind().check_portable(self._trained.archive, custom_objects)
        serving = Serving(
            key=self._key_for(custom_objects),
            backend=self._backend(),
            floatx=self._trained.floatx,
            slots=slots,
            columns=tuple(dict.fromkeys(column for slot in slots for column in slot.columns)),
            inputs=self._trained.signature.inputs,
            batch_rows=self._batch_rows(slots),
            rendering=self._rendering(),
            format=self.format,
            allow_nan=self.getAllowNaN(),
            trusted=self._trained.trusted,
            home=checked_home(self.format, None),
        )
        return with_predictions(dataset, serving, self._broadcast(dataset.sparkSession), custom_objects)

    def _batch_rows(self, slots: tuple[Slot, ...]) -> int:
        # A row of pixels is worth many of most other rows: a thousand of them are gigabytes in a network's layers.
        few = any(slot.kind == "image" for slot in slots) and not self.isSet(self.inferenceBatchSize)
        return _IMAGES_AT_ONCE if few else self.getInferenceBatchSize()

    def _key_for(self, custom_objects: Mapping[str, Any]) -> str:
        """The model's name in the workers' caches; other custom code makes another model of the same archive."""
        if not custom_objects:
            return self._key
        with self._lock:
            if self._live.get("custom_objects") != custom_objects:
                self._live["custom_objects"] = dict(custom_objects)
                self._live["key"] = f"{self._key}-{uuid.uuid4().hex}"
            return str(self._live["key"])

    def _broadcast(self, spark: Any) -> Any:
        """The archive on its way to the workers, once for each Spark application."""
        session = session_of(spark)
        with self._lock:
            if self._live.get("application") is not session.application:
                self._live["application"] = session.application
                self._live["broadcast"] = session.broadcast(self._kind().without_optimizer(self._trained.archive))
            return self._live["broadcast"]

    def _to_parts(self) -> Parts:
        trained, keeps, kind = self._trained, self.getSaveOptimizer(), self._kind()
        archive = trained.archive if keeps else kind.without_optimizer(trained.archive)
        files = {kind.file_name: archive, HISTORY_FILE: history_to_bytes(trained.history)}
        if trained.rule is not None and keeps:
            files[RULE_FILE] = trained.rule.to_bytes()
        return Parts(files, self._trained.facts)

    @classmethod
    def _from_parts(cls, parts: Parts, custom_objects: Mapping[str, Any]) -> Self:
        kind = cls._kind()
        archive = parts.files[kind.file_name]
        trusted = kind.check_file(archive, custom_objects)
        return cls(
            Trained(
                archive=archive,
                history=history_from_bytes(parts.files[HISTORY_FILE]),
                signature=Signature.from_json(parts.facts["signature"]),
                backend=parts.facts["backend"],
                floatx=parts.facts["floatx"],
                head=parts.facts["head"],
                rule=_rule_in(parts),
                lengths=parts.facts.get("lengths", {}),
                trusted=trusted,
            )
        )


def _rule_in(parts: Parts) -> RuleState | None:
    content = parts.files.get(RULE_FILE)
    return None if content is None else RuleState.from_bytes(parts.facts["rule"], content)


def distinct(names: list[str]) -> None:
    """Refuse one name for two output columns."""
    for name in names:
        if names.count(name) > 1:
            raise ColumnError(f"Output columns must have different names. Received: {names!r}. Rename one of them.")
