"""Runs the Python snippets of the documents; those on Keras are run in `test_examples.py`."""

import re

import pytest

from tests.docs.one_process import run_programs
from tests.docs.snippets import (
    DOCUMENTS,
    FENCE,
    GUIDE,
    INSTALLED,
    NOTEBOOKS,
    ON_GRAPHS,
    PAGES,
    ROOT,
    program_of,
    write_programs,
)
from tests.docs.test_examples import NAMES as EXAMPLES

SPARKFLOW = ROOT / "examples" / "sparkflow"
SPARKFLOW_EXAMPLES = f"""
import sys
sys.path.insert(0, {str(SPARKFLOW)!r})
import autoencoder_example, cnn_example, simple_dnn
simple_dnn.main()
cnn_example.main(iters=4)
autoencoder_example.main()
"""


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.extended  # `make test-wheel` runs it too, without the snippets for TensorFlow
def test_the_snippets_of_the_guide_run(tmp_path):
    run_programs(write_programs(GUIDE, tmp_path), tmp_path)


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What the documents on graphs and the examples of SparkFlow printed; they share a process and its Spark."""
    folder = tmp_path_factory.mktemp("graphs")
    files = write_programs(ON_GRAPHS, folder)
    if INSTALLED:
        files.append(folder / "sparkflow_examples.py")
        files[-1].write_text(SPARKFLOW_EXAMPLES)
    return run_programs(files, folder)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("document", ON_GRAPHS)
def test_the_snippets_on_graphs_run(document, printed):
    assert document.rpartition("/")[2].replace(".md", ".py") in printed


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(not INSTALLED, reason="needs TensorFlow")
def test_the_examples_of_sparkflow(printed):
    told = printed["sparkflow_examples.py"]
    assert float(re.search(r"^test error ([\d.]+)$", told, re.MULTILINE).group(1)) < 0.08
    assert float(re.search(r"^accuracy ([\d.]+)$", told, re.MULTILINE).group(1)) > 0.9
    assert float(re.search(r"^mean squared error ([\d.]+)$", told, re.MULTILINE).group(1)) < 0.3


def test_every_example_of_sparkflow_is_run():
    names = {path.stem for path in SPARKFLOW.glob("*.py")} - {"digits_csv"}
    assert all(f"{name}.main(" in SPARKFLOW_EXAMPLES for name in names)


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
