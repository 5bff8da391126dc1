"""What every fitted model is: a Keras model that serves predictions as DataFrame columns. Runs on the driver."""

from __future__ import annotations

import hashlib
import threading
import uuid
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from pyspark.ml import Model
from pyspark.ml.util import MLReadable, MLWritable

from keraunos.errors import ColumnError
from keraunos.job.columns import Slot
from keraunos.launch.rank_table import RankTable
from keraunos.ml.fitting import checked_inputs
from keraunos.ml.inference import Serving
from keraunos.ml.params import HasServing
from keraunos.ml.persistence import (
    HISTORY_FILE,
    MODEL_FILE,
    KerasReader,
    KerasWriter,
    Parts,
    history_from_bytes,
    history_to_bytes,
)
from keraunos.ml.rendering import Rendering
from keraunos.ml.schema import find_slots
from keraunos.ml.serving import is_case_sensitive, with_predictions
from keraunos.ml.signature import Signature
from keraunos.telemetry.history import History

_IMAGES_AT_ONCE = 64


@dataclass(frozen=True)
class Trained:
    """A trained model as plain data: its archive, what it takes and gives, how it was trained."""

    archive: bytes
    history: History
    signature: Signature
    backend: str
    floatx: str
    head: Mapping[str, Any] | None = None
    ranks: RankTable = field(default_factory=RankTable)

    @property
    def facts(self) -> dict[str, Any]:
        """What tells how to use the archive, for the metadata."""
        return {
            "signature": self.signature.to_json(),
            "backend": self.backend,
            "floatx": self.floatx,
            "head": None if self.head is None else dict(self.head),
        }


class FittedModel(Model, HasServing, MLReadable, MLWritable):  # type: ignore[misc]  # pyspark is used untyped
    """A trained Keras model as a spark.ml Transformer."""

    def __init__(self, trained: Trained) -> None:
        super().__init__()
        self._trained = trained
        self._key = hashlib.sha256(trained.archive).hexdigest()
        self._live: dict[str, Any] = {}
        self._lock = threading.Lock()

    @property
    def model(self) -> Any:
        """The trained Keras model itself, on the driver; loaded when it is first asked for."""
        from keraunos.learners.keras_archive import from_archive

        with self._lock:
            if "model" not in self._live:
                self._live["model"] = from_archive(self._trained.archive, self.getCustomObjects())
            return self._live["model"]

    @property
    def history(self) -> History:
        """What the training measured, epoch by epoch."""
        return self._trained.history

    @property
    def ranks(self) -> RankTable:
        """What each worker did in the fit that this model comes from; empty where it was loaded."""
        return self._trained.ranks

    def copy(self, extra: Mapping[Any, Any] | None = None) -> Self:
        """A copy with other Params; the trained model itself is shared, since it never changes."""
        copied: Self = super().copy(None if extra is None else dict(extra))
        copied._live = dict(self._live)
        return copied

    def write(self) -> KerasWriter:
        """A writer that saves to any Hadoop path."""
        return KerasWriter(self)

    @classmethod
    def read(cls) -> KerasReader[Self]:
        """A reader of what `write` saved."""
        return KerasReader(cls)

    @abstractmethod
    def _rendering(self) -> Rendering:
        """How the model's outputs become columns."""

    def _transform(self, dataset: Any) -> Any:
        slots, specs = find_slots(
            dataset.schema,
            self.getFeaturesCol(),
            "featuresCol",
            case_sensitive=is_case_sensitive(dataset.sparkSession),
            pixels=self.getPixels(),
        )
        slots = checked_inputs(slots, specs, self._trained.signature)
        custom_objects = self.getCustomObjects()
        serving = Serving(
            key=self._key_for(custom_objects),
            backend=self.getBackend() or self._trained.backend,
            floatx=self._trained.floatx,
            slots=slots,
            columns=tuple(dict.fromkeys(column for slot in slots for column in slot.columns)),
            inputs=self._trained.signature.inputs,
            batch_rows=self._batch_rows(slots),
            rendering=self._rendering(),
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
        context = spark.sparkContext
        with self._lock:
            if self._live.get("context") is not context:
                self._live["context"] = context
                self._live["broadcast"] = context.broadcast(self._trained.archive)
            return self._live["broadcast"]

    def _to_parts(self) -> Parts:
        files = {MODEL_FILE: self._trained.archive, HISTORY_FILE: history_to_bytes(self._trained.history)}
        return Parts(files, self._trained.facts)

    @classmethod
    def _from_parts(cls, parts: Parts, custom_objects: Mapping[str, Any]) -> Self:  # noqa: ARG003 - as estimators do
        return cls(
            Trained(
                archive=parts.files[MODEL_FILE],
                history=history_from_bytes(parts.files[HISTORY_FILE]),
                signature=Signature.from_json(parts.facts["signature"]),
                backend=parts.facts["backend"],
                floatx=parts.facts["floatx"],
                head=parts.facts["head"],
            )
        )


def distinct(names: list[str]) -> None:
    """Refuse one name for two output columns."""
    for name in names:
        if names.count(name) > 1:
            raise ColumnError(f"Output columns must have different names. Received: {names!r}. Rename one of them.")
