"""Runs the Python snippets of the documents, each document as one program in a process of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

# A JVM that lives for a minute had better not compile for a long life.
ENVIRONMENT = {"KERAS_BACKEND": "jax", "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    "README.md",
    "docs/exchange.md",
    "docs/from_analytics_zoo.md",
    "docs/from_elephas.md",
    "docs/from_sparkflow.md",
    "docs/from_tensorspark.md",
    "docs/guide.md",
    "docs/run_unchanged.md",
]
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def program_of(document):
    """The document with everything but its Python blanked out, so that line numbers in errors are the document's."""
    text = (ROOT / document).read_text()
    kept, end = [], 0
    for match in FENCE.finditer(text):
        kept += ["\n" * text.count("\n", end, match.start(1)), match.group(1)]
        end = match.end(1)
    return "".join(kept)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_snippets_run(document, tmp_path):
    program = tmp_path / f"{Path(document).stem}.py"
    program.write_text(program_of(document))
    done = subprocess.run(
        [sys.executable, program.name],
        cwd=tmp_path,
        env=os.environ | ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_snippet_keeps_its_line_numbers(document):
    lines = (ROOT / document).read_text().splitlines()
    program = program_of(document).splitlines()
    assert sum(line != "" for line in program) > 10
    assert all(line in ("", original) for line, original in zip(program, lines, strict=False))


@pytest.mark.parametrize("document", [*DOCUMENTS, "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_links_lead_somewhere(document):
    path = ROOT / document
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target).exists(), target
