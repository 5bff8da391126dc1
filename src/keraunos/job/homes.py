"""Classes that are found by their home, `module:Class`, and imported when they are asked for. Runs everywhere.

Rules and model formats are found so: plain data names them, and any process that can import the home has the class.
"""

from __future__ import annotations

import importlib
from typing import Any


def is_home(text: str) -> bool:
    """Whether it is written `module:Class`."""
    module, _, name = text.partition(":")
    return name.isidentifier() and all(part.isidentifier() for part in module.split("."))


def at_home(home: str) -> Any:
    """What is there; `ImportError` or `AttributeError` where nothing is."""
    module, _, name = home.partition(":")
    return getattr(importlib.import_module(module), name)
