"""Tests that need a Keras backend other than this process's, run in a process of their own."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree as ET

FAILED = {"failure", "error"}


def passes_on(backend, file, **variables):
    """Run the tests of `file` under `backend`, with these environment variables; show their report where they fail."""
    Run(backend, [file], **variables).passed(file)


class Run:
    """The tests of some files that are `marked` so, run in one process under `backend`, with environment variables."""

    def __init__(self, backend, files, marked="", **variables):
        environment = {**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3", **variables}
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.xml"
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", marked]
            self._done = subprocess.run(
                [*command, f"--junitxml={report}", *map(str, files)],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=560,
            )
            self._cases = ET.parse(report).findall(".//testcase") if report.exists() else []

    def passed(self, file):
        """Fail, with the report, unless all tests of this file passed."""
        mine = [case for case in self._cases if Path(file).stem in case.get("classname", "").split(".")]
        assert any(not _results(case) for case in mine), self._shown()
        assert not any(_results(case) & FAILED for case in mine), self._shown()
        # Something is wrong that no test was told of.
        assert self._done.returncode == 0 or any(_results(case) & FAILED for case in self._cases), self._shown()

    def _shown(self):
        return self._done.stdout[-8000:] + self._done.stderr[-2000:]


def _results(case):
    """What is said of a test that did not simply pass."""
    return {child.tag for child in case} & {*FAILED, "skipped"}
