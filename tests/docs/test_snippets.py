"""Runs the Python snippets of the documents, each document as one program."""

import importlib.util
import re
from pathlib import Path

import pytest

from tests.docs.one_process import run_programs
from tests.docs.test_examples import NAMES as EXAMPLES

ROOT = Path(__file__).resolve().parents[2]
# Those of TensorFlow 1.x change TensorFlow for their whole process.
GROUPS = {
    "guide": ["docs/guide.md"],
    "keras": ["docs/exchange.md", "docs/from_elephas.md", "docs/from_paddle.md"],
    "graphs": [
        "docs/from_analytics_zoo.md",
        "docs/from_sparkflow.md",
        "docs/from_tensorspark.md",
        "docs/run_unchanged.md",
    ],
}
INSTALLED_ALONE = ["README.md"]  # run by `make test-wheel`
DOCUMENTS = [*INSTALLED_ALONE, *(document for group in GROUPS.values() for document in group)]
NOTEBOOKS = ["docs/notebook.md"]  # run cell by cell in tests/notebook
PAGES = sorted(str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")))
INSTALLED = [name for name in ("tensorflow",) if importlib.util.find_spec(name)]
# A snippet may say which package it needs beside those of a plain install.
FENCE = re.compile(r"^```python(?: (\w+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def program_of(document, extras=("tensorflow",)):
    """The document with everything but its Python blanked out, so that line numbers in errors are the document's.

    Snippets that need a package which is not among the `extras` are blanked out too.
    """
    text = (ROOT / document).read_text()
    kept, end = [], 0
    for match in FENCE.finditer(text):
        if match.group(1) in (None, *extras):
            kept += ["\n" * text.count("\n", end, match.start(2)), match.group(2)]
            end = match.end(2)
    return "".join(kept)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_the_snippets_run(group, tmp_path):
    programs = []
    for document in GROUPS[group]:
        programs.append(tmp_path / f"{Path(document).stem}.py")
        programs[-1].write_text(program_of(document, INSTALLED))
    run_programs(programs, tmp_path)


def test_every_page_with_snippets_is_run():
    pages = [path for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")) if FENCE.search(path.read_text())]
    assert sorted(str(path.relative_to(ROOT)) for path in pages) == sorted(DOCUMENTS + NOTEBOOKS)


@pytest.mark.parametrize("document", [*DOCUMENTS, *NOTEBOOKS, *(f"examples/{name}" for name in EXAMPLES)])
def test_keraunos_is_imported_before_keras(document):
    """In a plain install Keras has no backend until `import keraunos` finds it one."""
    imported = re.findall(r"^(?:import|from) (keras|keraunos)\b", (ROOT / document).read_text(), re.MULTILINE)
    assert imported[0] == "keraunos"


def test_a_snippet_that_needs_tensorflow_is_left_out_where_it_is_missing():
    whole, without = (program_of("docs/guide.md", extras).splitlines() for extras in (["tensorflow"], []))
    assert "TextVectorization" in "\n".join(whole)
    assert "TextVectorization" not in "\n".join(without)
    assert all(line in ("", original) for line, original in zip(without, whole, strict=True))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_snippet_keeps_its_line_numbers(document):
    lines = (ROOT / document).read_text().splitlines()
    program = program_of(document).splitlines()
    assert sum(line != "" for line in program) > 10
    assert all(line in ("", original) for line, original in zip(program, lines, strict=False))


@pytest.mark.parametrize("document", PAGES)
def test_links_lead_somewhere(document):
    path = ROOT / document
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target).exists(), target


def test_every_file_that_the_glossary_names_exists():
    for name in re.findall(r"`([a-z_/]+(?:/|\.py))`", (ROOT / "docs/glossary.md").read_text()):
        assert (ROOT / "src/keraunos" / name).exists(), name


def test_every_heading_that_a_link_names_exists():
    anchors = {ROOT / page: {anchor_of(line) for line in (ROOT / page).read_text().splitlines()} for page in PAGES}
    for page in anchors:
        for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text()):
            assert anchor in anchors[(page.parent / target).resolve() if target else page], f"{page}: {target}#{anchor}"


def anchor_of(line):
    """The anchor that a renderer gives a heading; of any other line, nothing that a link can name."""
    return re.sub(r"[^\w -]", "", line.lstrip("#").strip().lower()).replace(" ", "-") if line.startswith("#") else ""
