import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "src").rglob("*.py"))
VAGUE = {"core", "utils", "util", "common", "helpers", "helper", "misc"}


def own_parts(path):
    """The parts of a module's path that were named here: below `compat/<system>` names are the old system's own."""
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return parts[:3] if parts[1:2] == ("compat",) else parts


def name_of(path):
    return path.relative_to(ROOT / "src").as_posix()


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_says_what_it_is_for(path):
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    assert docstring
    assert docstring.splitlines()[0].endswith((".", ":"))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_is_short_enough_to_read(path):
    assert len(path.read_text().splitlines()) < 500


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_name_says_what_is_inside(path):
    assert not set(own_parts(path)) & VAGUE


def test_there_is_something_to_look_at():
    assert ROOT / "src/keraunos/__init__.py" in MODULES
