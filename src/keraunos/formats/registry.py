"""The format of a model, and what it makes of it. Runs on the driver and on workers.

A format is found by its name and imported when it is asked for. A package adds its own with `register_format`; jobs
then carry its home (`keraunos.job.model_formats`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keraunos.errors import JobError
from keraunos.formats.model_format import ModelFormat
from keraunos.job.model_formats import checked_home, imported, register_format
from keraunos.job.training_job import ModelSource
from keraunos.learners.home_model import HomeModel
from keraunos.learners.learner import Learner

__all__ = ["format_named", "format_of", "load_home", "load_learner", "register_format"]


def format_named(name: str, home: str | None = None) -> ModelFormat:
    """The format of that name, at its home where it is a registered one."""
    home = checked_home(name, home)
    found = imported(name, home)
    if not (isinstance(found, type) and issubclass(found, ModelFormat)):
        raise JobError(f"The format {name!r} must be a subclass of ModelFormat. Received: {found!r}.")
    made: ModelFormat = found()
    return made


def format_of(source: ModelSource) -> ModelFormat:
    """The format of a model; refused where it does not run on the source's backend."""
    found = format_named(source.format, source.home)
    source.declared.check_backend(source.backend)
    return found


def load_learner(source: ModelSource, custom_objects: Mapping[str, Any] | None = None) -> Learner:
    """The model in `source`, run by the framework that the source names."""
    return format_of(source).learner(source, custom_objects)


def load_home(source: ModelSource, custom_objects: Mapping[str, Any] | None = None) -> HomeModel:
    """The driver's copy of the model in `source`; no framework is imported but that of its format."""
    return format_of(source).home(source, custom_objects)
