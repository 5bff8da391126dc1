"""A pytest plugin that finds the tests of `make test-fast`: no Spark, no other process, no file that needs TensorFlow.

A test is marked `fast` unless

- its file lies below one of `SLOW_FOLDERS`, or is one of those that need TensorFlow, or
- its file imports one of `STARTERS`, which start processes, or
- it has one of `FIXTURES`, which do, at whatever remove, or
- it is marked `slow`, `spark`, `processes`, `torch` or `extended`.

One that is marked so and yet starts a process fails.
"""

from __future__ import annotations

import ast
import functools
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Fits, clusters and whole programs.
SLOW_FOLDERS = ("benchmarks", "chaos", "clusters", "convergence", "docs", "fuzz", "integration")
MARKS = ("slow", "spark", "processes", "torch", "extended")
FIXTURES = {"spark", "forked_workers", "pytester"}
STARTERS = ("subprocess", "keraunos.launch.local", "tests.conformance.own_process", "tests.security.own_process")
STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}

_running: list[str] = []


def is_asked_for(config: pytest.Config) -> bool:
    """Whether fast tests alone are to run, so that files without any need not be read."""
    return bool(config.option.markexpr == "fast")


def is_fast_file(path: Path, tests: Path, need_tensorflow: list[str]) -> bool:
    """Whether tests in such a place may be fast."""
    return not any(path.is_relative_to(tests / each) for each in (*SLOW_FOLDERS, *need_tensorflow))


def mark(item: pytest.Item, tests: Path, need_tensorflow: list[str]) -> None:
    """Mark a test as fast, if it is."""
    fixtures = set(getattr(item, "fixturenames", ()))
    slow = FIXTURES & fixtures or any(item.get_closest_marker(name) for name in MARKS)
    if not slow and is_fast_file(item.path, tests, need_tensorflow) and not _starts_processes(item.path):
        item.add_marker(pytest.mark.fast)


@functools.cache
def _starts_processes(path: Path) -> bool:
    """Whether the file imports one of `STARTERS`, or something of one."""
    imported = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imported |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return not imported.isdisjoint(STARTERS)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    """Watch a fast test and its fixtures."""
    if item.get_closest_marker("fast") is not None:
        _running.append(item.nodeid)
    try:
        return (yield)
    finally:
        _running.clear()


def _on_event(event: str, arguments: tuple[Any, ...]) -> None:
    if event in STARTS and _running:
        raise RuntimeError(f"{_running[0]} starts a process ({event}): mark it `processes`")


# The first call of this runs `uname`, and importing h5py calls it; the answer is kept.
platform.processor()
sys.addaudithook(_on_event)
