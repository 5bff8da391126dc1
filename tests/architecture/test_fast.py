"""What `make test-fast` runs, and that it runs nothing else."""

import pytest

from tests import fast

WATCHED = """
import subprocess, sys
import pytest

def start():
    subprocess.run([sys.executable, "-c", ""], check=True)

@pytest.mark.fast
def test_that_starts_a_process():
    start()

@pytest.mark.fast
def test_that_starts_none():
    pass

def test_that_is_not_fast():
    start()
"""

QUICK = """
import pytest

@pytest.fixture
def spark():
    return 1

@pytest.fixture
def frame(spark):
    return spark

def test_quick():
    pass

def test_with_spark_behind_a_fixture(frame):
    pass

@pytest.mark.slow
def test_slow():
    pass
"""

CONFTEST = """
from pathlib import Path
from tests import fast

def pytest_itemcollected(item):
    fast.mark(item, Path(__file__).parent, ["test_graph.py"])
"""

MARKERS = "[pytest]\nmarkers =\n  fast\n  slow"
TEST = "def test_it():\n    pass\n"


@pytest.fixture
def run(pytester):
    def run(*arguments):
        pytester.makeini(MARKERS)
        return pytester.inline_run(*arguments, "-p", "no:cacheprovider", plugins=[fast])

    return run


def test_a_fast_test_that_starts_a_process_fails(pytester, run):
    pytester.makepyfile(WATCHED)
    passed, _, (failed,) = run().listoutcomes()
    assert [each.nodeid.partition("::")[2] for each in passed] == ["test_that_starts_none", "test_that_is_not_fast"]
    assert "test_that_starts_a_process starts a process (subprocess.Popen): mark it `processes`" in str(failed.longrepr)


def test_files_fixtures_and_marks_say_what_is_not_fast(pytester, run):
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_quick=QUICK, test_graph=TEST, test_starts=f"import subprocess\n\n{TEST}")
    (pytester.mkdir("clusters") / "test_fit.py").write_text(TEST)
    passed, *others = run("-m", "fast").listoutcomes()
    assert others == [[], []]
    assert [each.nodeid for each in passed] == ["test_quick.py::test_quick"]
