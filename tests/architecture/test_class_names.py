"""No two classes of the package have one name, except where an old system's API dictates the name."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2] / "src/keraunos"

# Modules and folders whose public classes have the names that programs of an old system import.
OLD_APIS = (
    "compat/elephas/optimizers.py",
    "compat/old_keras/sklearn_wrappers.py",
    "compat/paddle/config_parser.py",
    "compat/paddle/language_values.py",
    "compat/paddle/trainer_config_helpers/",
    "compat/tensorflow1/_savers.py",
    "compat/zoo/bigdl/",
    "compat/zoo/own_layers/",
    "compat/zoo/pipeline/",
    "compat/zoo/tfpark/model.py",
    "compat/zoo/util/triggers.py",
)

# Names that still have two meanings. Each is to be renamed; none may be added.
TO_RENAME = {
    "Diverged": {"exchange/messages.py", "telemetry/events.py"},
    "Front": {"batch.py", "learners/keras_front.py"},
    "Lap": {"exchange/messages.py", "launch/hooks.py"},
    "Member": {"exchange/coordination.py", "exchange/slice_state.py"},
    "Parts": {"learners/graph_checks.py", "ml/persistence.py"},
    "Port": {"learners/graph_network.py", "ml/signature.py"},
    "Prepared": {"exchange/coordination.py", "ml/preparation.py"},
    "Pulse": {"exchange/messages.py", "exchange/pulse.py"},
    "Resumed": {"launch/saver.py", "telemetry/events.py"},
    "Save": {"exchange/messages.py", "exchange/slice_state.py"},
}


def modules_by_class(root):
    """The modules that define a class of each name, with a module twice that defines two."""
    found = defaultdict(list)
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(path.relative_to(root).as_posix())
    return found


def is_dictated(name, module):
    return not name.startswith("_") and module.startswith(OLD_APIS)


def shared_names(root):
    """The names that more than one class has whose name is free to choose, and the modules of these classes."""
    free = {
        name: [module for module in modules if not is_dictated(name, module)]
        for name, modules in modules_by_class(root).items()
    }
    return {name: set(modules) for name, modules in free.items() if len(modules) > 1}


def test_no_two_classes_have_one_name():
    assert shared_names(ROOT) == TO_RENAME


def test_two_classes_of_one_name_are_found(tmp_path):
    (tmp_path / "one.py").write_text("class Twice: ...\nclass Once: ...\n")
    (tmp_path / "other.py").write_text("def make():\n    class Twice: ...\n")
    assert shared_names(tmp_path) == {"Twice": {"one.py", "other.py"}}


def test_every_old_api_exists():
    assert all((ROOT / each).exists() for each in OLD_APIS)
