"""Nobody but a format asks which one a model has, and what estimators share knows nothing of what is Keras's own."""

import ast
from pathlib import Path

import pytest

from keraunos.job.model_formats import BUILT_IN

ROOT = Path(__file__).resolve().parents[2] / "src/keraunos"
ASKING = sorted(
    each
    for package in ("job", "launch", "worker", "exchange", "ml", "tuning")
    for each in (ROOT / package).rglob("*.py")
)
# The estimators and fitted models of Keras itself.
OF_KERAS = {"classifier.py", "estimator.py", "regressor.py"}
SHARED = sorted(each for each in (ROOT / "ml").glob("*.py") if each.name not in OF_KERAS)
NAMES = {"KERAS", "GRAPH"}


def compared_in(text):
    """The lines that compare anything with the name of a format, or ask which of them a home model is."""
    lines = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            named = any(isinstance(each, ast.Name) and each.id in NAMES for each in sides)
            told = any(isinstance(each, ast.Constant) and each.value in BUILT_IN for each in sides)
            asked = any(isinstance(each, ast.Attribute) and each.attr == "format" for each in sides)
            if named or (told and asked):
                lines.append(node.lineno)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            kinds = {each.id for each in ast.walk(node.args[1]) if isinstance(each, ast.Name)}
            if kinds & {"KerasHome", "GraphHome", "KerasFormat", "GraphFormat"}:
                lines.append(node.lineno)
    return lines


@pytest.mark.parametrize("path", ASKING, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_asks_which_format_a_model_has(path):
    assert compared_in(path.read_text()) == []


@pytest.mark.parametrize("path", SHARED, ids=lambda path: path.name)
def test_what_estimators_share_does_not_import_what_is_keras_own(path):
    imported = {
        name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names])
    }
    assert not {name for name in imported if f"{name}.".startswith(("keraunos.ml.keras.", "keras."))}


@pytest.mark.parametrize(
    "text",
    ["source.format == GRAPH", "if job.model.format != 'keras': pass", "isinstance(home, (KerasHome, str))"],
)
def test_a_module_that_asks_is_found(text):
    assert compared_in(text) == [1]
