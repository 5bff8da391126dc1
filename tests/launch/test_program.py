"""What is noted of the program that trains: no secrets, and a script is told from a notebook by what runs."""

import json
import subprocess
import sys

import pytest

from keraunos.launch.program import NOT_STORED, without_secrets

TELLS = (
    "import json; from keraunos.launch.program import Program; print(json.dumps(Program.of_this_process().to_json()))"
)


def told_by(*command):
    ended = subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.fixture
def script(tmp_path):
    def written(lines):
        path = tmp_path / "train.py"
        path.write_text(f"{lines}\n{TELLS}\n")
        return str(path)

    return written


def test_a_script_is_noted_with_its_arguments(script):
    path = script("")
    told = told_by(sys.executable, "-X", "utf8", path, "--rows", "5")
    assert told["command"] == [sys.executable, "-X", "utf8", path]
    assert told["arguments"] == ["--rows", "5"]


def test_a_script_that_has_a_kernels_packages_loaded_is_still_a_script(script):
    pytest.importorskip("ipykernel")
    path = script("import ipykernel.kernelapp")
    assert told_by(sys.executable, path)["command"] == [sys.executable, path]


def test_what_is_typed_into_ipython_is_no_program(script):
    pytest.importorskip("IPython")
    assert told_by(sys.executable, "-m", "IPython", "--simple-prompt", "-c", TELLS)["command"] == []
    # A script that such a shell runs is not what the shell's own command line would run again.
    assert told_by(sys.executable, "-m", "IPython", "-c", f"%run {script('')}")["command"] == []


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (["--password", "hunter2", "--rows", "5"], ["--password", NOT_STORED, "--rows", "5"]),
        (["--api-key=abc"], [f"--api-key={NOT_STORED}"]),
        (["--conf", "spark.hadoop.fs.s3a.secret.key=abc"], ["--conf", f"spark.hadoop.fs.s3a.secret.key={NOT_STORED}"]),
        (["jdbc:mysql://me:pass@host/db"], [NOT_STORED]),
        (["--authToken", "abc"], ["--authToken", NOT_STORED]),
        (["--use-token", "--rows", "5"], ["--use-token", "--rows", "5"]),
        (["--tokenizer", "bert", "--max-tokens", "7"], ["--tokenizer", "bert", "--max-tokens", "7"]),
        (["s3a://bucket/path", "--lr=0.1"], ["s3a://bucket/path", "--lr=0.1"]),
    ],
)
def test_values_that_look_like_secrets_are_not_stored(given, stored):
    assert list(without_secrets(given)) == stored
