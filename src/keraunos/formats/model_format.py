"""What a model format must be able to do. Runs on the driver and on workers.

A format is a way to write a model as bytes, an archive, together with all that depends on it: which learner steps it,
what the driver holds of it, how it serves predictions, and how a file of it is read. One file implements it; nothing
else asks which format a model has. One conformance suite (`tests/conformance/format_suite.py`) tests them all.

A format has no state: one instance may be used by several threads. Its module loads no framework when it is imported;
a method loads that of its own format, and `declaration` is read where no framework is installed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from keraunos.batch import Arrays
from keraunos.data.regroup import padded
from keraunos.job.format_declaration import FormatDeclaration
from keraunos.job.training_job import ModelSource
from keraunos.learners.home_model import HomeModel
from keraunos.learners.learner import Learner
from keraunos.learners.written_model import WrittenModel

CustomObjects = Mapping[str, Any]


class ModelFormat(ABC):
    """One format. Custom objects are what a user hands over with a model: code of its own, by name."""

    declaration: ClassVar[FormatDeclaration]

    file_name: ClassVar[str]
    """What the archive is called in the folder of a saved model."""

    @abstractmethod
    def learner(self, source: ModelSource, custom_objects: CustomObjects | None = None) -> Learner:
        """The model, run by the framework that the source names."""

    @abstractmethod
    def home(self, source: ModelSource, custom_objects: CustomObjects | None = None) -> HomeModel:
        """The driver's copy of the model."""

    def encodes_rows(self, source: ModelSource) -> bool:
        """Whether its learner has a `front`, so that a worker loads the model before it reads its rows."""
        return False

    def as_served(self, inputs: Arrays, rows: int) -> Arrays:
        """Inputs of some rows as `predict` takes them, where at most `rows` are predicted at once.

        There may be more rows than were given; their outputs are left out. Frameworks that compile a model for a number
        of rows are to see one number only, so that the last row is repeated up to it.
        """
        return padded(inputs, rows)

    @abstractmethod
    def write(self, model: Any, custom_objects: CustomObjects | None = None) -> WrittenModel:
        """A model that is live in this process as an archive; refused where another could not read it back."""

    @abstractmethod
    def read(self, archive: bytes, custom_objects: CustomObjects | None = None, trusted: tuple[str, ...] = ()) -> Any:
        """The live model in an archive.

        The archive is not trusted: it may do only what `trusting` allows, and name code of `trusted` modules besides.
        """

    @abstractmethod
    def check_file(self, archive: bytes, custom_objects: CustomObjects | None = None) -> tuple[str, ...]:
        """Refuse an archive of a file that this process may not read.

        Returns the modules that another process needs to trust to read it.
        """

    def check_served(self, archive: bytes) -> None:  # noqa: B027 - may be none
        """Refuse an archive that cannot be run in this process's environment, which is taken for that of all."""

    def check_portable(self, archive: bytes, custom_objects: CustomObjects) -> None:  # noqa: B027 - may be none
        """Refuse custom code that no worker could find."""

    def without_optimizer(self, archive: bytes) -> bytes:
        """The same archive without what only training needs."""
        return archive

    def title(self, archive: bytes) -> str:
        """The model in a few words, for whoever prints it; no framework is loaded for that."""
        return "a model"
