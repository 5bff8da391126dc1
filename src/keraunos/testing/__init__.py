"""Conformance suites for custom rules, codecs, learners, listeners, folders and sessions. Runs in tests.

A test class inherits a suite and defines what to test; pytest runs the suite's tests on it. docs/testing.md describes
them. Nothing else in the package imports this one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

try:
    import pytest
except ImportError as error:
    raise ImportError(
        "`keraunos.testing` needs pytest, which is not installed. Install it: pip install 'keraunos[testing]'."
    ) from error

if TYPE_CHECKING:
    from keraunos.testing.checkpoint_folder_suite import CheckpointFolderSuite as CheckpointFolderSuite
    from keraunos.testing.codec_suite import CodecSuite as CodecSuite
    from keraunos.testing.learner_suite import LearnerSuite as LearnerSuite
    from keraunos.testing.listener_suite import ListenerSuite as ListenerSuite
    from keraunos.testing.rule_suite import RuleSuite as RuleSuite
    from keraunos.testing.session_suite import SessionSuite as SessionSuite

_HOMES = {
    "CheckpointFolderSuite": "keraunos.testing.checkpoint_folder_suite",
    "CodecSuite": "keraunos.testing.codec_suite",
    "LearnerSuite": "keraunos.testing.learner_suite",
    "ListenerSuite": "keraunos.testing.listener_suite",
    "RuleSuite": "keraunos.testing.rule_suite",
    "SessionSuite": "keraunos.testing.session_suite",
}
# pytest does not collect these modules: without this call a failed `assert` in them would not show its values.
pytest.register_assert_rewrite("keraunos.testing.learner_batches", "keraunos.testing.rule_rounds", *_HOMES.values())

__all__ = sorted(_HOMES)  # noqa: PLE0605 - the table above is the list of public names


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'keraunos.testing' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
