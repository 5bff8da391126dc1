"""The Python snippets of the documents, each document as one program."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ON_KERAS = ["docs/exchange.md", "docs/from_elephas.md", "docs/from_paddle.md", "docs/testing.md"]
# The first of these wants Keras on TensorFlow, those of TensorFlow 1.x change TensorFlow for their whole process.
ON_GRAPHS = [
    "docs/from_analytics_zoo.md",
    "docs/from_sparkflow.md",
    "docs/from_tensorspark.md",
    "docs/run_unchanged.md",
]
GUIDE = ["docs/guide.md"]
INSTALLED_ALONE = ["README.md"]  # run by `make test-wheel`
DOCUMENTS = [*INSTALLED_ALONE, *GUIDE, *ON_KERAS, *ON_GRAPHS]
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


def write_programs(documents, folder):
    """Files with the documents' programs, as far as what they need is installed."""
    files = [folder / f"{Path(document).stem}.py" for document in documents]
    for document, file in zip(documents, files, strict=True):
        file.write_text(program_of(document, INSTALLED))
    return files
