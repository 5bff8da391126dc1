import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from keraunos.cli import submitted
from keraunos.cli.main import main
from keraunos.cli.spark_options import SparkCommandLine
from keraunos.cli.submit import python_for, spark_home, submit_arguments
from keraunos.compat.run_unchanged.systems import system_named
from keraunos.errors import JobError

SETTINGS = [
    "--conf",
    "spark.python.daemon.module=keraunos.compat.run_unchanged.worker_daemon",
    "--conf",
    "spark.executorEnv.KERAUNOS_RUN_AS=zoo",
]


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("program.py").write_text("")
    return [*SETTINGS, "--conf", f"spark.executorEnv.KERAUNOS_PROGRAM_FOLDER={tmp_path}"]


def submitted_with(line):
    return submit_arguments("zoo", SparkCommandLine.parse(line.split()))


def test_options_stay_and_the_script_is_run_by_ours(program):
    assert submitted_with("--master yarn --conf a=b program.py --rows 3") == [
        *program,
        *("--name", "program.py"),
        *("--master", "yarn", "--conf", "a=b"),
        submitted.__file__,
        *("zoo", "program.py", "--rows", "3"),
    ]


def test_executors_are_told_that_a_program_is_for_python_2(program):
    Path("program.py").write_text("print 1")
    assert "spark.executorEnv.KERAUNOS_RUN_AS=zoo::python2" in submitted_with("program.py")
    assert system_named("zoo::python2").label == "zoo::python2"
    assert (system_named("zoo:1:python2").keras, system_named("zoo:1:python2").python2) == ("1", True)
    assert (system_named("zoo:1").label, system_named("zoo").label) == ("zoo:1", "zoo")


@pytest.mark.parametrize("named", ["--name mine", "--conf spark.app.name=mine"])
def test_a_name_of_the_users_stays(program, named):
    assert submitted_with(f"{named} program.py") == [
        *program,
        *named.split(),
        submitted.__file__,
        *("zoo", "program.py"),
    ]


@pytest.mark.parametrize(
    "mode", ["--deploy-mode cluster", "--deploy-mode=cluster", "-c spark.submit.deployMode=cluster"]
)
def test_the_script_is_shipped_to_a_driver_in_the_cluster(program, mode):
    given = submitted_with(f"{mode} --py-files a.zip,b.py program.py")
    assert given.count("--py-files") == 1
    assert given[given.index("--py-files") + 1] == "a.zip,b.py,program.py"
    assert given[-2:] == ["zoo", "program.py"]


def test_a_script_elsewhere_is_shipped_too():
    given = submitted_with("s3://bucket/program.py x")
    assert given[: len(SETTINGS)] == SETTINGS
    assert given[given.index("--py-files") + 1] == "s3://bucket/program.py"
    assert given[given.index("--name") + 1] == "program.py"
    assert given[-4:] == [submitted.__file__, "zoo", "s3://bucket/program.py", "x"]


@pytest.mark.parametrize(("line", "message"), [("--master yarn", "a script after"), ("no.py", "Received: 'no.py'")])
def test_without_a_script_nothing_is_submitted(tmp_path, monkeypatch, line, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(JobError, match=message):
        submitted_with(line)


def test_without_a_script_the_command_ends_with_2(capsys):
    assert main(["submit", "--as", "zoo", "--master", "yarn"]) == 2
    assert "Received: '--master yarn'" in capsys.readouterr().err


def test_this_python_runs_the_program_unless_another_was_chosen():
    chosen = {"PYSPARK_PYTHON": "./env/bin/python", "MASTER": "yarn"}
    assert python_for(chosen, clustered=True) == chosen
    assert python_for(chosen, clustered=False) == chosen | {"PYSPARK_DRIVER_PYTHON": sys.executable}
    both = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    assert python_for({"MASTER": "yarn"}, clustered=True) == both | {"MASTER": "yarn"}


def test_spark_home_is_the_users_or_pysparks(monkeypatch, tmp_path):
    monkeypatch.delenv("SPARK_HOME", raising=False)
    assert (spark_home() / "bin" / "spark-submit").is_file()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert spark_home() == tmp_path


PROGRAM = """
import json, sys
from pyspark import SparkContext
import bigdl.optim.optimizer as optimizer

def inside(rows):
    from bigdl.optim.optimizer import Adam
    yield Adam.__module__, sum(rows)

mine = SparkContext("local[1]", "of my own")
mine.setLogLevel("OFF")
found = mine.parallelize([1, 2], 1).mapPartitions(inside).collect()
same = sc is mine and spark.sparkContext is mine
print("FOUND", json.dumps([optimizer.__name__, found, same, mine.master, mine.appName, sys.argv[1:], __name__]))
sys.exit(4)
"""


@pytest.mark.spark
@pytest.mark.slow
def test_a_program_with_a_context_of_its_own_is_submitted(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {"SPARK_LOCAL_IP": "127.0.0.1"}
    options = ["--conf", "spark.ui.enabled=false", "--conf", "spark.log.level=ERROR"]
    done = subprocess.run(
        # As a URL: Spark copies it, and it is run from where Spark put the copy.
        [
            sys.executable,
            "-m",
            "keraunos.cli.main",
            "submit",
            "--as",
            "zoo",
            *options,
            f"file://{tmp_path}/program.py",
            "--as",
        ],
        cwd=tmp_path,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4, done.stderr[-4000:]
    found = json.loads(re.search(r"^FOUND (.*)$", done.stdout, re.MULTILINE).group(1))
    home = "keraunos.compat.zoo.bigdl.optim"
    assert found[0] == f"{home}.optimizer"
    assert found[1][0][0].startswith(home)
    assert found[1][0][1] == 3
    assert found[2:] == [True, "local[1]", "of my own", ["--as"], "__main__"]
