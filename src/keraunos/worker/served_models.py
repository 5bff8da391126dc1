"""The models that a Python worker keeps to predict with. Runs on workers.

Python workers live longer than tasks, and reading a model takes longer than most tasks do.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping
from typing import Any

from keraunos.formats.registry import load_learner
from keraunos.job.training_job import ModelSource
from keraunos.learners.between_tasks import look_at_all
from keraunos.learners.learner import Learner
from keraunos.worker import resources

KEPT_MODELS = 3

_models: collections.OrderedDict[str, Learner] = collections.OrderedDict()


def served_model(
    key: str, source: Callable[[], ModelSource], custom_objects: Mapping[str, Any] | None = None
) -> Learner:
    """The model that `key` stands for; `source` is asked for it where it is not yet here."""
    if key not in _models:
        given = source()
        while len(_models) >= KEPT_MODELS:
            _models.popitem(last=False)
            look_at_all()
        # A framework makes as many threads as it sees cores when it starts; beside Spark's own tasks it is to have
        # no more than its task was given.
        with resources.cores(resources.task_threads()):
            _models[key] = load_learner(given, custom_objects)
    _models.move_to_end(key)
    return _models[key]
