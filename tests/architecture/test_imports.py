import subprocess
import sys

import keraunos

HEAVY = ("pyspark", "keras", "tensorflow", "torch", "jax", "pandas")

EXPORTED = [
    "ExchangePlan",
    "History",
    "JsonlLog",
    "KerasClassificationModel",
    "KerasClassifier",
    "KerasEstimator",
    "KerasModel",
    "KerasRegressionModel",
    "KerasRegressor",
    "KeraunosError",
    "Listener",
    "Rule",
    "RuleDeclaration",
    "RuleOption",
    "Sent",
    "TrainingJob",
    "__version__",
    "read_log",
    "register_rule",
    "trust_modules",
    "trusting",
]


def run_python(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def test_import_loads_no_framework():
    loaded = run_python("import keraunos, sys; print(*sorted({name.split('.')[0] for name in sys.modules}))").split()
    assert "keraunos" in loaded
    assert not set(HEAVY) & set(loaded)


def test_the_command_line_starts_without_a_framework():
    program = "import keraunos.cli.main, sys; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    assert not set(HEAVY) & set(run_python(program).split())


def test_the_exported_names():
    assert sorted(keraunos.__all__) == EXPORTED
    assert sorted(dir(keraunos)) == EXPORTED


def test_every_exported_name_resolves_when_it_is_used():
    program = "import keraunos; print(*(getattr(keraunos, name) is not None for name in keraunos.__all__))"
    assert set(run_python(program).split()) == {"True"}


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(keraunos, "KerasTransformer")
