"""The base class of model formats. Runs on the driver and on workers.

A format is a way to write a model as bytes, an archive, with everything that depends on it: which learner trains it,
which copy the driver has, how it serves predictions, and how its files are read. One file implements it; no other code
asks which format a model has. One conformance suite (`tests/conformance/format_suite.py`) tests all formats.

A format has no state: several threads may use one instance. Importing its module loads no framework; its methods load
the framework of their own format. `declaration` can be read without any framework.
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
    """One format. Custom objects are the custom code, by name, that a user passes with a model."""

    declaration: ClassVar[FormatDeclaration]

    file_name: ClassVar[str]
    """The name of the archive in the folder of a saved model."""

    @abstractmethod
    def learner(self, source: ModelSource, custom_objects: CustomObjects | None = None) -> Learner:
        """Returns the model, run by the framework that the source names."""

    @abstractmethod
    def home(self, source: ModelSource, custom_objects: CustomObjects | None = None) -> HomeModel:
        """Returns the driver's copy of the model."""

    def encodes_rows(self, source: ModelSource) -> bool:
        """Whether the learner has a `front`; then a worker loads the model before it reads its rows."""
        return False

    def as_served(self, inputs: Arrays, rows: int) -> Arrays:
        """Returns inputs in the form that `predict` takes, if at most `rows` rows are predicted at once.

        It may add rows, whose outputs are dropped. For frameworks that compile a model for a number of rows, the last
        row is repeated up to `rows`, so that they compile it once.
        """
        return padded(inputs, rows)

    @abstractmethod
    def write(self, model: Any, custom_objects: CustomObjects | None = None) -> WrittenModel:
        """Returns a model of this process as an archive; refuses one that another process could not read."""

    @abstractmethod
    def read(self, archive: bytes, custom_objects: CustomObjects | None = None, trusted: tuple[str, ...] = ()) -> Any:
        """Returns the model in an archive.

        The archive is not trusted: it may do only what `trusting` allows, and also name code of `trusted` modules.
        """

    @abstractmethod
    def check_file(self, archive: bytes, custom_objects: CustomObjects | None = None) -> tuple[str, ...]:
        """Refuse an archive from a file that this process may not read.

        Returns the modules that another process must trust to read it.
        """

    def check_served(self, archive: bytes) -> None:  # noqa: B027 - may be none
        """Refuse an archive that this process's environment cannot run; all processes are assumed to have the same."""

    def check_portable(self, archive: bytes, custom_objects: CustomObjects) -> None:  # noqa: B027 - may be none
        """Refuse custom code that no worker could find."""

    def without_optimizer(self, archive: bytes) -> bytes:
        """Returns the archive without the data that only training needs."""
        return archive

    def title(self, archive: bytes) -> str:
        """Returns a short description of the model for printing; loads no framework."""
        return "a model"
