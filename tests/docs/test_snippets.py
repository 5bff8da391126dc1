"""Runs the Python snippets of the documents, each document as one program."""

import re
from pathlib import Path

import pytest

from tests.docs.one_process import run_programs

ROOT = Path(__file__).resolve().parents[2]
# Those of TensorFlow 1.x change TensorFlow for their whole process.
GROUPS = {
    "keras": ["README.md", "docs/exchange.md", "docs/from_elephas.md", "docs/from_paddle.md", "docs/guide.md"],
    "graphs": [
        "docs/from_analytics_zoo.md",
        "docs/from_sparkflow.md",
        "docs/from_tensorspark.md",
        "docs/run_unchanged.md",
    ],
}
DOCUMENTS = [document for group in GROUPS.values() for document in group]
NOTEBOOKS = ["docs/notebook.md"]  # run cell by cell in tests/notebook
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
@pytest.mark.parametrize("group", GROUPS)
def test_the_snippets_run(group, tmp_path):
    programs = []
    for document in GROUPS[group]:
        programs.append(tmp_path / f"{Path(document).stem}.py")
        programs[-1].write_text(program_of(document))
    run_programs(programs, tmp_path)


def test_every_page_with_snippets_is_run():
    pages = [path for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")) if FENCE.search(path.read_text())]
    assert sorted(str(path.relative_to(ROOT)) for path in pages) == sorted(DOCUMENTS + NOTEBOOKS)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_snippet_keeps_its_line_numbers(document):
    lines = (ROOT / document).read_text().splitlines()
    program = program_of(document).splitlines()
    assert sum(line != "" for line in program) > 10
    assert all(line in ("", original) for line, original in zip(program, lines, strict=False))


@pytest.mark.parametrize(
    "document", [*DOCUMENTS, *NOTEBOOKS, "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "docs/reliability.md"]
)
def test_links_lead_somewhere(document):
    path = ROOT / document
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target).exists(), target
