"""The stages of a fit that are functions of the driver's: what is to happen there happens when they are called."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from keraunos.checkpoints.store import CheckpointStore
from keraunos.exchange.server import Server
from keraunos.launch.divergence import LastGood
from keraunos.launch.follow import Follower
from keraunos.launch.spark import SparkJobs
from tests.clusters.fit_spec import CHECKPOINT, COLLECT, END, GATHER, LAUNCH

_FUNCTIONS: dict[str, tuple[type, str]] = {
    LAUNCH: (SparkJobs, "run"),
    GATHER: (Follower, "_gather"),
    CHECKPOINT: (CheckpointStore, "write"),
    COLLECT: (LastGood, "final"),
    END: (Server, "release"),
}


@contextmanager
def at_stages(stages: Iterable[str], reach: Callable[[str], None]) -> Iterator[None]:
    """In here `reach` is called with each of these stages, when it is reached for the first time."""
    with ExitStack() as stack:
        for stage in stages:
            owner, name = _FUNCTIONS[stage]
            real = getattr(owner, name)
            setattr(owner, name, _once_before(real, functools.partial(reach, stage)))
            stack.callback(setattr, owner, name, real)
        yield


def _once_before(function: Callable[..., Any], first: Callable[[], None]) -> Callable[..., Any]:
    lock, done = threading.Lock(), []

    @functools.wraps(function)
    def replaced(*args: Any, **options: Any) -> Any:
        with lock:
            reached = not done
            done.append(True)
        if reached:
            first()
        return function(*args, **options)

    return replaced
