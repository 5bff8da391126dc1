"""Keras models, as the archives that Keras saves. Runs on the driver and on workers."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

from keraunos.backends import BACKENDS
from keraunos.formats.model_format import CustomObjects, ModelFormat
from keraunos.job.format_declaration import FormatDeclaration
from keraunos.job.training_job import ModelSource
from keraunos.learners import tensorflow_layers
from keraunos.learners.archive_optimizer import without_optimizer
from keraunos.learners.framework_imports import import_keras
from keraunos.learners.home_model import HomeModel
from keraunos.learners.learner import Learner
from keraunos.learners.registry import keras_learner
from keraunos.learners.written_model import WrittenModel

MODEL_FILE = "model.keras"

_CONFIG = "config.json"


class KerasFormat(ModelFormat):
    """A compiled Keras model as a `.keras` archive, which runs on any of Keras's backends."""

    declaration = FormatDeclaration("a Keras model", BACKENDS, keeps_optimizer=True)
    file_name = MODEL_FILE

    def learner(self, source: ModelSource, custom_objects: CustomObjects | None = None) -> Learner:
        """The learner of the source's backend, behind a front where layers take strings."""
        return keras_learner(source, custom_objects)

    def home(self, source: ModelSource, custom_objects: CustomObjects | None = None) -> HomeModel:
        """The live model."""
        import_keras()
        from keraunos.learners.keras_home import KerasHome

        return KerasHome(source.archive, custom_objects, source.trusted)

    def encodes_rows(self, source: ModelSource) -> bool:
        """Whether layers that only TensorFlow can run stand before the model that a learner steps."""
        return tensorflow_layers.in_archive(source.archive)

    def write(self, model: Any, custom_objects: CustomObjects | None = None) -> WrittenModel:
        """As Keras saves it, with what Keras leaves out."""
        import_keras()
        from keraunos.learners.keras_archive import write_live

        return write_live(model, custom_objects)

    def read(self, archive: bytes, custom_objects: CustomObjects | None = None, trusted: tuple[str, ...] = ()) -> Any:
        """The compiled model."""
        import_keras()
        from keraunos.learners.keras_archive import from_archive

        return from_archive(archive, custom_objects, trusted)

    def check_file(self, archive: bytes, custom_objects: CustomObjects | None = None) -> tuple[str, ...]:
        """Refuse one that names code which is not trusted; returns the modules that it names."""
        import_keras()
        from keraunos.learners.keras_archive import check_archive

        return check_archive(archive, custom_objects)

    def check_served(self, archive: bytes) -> None:
        """Refuse layers that only TensorFlow can run where it is not installed."""
        if tensorflow_layers.in_archive(archive):
            tensorflow_layers.check_installed("The model")

    def check_portable(self, archive: bytes, custom_objects: CustomObjects) -> None:
        """Refuse custom code that no worker could find."""
        from keraunos.learners.custom_code import check_portable

        check_portable(archive, custom_objects)

    def without_optimizer(self, archive: bytes) -> bytes:
        """The same archive without the optimizer's state, which is two thirds of it with Adam."""
        return without_optimizer(archive)

    def title(self, archive: bytes) -> str:
        """The model's class and name, from its configuration."""
        try:
            with zipfile.ZipFile(io.BytesIO(archive)) as opened:
                config = json.loads(opened.read(_CONFIG))
            return f"{config['class_name']} {config['config'].get('name', '')!r}"
        except (zipfile.BadZipFile, KeyError, ValueError, AttributeError, TypeError):
            return super().title(archive)
