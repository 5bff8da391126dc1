import importlib
import os
import subprocess
import sys

import pytest

from keraunos.compat.python2 import imports


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """A folder on the path whose modules may be for Python 2."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    before = set(sys.modules)
    with imports.installed():
        yield tmp_path
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


def test_a_module_for_python_2_is_translated_and_not_kept_in_a_file(beside):
    (beside / "oldmodule.py").write_text("print 'loading'\nhalf = 7 / 2\ndef doubled(xs): return map(None, xs)\n")
    module = importlib.import_module("oldmodule")
    assert (module.half, module.doubled((1, 2))) == (3, [1, 2])
    assert not (beside / "__pycache__").exists()


def test_a_translation_is_not_mixed_up_with_what_python_has_kept(beside):
    """`half` is 3.5 in the file that Python itself has written for the module."""
    path = beside / "validmodule.py"
    path.write_text("half = 7 / 2\ndef numbers():\n    return xrange(3)\n")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", "import validmodule"], cwd=beside, env=environment, check=True)
    assert (beside / "__pycache__").exists()
    assert importlib.import_module("validmodule").half == 3


def test_a_module_for_python_3_is_loaded_as_ever(beside):
    (beside / "newmodule.py").write_text("half = 7 / 2\n")
    assert importlib.import_module("newmodule").half == 3.5
    assert (beside / "__pycache__").exists()


BOTH = {
    "plain": ("half = 7 / 2\n", 3),
    "future": ("from __future__ import division\nhalf = 7 / 2\n", 3.5),
    "knows": ("import sys\nPY3 = sys.version_info[0] >= 3\nhalf = 7 / 2\n", 3.5),
    "new": ("def f(x: int) -> int: return x\nhalf = 7 / 2\n", 3.5),
}


@pytest.mark.parametrize("name", BOTH)
def test_a_module_beside_a_program_for_python_2_is_for_python_2_unless_it_tells_otherwise(beside, name):
    source, half = BOTH[name]
    (beside / f"{name}beside.py").write_text(source)
    with imports.installed(beside=True):
        assert importlib.import_module(f"{name}beside").half == half
    (beside / f"{name}alone.py").write_text(source)
    assert importlib.import_module(f"{name}alone").half == 3.5


def test_installed_packages_are_left_alone(beside, monkeypatch):
    packages = beside / "lib" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "installedmodule.py").write_text("half = 7 / 2\ndef numbers():\n    return xrange(3)\n")
    monkeypatch.syspath_prepend(packages)
    assert importlib.import_module("installedmodule").half == 3.5


def test_a_module_looks_in_its_own_package_first(beside):
    package = beside / "oldpackage"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "json.py").write_text("whose = 'mine'\n")
    (package / "part.py").write_text("print 'part'\nimport json\nfrom json import whose as also\nimport sys\n")
    module = importlib.import_module("oldpackage.part")
    assert (module.json.whose, module.also, module.sys) == ("mine", "mine", sys)


def test_a_star_import_brings_what_a_module_defines(beside):
    (beside / "givesall.py").write_text("print 'x'\nnumbers = map(None, range(3))\n_own = 1\n")
    (beside / "takesall.py").write_text("from givesall import *\nlazy = map(str, numbers)\n")
    module = importlib.import_module("takesall")
    assert module.numbers == [0, 1, 2]
    assert not isinstance(module.lazy, list)


def test_finders_are_as_they_were_afterwards():
    before = list(sys.meta_path)
    with imports.installed(), imports.installed():
        assert sys.meta_path != before
    assert sys.meta_path == before
