import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import keraunos
from keraunos.cli.main import command_parser, main, split_command_line
from keraunos.compat.run_unchanged.systems import SYSTEMS


def test_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"keraunos {keraunos.__version__}\n"


def test_help_names_every_command_and_every_system(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    text = capsys.readouterr().out
    for command in ("demo", "run", "submit", "shell", "resume", "notebook", "paddle"):
        assert f"\n    {command} " in text
    assert "elephas, paddle, sparkflow, tensorspark, zoo" in " ".join(text.split())


def test_help_of_the_demo_names_every_choice(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["demo", "--help"])
    text = capsys.readouterr().out
    for word in ("--workers", "--epochs", "--batch-size", "--save", "{jax,tensorflow,torch}", "averaging", "examples:"):
        assert word in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["train"],
        ["demo", "--workers", "0"],
        ["demo", "--exchange", "gossip"],
        ["demo", "--epochs", "x"],
        ["run"],
        ["run", "--as", "caffe", "program.py"],
        ["submit", "--as", "caffe", "program.py"],
        ["shell", "--as"],
    ],
)
def test_wrong_usage_is_exit_code_2(arguments, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "usage: keraunos" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["notebook", "run", "shell", "submit"])
def test_help_of_a_command_names_the_systems(command, capsys):
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    text = capsys.readouterr().out
    assert "elephas, paddle, sparkflow, tensorspark, zoo" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 92


def test_the_documented_commands_are_understood(capsys):
    document = Path(__file__).resolve().parents[2] / "docs" / "run_unchanged.md"
    commands = re.findall(r"^keraunos (\w+ --as .*?)(?: *#.*)?$", document.read_text(), re.MULTILINE)
    assert {command.split()[0] for command in commands} == {"run", "submit", "shell"}
    for command in commands:
        own, passed = split_command_line(shlex.split(command))
        options = command_parser().parse_args(own)
        assert options.system in SYSTEMS
        assert "--as" not in passed


def test_an_unknown_system_lists_the_known_ones(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["run", "--as", "caffe", "program.py"])
    assert "invalid choice: 'caffe' (choose from" in capsys.readouterr().err


def test_without_java_the_demo_says_what_to_install(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert main(["demo"]) == 2
    message = capsys.readouterr().err
    assert "Java" in message
    assert "openjdk-17-jre-headless" in message
    assert str(tmp_path) in message


def test_an_old_java_is_named(monkeypatch, tmp_path, capsys):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert main(["demo"]) == 2
    assert "Received: Java 11" in capsys.readouterr().err


def test_a_path_that_exists_is_refused_before_training(tmp_path, capsys):
    assert main(["demo", "--save", str(tmp_path)]) == 2
    assert f"Received: '{tmp_path}'" in capsys.readouterr().err


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.extended  # `make test-wheel` runs the demo too
def test_the_demo(tmp_path, tmp_path_factory):
    saved = tmp_path / "digits"
    # Keras looks for TensorFlow by importing it, which takes seconds in every process; on JAX nobody needs it.
    watched = tmp_path_factory.mktemp("packages")
    (watched / "tensorflow.py").write_text(
        "import pathlib, traceback\n"
        "pathlib.Path(__file__).with_name('asked').write_text(''.join(traceback.format_stack()))\n"
        "raise ImportError\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "keraunos.cli.main", "demo", "--backend", "jax", "--save", str(saved)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(watched), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    accuracy = re.search(r"Accuracy +(0\.\d+)", done.stdout)
    assert accuracy
    assert float(accuracy.group(1)) >= 0.95
    same, total = re.search(r"New process +(\d+) of (\d+) predictions identical", done.stdout).groups()
    assert same == total
    assert int(total) > 300
    assert (saved / "metadata").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["digits"]
    asked = watched / "asked"
    assert not asked.exists(), asked.read_text()
