"""What the tests of hostile files share: a marker that must not come into being, and a module that would make it."""

import importlib
import sys

import pytest

from tests.security import malicious_archives as made


@pytest.fixture
def marker(tmp_path, monkeypatch):
    """A path that must not exist in the end; the module that would make it is on the path."""
    path = tmp_path / "marker"
    made.write_module(tmp_path, path)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield path
    sys.modules.pop(made.MODULE, None)


@pytest.fixture
def own_module(marker, tmp_path):
    """Writes the user's own module, which is new to this process; its name."""

    def write(source):
        (tmp_path / "a_users_own.py").write_text(source)
        # Python may have listed the folder a moment before.
        importlib.invalidate_caches()
        return "a_users_own"

    yield write
    sys.modules.pop("a_users_own", None)


@pytest.fixture
def trusted(spark):
    """Sets the modules that the session trusts, for the length of a test."""
    yield lambda *names: spark.conf.set("spark.keraunos.trustedModules", ", ".join(names))
    spark.conf.unset("spark.keraunos.trustedModules")
