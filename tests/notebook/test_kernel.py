"""Runs the notebook of docs/notebook.md in the kernel that `keraunos notebook` describes, with a Spark of its own."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import nbformat
import pytest
from nbclient import NotebookClient

from keraunos.cli.notebook import lab_environment, write_settings
from tests.telemetry.drawn_charts import curves_in

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "notebook.md"
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def notebook(tmp_path, monkeypatch):
    """The document's cells, and one before them that looks for Spark."""
    folder = tmp_path / "jupyter"
    write_settings(folder)
    environment = lab_environment({}, "", folder) | {
        "MASTER": "local[2]",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    cells = ["print('spark' in globals())", *FENCE.findall(DOCUMENT.read_text())]
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])


@pytest.mark.spark
@pytest.mark.slow
def test_the_documents_notebook(notebook, tmp_path):
    NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    looked, made, fitted, predicted = (cell.outputs for cell in notebook.cells)

    assert [output.text for output in looked] == ["False\n"]
    assert made == []
    (curve,) = fitted  # nothing of Spark's log, nothing of the frameworks'
    page = curve.data["text/html"]
    assert ET.fromstring(page).findtext("div").startswith("done · 12 epochs · ")
    curves = curves_in(page)
    assert {name: [len(line) for line in lines] for name, lines in curves.items()} == {"loss": [12], "accuracy": [12]}
    losses = [height for _, height in curves["loss"][0]]
    assert losses[-1] > losses[0]  # heights count downwards
    assert "History of 12 epochs" in curve.data["text/plain"]

    (grid,) = predicted
    assert grid.data["text/html"].count('src="data:image/png;base64,') == 12
    right = int(re.search(r"(\d+) of 12 right", grid.data["text/html"]).group(1))
    assert right >= 8
    assert len(re.findall(r"^[✓✗] digit \d", grid.data["text/plain"], re.MULTILINE)) == 12
