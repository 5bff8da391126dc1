import os
import subprocess
import sys

import pytest

from keraunos.cli import shell_startup
from keraunos.cli.main import main
from keraunos.cli.shell import shell_environment
from keraunos.compat.run_unchanged.systems import SYSTEMS


def test_start_up_files_run_one_after_the_other():
    given = {"PYTHONSTARTUP": "/home/user/.pythonrc", "MASTER": "yarn", "PYSPARK_PYTHON": "python3"}
    environment = shell_environment(given, SYSTEMS["tensorspark"], interactive=True)
    assert environment == {
        "MASTER": "yarn",
        "PYSPARK_PYTHON": "python3",
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONSTARTUP": shell_startup.__file__,
        "KERAUNOS_RUN_AS": "tensorspark",
        "KERAUNOS_USERS_STARTUP": "/home/user/.pythonrc",
    }


def test_a_shell_that_reads_from_a_pipe_is_told_to_be_interactive():
    environment = shell_environment({"PYSPARK_DRIVER_PYTHON_OPTS": "-q"}, SYSTEMS["zoo"], interactive=False)
    assert environment["PYSPARK_DRIVER_PYTHON_OPTS"] == "-q -i"


def test_a_script_is_not_for_the_shell(capsys):
    assert main(["shell", "--as", "zoo", "program.py"]) == 2
    assert "Received: 'program.py'. Use `keraunos run`" in capsys.readouterr().err


COMMANDS = """
import example.spark_mnist as mnist
print("FOUND", mnist.__name__, callable(mnist.train), sps.__name__)
print("SPARK", sc.master, spark.sparkContext is sc, from_my_own_file)
print("EXECUTORS", sc.parallelize([1], 1).map(lambda row: __import__("tensorspark").__name__).collect())
print("LEFT", [name for name in ("_start", "USERS_VARIABLE", "annotations") if name in globals()])
nowhere
"""


@pytest.mark.spark
@pytest.mark.slow
def test_the_shell_of_the_tensorspark_document(tmp_path):
    own = tmp_path / "startup.py"
    own.write_text("from_my_own_file = sc.version\n")
    environment = {
        "PYTHONSTARTUP": str(own),
        "MASTER": "local[2]",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    options = ["--as", "tensorspark", "--deploy-mode=client", "--conf", "spark.ui.enabled=false"]
    done = subprocess.run(
        [sys.executable, "-m", "keraunos.cli.main", "shell", *options],
        cwd=tmp_path,
        env=os.environ | environment,
        input=COMMANDS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "Keraunos stands in for core, example, tensorflow, tensorspark." in done.stdout
    home = "keraunos.compat.tensorspark"
    assert f"FOUND {home}.example.spark_mnist True {home}.core.spark_session" in done.stdout
    assert "SPARK local[2] True 4." in done.stdout
    assert f"EXECUTORS ['{home}']" in done.stdout
    assert "LEFT []" in done.stdout
    assert "NameError: name 'nowhere' is not defined" in done.stderr
