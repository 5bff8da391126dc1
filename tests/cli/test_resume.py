"""`keraunos resume`: the program that trained runs again, if it is this user's own and the user agrees."""

import json
import os
import pty
import stat
import subprocess
import sys

import numpy as np
import pytest

from keraunos.cli.main import CANNOT_START, FAILED, main
from keraunos.cli.resume import trusted
from keraunos.errors import CheckpointError
from keraunos.launch.hadoop_checkpoints import HadoopCheckpoints
from keraunos.launch.program import PROGRAM_FILE
from keraunos.session.registry import session_of


@pytest.fixture
def saved(tmp_path):
    """A function that notes a program, as a fit does, in a folder of this user's alone; gives the folder."""
    folder = tmp_path / "saved"
    folder.mkdir(mode=0o700)

    def note(command, arguments=(), **facts):
        path = folder / PROGRAM_FILE
        noted = {"command": command, "arguments": list(arguments), "folder": str(tmp_path), "submitted": False}
        path.write_text(json.dumps(noted | facts))
        path.chmod(0o600)
        return folder

    return note


def leaves_a_mark(tmp_path):
    """A command that would be seen to have run."""
    return [sys.executable, "-c", f"open({str(tmp_path / 'mark')!r}, 'w').write(' '.join(__import__('sys').argv[1:]))"]


def test_the_program_runs_again_and_goes_on(tmp_path, capfd):
    folder = tmp_path / "saved"
    program = [sys.executable, "-m", "tests.launch.saved_fit", str(folder), "50"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as driver:
        # Killed in its first epochs, with something saved.
        next(line for line in driver.stdout if list(folder.glob("checkpoint-*")))
        driver.kill()
    assert stat.S_IMODE((folder / PROGRAM_FILE).stat().st_mode) == 0o600
    assert main(["resume", "--yes", str(folder)]) == 0
    told = capfd.readouterr().out.splitlines()
    assert told[0].endswith(" ".join(program[1:]))
    assert told[-1].startswith("contributed")
    assert np.isfinite(np.load(f"{folder}.npy")).all()


def test_without_a_terminal_and_without_yes_nothing_runs(tmp_path, saved):
    folder = saved(leaves_a_mark(tmp_path))
    ended = subprocess.run(
        [sys.executable, "-m", "keraunos.cli.main", "resume", str(folder)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == CANNOT_START
    assert "mark" in ended.stdout  # the command was shown
    assert "there is no terminal to ask at" in ended.stderr
    assert "--yes" in ended.stderr
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(("answer", "runs"), [("y", True), ("n", False), ("", False)])
def test_at_a_terminal_the_user_is_asked(tmp_path, saved, answer, runs):
    folder = saved(leaves_a_mark(tmp_path), ["one"])
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            [sys.executable, "-m", "keraunos.cli.main", "resume", str(folder)], stdin=theirs, stdout=subprocess.PIPE
        ) as asked:
            os.write(ours, f"{answer}\n".encode())
            told = asked.communicate()[0].decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert "Run it? [y/N]" in told
    assert asked.returncode == (0 if runs else FAILED)
    assert (tmp_path / "mark").exists() is runs


@pytest.mark.parametrize("place", ["file", "folder"])
@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_what_others_may_write_is_not_run(tmp_path, saved, capsys, place, mode):
    folder = saved(leaves_a_mark(tmp_path))
    (folder if place == "folder" else folder / PROGRAM_FILE).chmod(mode | 0o100)
    assert main(["resume", "--yes", str(folder)]) == CANNOT_START
    told = capsys.readouterr().err
    assert "another user may have written" in told
    assert f"mode {mode | 0o100:04o}" in told
    assert "chmod go-w" in told
    assert not (tmp_path / "mark").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("place", ["file", "folder"])
def test_what_belongs_to_somebody_else_is_not_run(tmp_path, saved, capsys, place):
    folder = saved(leaves_a_mark(tmp_path))
    os.chown(folder if place == "folder" else folder / PROGRAM_FILE, 12345, -1)
    assert main(["resume", "--yes", str(folder)]) == CANNOT_START
    assert "owner '12345'" in capsys.readouterr().err
    assert not (tmp_path / "mark").exists()


@pytest.mark.spark
def test_owner_and_permission_count_on_hadoop_paths(spark, saved):
    folder = saved(["python"])
    path = HadoopCheckpoints(session_of(spark), folder.as_uri())
    assert json.loads(trusted(path))["command"] == ["python"]
    for place, mode in ((folder, 0o777), (folder / PROGRAM_FILE, 0o666)):
        before = place.stat().st_mode
        place.chmod(mode)
        with pytest.raises(CheckpointError, match=rf"(?s)another user may have written.*mode {mode:04o}.*'python'"):
            trusted(path)
        place.chmod(before)


def test_a_link_to_a_program_is_not_followed(tmp_path, saved, capsys):
    folder = saved(leaves_a_mark(tmp_path))
    (folder / PROGRAM_FILE).rename(tmp_path / "elsewhere.json")
    (folder / PROGRAM_FILE).symlink_to(tmp_path / "elsewhere.json")
    assert main(["resume", "--yes", str(folder)]) == CANNOT_START
    assert "does not contain a saved training" in capsys.readouterr().err
    assert not (tmp_path / "mark").exists()


def test_arguments_that_were_not_stored_are_given_again(tmp_path, saved, capsys):
    folder = saved(leaves_a_mark(tmp_path), ["--token", "<not stored>"])
    assert main(["resume", "--yes", str(folder)]) == CANNOT_START
    assert "looks like a secret was not stored" in capsys.readouterr().err
    assert not (tmp_path / "mark").exists()
    assert main(["resume", "--yes", str(folder), "--", "--token", "abc"]) == 0
    assert (tmp_path / "mark").read_text() == "--token abc"


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ({"command": []}, "notebook"),
        ({"command": ["python", "train.py"], "arguments": ["--rows", "5"], "submitted": True}, "train.py --rows 5"),
    ],
)
def test_what_cannot_be_run_again_says_what_to_do(saved, capsys, program, reason):
    assert main(["resume", "--yes", str(saved(**program))]) == CANNOT_START
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", "nothing-here"])
def test_a_folder_without_a_training_is_refused(tmp_path, capsys, name):
    assert main(["resume", str(tmp_path / name)]) == CANNOT_START
    assert "does not contain a saved training" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["[]", '{"folder": "/", "command": "rm", "arguments": []}', "{"])
def test_a_file_that_names_no_command_is_refused(saved, capsys, content):
    folder = saved([])
    (folder / PROGRAM_FILE).write_text(content)
    assert main(["resume", "--yes", str(folder)]) == CANNOT_START
    assert "does not contain a saved training" in capsys.readouterr().err
