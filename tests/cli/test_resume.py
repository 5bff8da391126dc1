"""`keraunos resume`: the program that trained runs again; what cannot be run again says why."""

import json
import subprocess
import sys

import numpy as np
import pytest

from keraunos.cli.main import CANNOT_START, main
from keraunos.launch.program import PROGRAM_FILE, why_not


def test_the_program_runs_again_and_goes_on(tmp_path, capfd):
    folder = tmp_path / "saved"
    program = [sys.executable, "-m", "tests.launch.saved_fit", str(folder)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as driver:
        # Killed in its first epochs, with something saved.
        next(line for line in driver.stdout if list(folder.glob("checkpoint-*")))
        driver.kill()
    assert main(["resume", str(folder)]) == 0
    told = capfd.readouterr().out.splitlines()
    assert told[0].endswith(" ".join(program[1:]))
    assert told[-1].startswith("contributed")
    assert np.isfinite(np.load(f"{folder}.npy")).all()


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ({"command": [], "folder": "/", "submitted": False}, "notebook"),
        ({"command": ["python", "train.py", "--rows", "5"], "folder": "/", "submitted": True}, "train.py --rows 5"),
    ],
)
def test_what_cannot_be_run_again_says_what_to_do(tmp_path, capsys, program, reason):
    (tmp_path / PROGRAM_FILE).write_text(json.dumps(program))
    assert main(["resume", str(tmp_path)]) == CANNOT_START
    assert reason in capsys.readouterr().err
    assert why_not(program) is not None


@pytest.mark.parametrize("name", ["", "nothing-here"])
def test_a_folder_without_a_training_is_refused(tmp_path, capsys, name):
    assert main(["resume", str(tmp_path / name)]) == CANNOT_START
    assert "is no directory in which a training was saved" in capsys.readouterr().err
