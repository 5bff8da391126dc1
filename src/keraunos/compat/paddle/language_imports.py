"""Paddle's modules under their own names, while a configuration runs. Runs on the driver.

Most configuration files begin with `from paddle.trainer_config_helpers import *`. They find Keraunos there; afterwards
the process imports by these names what it did before, an installed PaddlePaddle included.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from keraunos.compat.python2 import imports as python2
from keraunos.compat.run_unchanged.aliases import AliasFinder
from keraunos.compat.run_unchanged.systems import SYSTEMS


@contextmanager
def old_names() -> Iterator[None]:
    """Let imports find the modules of Paddle that Keraunos has."""
    finder = AliasFinder(SYSTEMS["paddle"])
    before = _taken_out()
    sys.meta_path.insert(0, finder)
    try:
        with python2.installed():
            yield
    finally:
        sys.meta_path.remove(finder)
        _taken_out()
        sys.modules.update(before)


def _taken_out() -> dict[str, ModuleType]:
    roots = {*SYSTEMS["paddle"].aliases, *SYSTEMS["paddle"].fallbacks}
    names = [name for name in sys.modules if name.partition(".")[0] in roots]
    return {name: sys.modules.pop(name) for name in names}
