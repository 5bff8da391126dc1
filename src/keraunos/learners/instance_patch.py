"""Methods of one object replaced for a while. Runs on workers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def replaced(instance: Any, **methods: Callable[..., Any]) -> Iterator[None]:
    """Give `instance` other methods inside the context.

    The instance's own dictionary is used because Keras and the frameworks watch attribute assignment.
    """
    own = vars(instance)
    before = {name: own[name] for name in methods if name in own}
    own.update(methods)
    try:
        yield
    finally:
        for name in methods:
            own.pop(name, None)
        own.update(before)
