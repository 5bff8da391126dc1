"""The table of accuracies: it is read from real runs, goes on where it was interrupted, and judges by the goals."""

import gzip
import importlib.util
import json
import struct
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="module")
def convergence():
    path = Path(__file__).parents[2] / "benchmarks" / "convergence.py"
    spec = importlib.util.spec_from_file_location("convergence", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def idx(values):
    header = b"\x00\x00\x08" + bytes([values.ndim]) + struct.pack(f">{values.ndim}i", *values.shape)
    return header + values.astype(np.uint8).tobytes()


@pytest.fixture
def digits(tmp_path):
    """A folder like MNIST's; the digits are as many bright rows of pixels as their label says."""
    labels = np.arange(400) % 10
    images = np.zeros((400, 28, 28))
    for image, label in zip(images, labels, strict=True):
        image[: 2 * label + 2] = 255
    for part, rows in (("train", 400), ("t10k", 100)):
        packed = gzip.compress(idx(images[:rows]))
        (tmp_path / f"{part}-images-idx3-ubyte.gz").write_bytes(packed)
        (tmp_path / f"{part}-labels-idx1-ubyte").write_bytes(idx(labels[:rows]))
    return tmp_path


def test_files_are_read_packed_or_not_and_others_refused(convergence, digits):
    data = convergence.Mnist(digits)
    assert data.x.shape == (400, 784)
    assert data.x[3].sum() == 8 * 28
    assert data.y_test.tolist() == (np.arange(100) % 10).tolist()
    (digits / "t10k-labels-idx1-ubyte").write_bytes(b"label,pixels\n")
    with pytest.raises(ValueError, match="must be an idx file"):
        convergence.Mnist(digits)


def test_a_line_cut_short_costs_one_run(convergence, tmp_path):
    path = tmp_path / "results.jsonl"
    convergence.Results(path).add({"seed": 1, "plan": "keras"}, accuracy=97.0)
    with path.open("a") as file:
        file.write('{"run": {"seed": 2, "pl')
    again = convergence.Results(path)
    assert again.get({"plan": "keras", "seed": 1})["accuracy"] == 97.0
    assert again.get({"plan": "keras", "seed": 2}) is None
    again.add({"seed": 2, "plan": "keras"}, accuracy=98.0)
    assert convergence.Results(path).get({"plan": "keras", "seed": 2})["accuracy"] == 98.0


def test_the_folder_must_be_named(convergence, monkeypatch, capsys):
    monkeypatch.delenv("KERAUNOS_MNIST", raising=False)
    with pytest.raises(SystemExit):
        convergence.parse([])
    assert "--data FOLDER" in capsys.readouterr().err


@pytest.mark.slow
def test_a_plan_is_measured_once_and_shown_beside_keras(convergence, digits, capsys):
    results = digits / "results.jsonl"
    chosen = ["--data", str(digits), "--results", str(results), "--markdown"]
    chosen += ["--plans", "averaging", "--models", "mlp", "--workers", "2", "--seeds", "1", "--epochs", "2"]
    convergence.main(chosen)
    first = capsys.readouterr().out
    runs = [json.loads(line) for line in results.read_text().splitlines()]
    assert [run["run"]["workers"] for run in runs] == [1, 2]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in first.splitlines() if line.startswith("| mlp")]
    assert [row[2] for row in rows] == ["single-process Keras", "averaging"]
    assert float(rows[1][4]) == pytest.approx(runs[1]["accuracy"], abs=0.01)
    assert rows[1][8] == ("met" if runs[0]["accuracy"] - runs[1]["accuracy"] <= 0.3 else "missed")
    convergence.main(chosen)
    again = capsys.readouterr().out
    assert "seed 1  " not in again
    assert again.splitlines()[-6:] == first.splitlines()[-6:]
    assert len(results.read_text().splitlines()) == 2
