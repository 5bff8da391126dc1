"""TensorFlow graphs, as the archives that `graph_source` makes. Runs on the driver and on workers."""

from __future__ import annotations

import importlib
from typing import Any

from keraunos.batch import Arrays
from keraunos.errors import ModelError
from keraunos.formats.model_format import CustomObjects, ModelFormat
from keraunos.job.format_declaration import FormatDeclaration
from keraunos.job.training_job import ModelSource
from keraunos.learners.framework_imports import import_tensorflow
from keraunos.learners.graph_archive import GraphArchive
from keraunos.learners.graph_home import GraphHome
from keraunos.learners.graph_measures import measures_in
from keraunos.learners.home_model import HomeModel
from keraunos.learners.learner import Learner
from keraunos.learners.registry import check_installed
from keraunos.learners.written_model import WrittenModel
from keraunos.trust import trusted_operations

# What Python raises where data has not the shape that it should have.
_NOT_AS_WRITTEN = (ArithmeticError, AttributeError, LookupError, RecursionError, StopIteration, TypeError, ValueError)


class GraphFormat(ModelFormat):
    """A graph with placeholders and its values; what is live of it on the driver is a `GraphArchive`."""

    declaration = FormatDeclaration("a TensorFlow graph", ("tensorflow",), takes_byte_labels=True)
    file_name = "model.graph"

    def learner(self, source: ModelSource, custom_objects: CustomObjects | None = None) -> Learner:
        """The graph in a session; Keras has no part in it, and may run on any backend in this process, or on none."""
        check_installed(source.backend)
        import_tensorflow()
        graphs = importlib.import_module("keraunos.learners.tensorflow_graph")
        made: Learner = graphs.TensorFlowGraphLearner(source.archive, measures_in(custom_objects))
        return made

    def home(self, source: ModelSource, custom_objects: CustomObjects | None = None) -> HomeModel:
        """The archive, whose parameters are replaced without TensorFlow."""
        return GraphHome(source.archive, measures_in(custom_objects))

    def as_served(self, inputs: Arrays, rows: int) -> Arrays:
        """The inputs as they are: a graph takes any number of rows."""
        return inputs

    def write(self, model: Any, custom_objects: CustomObjects | None = None) -> WrittenModel:
        """The archive's bytes."""
        return WrittenModel(model.to_bytes())

    def read(self, archive: bytes, custom_objects: CustomObjects | None = None, trusted: tuple[str, ...] = ()) -> Any:
        """The `GraphArchive`; none of its operations is run."""
        return _opened(archive)

    def check_file(self, archive: bytes, custom_objects: CustomObjects | None = None) -> tuple[str, ...]:
        """Refuse a graph with operations that touch more than its inputs; returns those that are trusted."""
        import_tensorflow()
        files = importlib.import_module("keraunos.learners.graph_files")
        files.check_archive(_opened(archive))
        return trusted_operations()


def _opened(content: bytes) -> GraphArchive:
    """The archive in the content of a file, which need not be one."""
    try:
        archive = GraphArchive.from_bytes(content)
        found = archive.vector().size
    except ModelError:
        raise
    except _NOT_AS_WRITTEN as error:
        raise ModelError(
            "The archive of a TensorFlow graph cannot be read. Expected: what `graph_source` made. Received: "
            f"{type(error).__name__}: {str(error)[:200]}."
        ) from error
    if found != archive.layout.size:
        raise ModelError(
            f"The archive of a TensorFlow graph must have {archive.layout.size} parameters. Received: {found}."
        )
    return archive
