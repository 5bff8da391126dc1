import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "src").rglob("*.py"))
MOST_LINES = 500
VAGUE = {"core", "utils", "util", "common", "helpers", "helper", "misc"}


def own_parts(path):
    """The parts of a module's path that were named here: below `compat/<system>` names are the old system's own."""
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return parts[:3] if parts[1:2] == ("compat",) else parts


def name_of(path):
    return path.relative_to(ROOT / "src").as_posix()


def says_what_it_is_for(path):
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    return bool(docstring) and docstring.splitlines()[0].endswith((".", ":"))


def test_every_module_says_what_it_is_for():
    assert [name_of(path) for path in MODULES if not says_what_it_is_for(path)] == []


def test_every_module_is_short_enough_to_read():
    lines = {name_of(path): len(path.read_text().splitlines()) for path in MODULES}
    assert {name: count for name, count in lines.items() if count >= MOST_LINES} == {}


def test_every_name_says_what_is_inside():
    vague = {name_of(path): set(own_parts(path)) & VAGUE for path in MODULES}
    assert {name: found for name, found in vague.items() if found} == {}


def test_there_is_something_to_look_at():
    assert ROOT / "src/keraunos/__init__.py" in MODULES
