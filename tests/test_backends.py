"""Which backend Keras runs on after `import keraunos`, in installations that lack some of them."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.extended import extended

SITE = Path(pytest.__file__).parent.parent
SOURCE = Path(__file__).resolve().parents[1] / "src"
LOAD_HOME = """from keraunos.job.training_job import ModelSource
    from keraunos.formats.registry import load_home
    load_home(ModelSource(b"", "jax"))"""
BACKEND = "import keraunos, keras; print(keras.config.backend())"


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """A function that gives a folder with the packages of this environment but for some."""

    def without(*names):
        folder = tmp_path_factory.mktemp("packages")
        for path in SITE.iterdir():
            if path.name.lower().partition("-")[0].partition(".")[0] not in names and path.suffix != ".pth":
                (folder / path.name).symlink_to(path)
        return folder

    return without


@pytest.fixture(scope="module")
def plain(packages):
    """An installation with JAX only."""
    return packages("tensorflow", "torch")


@pytest.fixture
def python(tmp_path):
    """A function that runs a program with some installation's packages and an empty home; gives what it printed."""

    def run(program, installation, **environment):
        home = tmp_path / "home"
        home.mkdir(exist_ok=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("KERAS", "PYTHON"))}
        # -S: only what PYTHONPATH names.
        done = subprocess.run(
            [sys.executable, "-S", "-c", program],
            cwd=tmp_path,
            env={**kept, "HOME": str(home), "PYTHONPATH": f"{SOURCE}{os.pathsep}{installation}", **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


def test_a_plain_install_runs_on_jax(python, plain, tmp_path):
    assert python(BACKEND, plain) == "jax"
    # Keras has written its default there, which is not installed and so nobody's choice.
    assert '"backend": "tensorflow"' in (tmp_path / "home/.keras/keras.json").read_text()
    assert python(BACKEND, plain) == "jax"


def test_importing_the_package_writes_nothing(python, plain, tmp_path):
    python("import keraunos", plain)
    assert [path.name for path in tmp_path.rglob("*")] == ["home"]


def test_keras_can_be_imported_after_an_import_that_failed(python, plain):
    program = """
try:
    import keras
except ModuleNotFoundError as error:
    print(error.name)
import keraunos, keras
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
print(keras.config.backend(), keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(model)).built)
"""
    assert python(program, plain).split() == ["tensorflow", "jax", "True"]


def test_a_choice_is_respected(python, packages, tmp_path):
    everything = packages()
    settled = "import keraunos, os; print(os.environ.get('KERAS_BACKEND'))"
    assert python(settled, everything, KERAS_BACKEND="torch") == "torch"
    assert python(settled, everything, KERAS_BACKEND="") == ""
    assert (
        python("import os, keras; import keraunos; print(keras.config.backend())", everything, KERAS_BACKEND="jax")
        == "jax"
    )
    # With TensorFlow, Keras's own default stands: the file that it writes says so from then on.
    assert python(settled, everything) == "None"
    elsewhere = tmp_path / "settings"
    elsewhere.mkdir()
    for named, expected in (("jax", "None"), ("numpy", "None"), ("caffe", "jax")):
        (elsewhere / "keras.json").write_text(f'{{"backend": "{named}"}}')
        assert python(settled, everything, KERAS_HOME=str(elsewhere)) == expected
    (elsewhere / "keras.json").write_text("{")
    assert python(settled, everything, KERAS_HOME=str(elsewhere)) == "None"


def test_a_folder_of_that_name_is_no_installation(python, plain, tmp_path):
    (tmp_path / "tensorflow").mkdir()
    assert python("import keraunos, os; print(os.environ.get('KERAS_BACKEND'))", plain) == "jax"


@pytest.mark.parametrize(
    "use",
    [
        "from keraunos import KerasClassifier; KerasClassifier(model=1)",
        extended("from keraunos import KerasClassifier; KerasClassifier(callbacks=[1])"),
        LOAD_HOME,
        extended("from keraunos.ml.references import from_references; from_references({'a': 'b'})"),
    ],
)
def test_what_keras_is_set_to_run_on_is_said_where_it_is_missing(python, plain, use):
    program = f"""
import keraunos
try:
    {use}
except keraunos.KeraunosError as error:
    print(error)
"""
    assert python(program, plain, KERAS_BACKEND="torch") == (
        "Keras cannot be imported: KERAS_BACKEND=torch sets it to run on 'torch', and the package 'torch' is not "
        f"installed for {sys.executable} on {socket.gethostname()}. Installed: jax. Install it with "
        "`pip install 'keraunos[torch]'`, or set KERAS_BACKEND=jax before Keras is imported."
    )
    if "model=1" in use:
        assert "names a backend that it does not have" in python(program, plain, KERAS_BACKEND="caffe")
