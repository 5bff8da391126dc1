"""Listeners of fits in threads, in processes and on Spark; and the log that is one."""

import pytest

from keraunos.checkpoints.folder import LocalFolder
from keraunos.checkpoints.store import CheckpointStore
from keraunos.launch import local
from keraunos.launch import spark as launch
from keraunos.launch.fit import Saving
from tests.conformance import engine
from tests.conformance.listener_suite import ListenerSuite


class TestInThreads(ListenerSuite):
    def fit(self, job, parts, *, checkpoints=None, **options):
        if checkpoints is not None:
            store = CheckpointStore(LocalFolder(checkpoints.directory), checkpoints.keep)
            options["saving"] = Saving(store, checkpoints.every)
        return engine.fitted(job, parts, **options)


@pytest.mark.slow
class TestInProcesses(ListenerSuite):
    def fit(self, job, parts, **options):
        return local.fit(job, parts, verbose=0, **options)
