"""Custom code of a script: it reaches the workers by itself, in training and in serving."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.java import java_options

SCRIPT = Path(__file__).with_name("script_with_own_code.py")


@pytest.mark.spark
def test_a_script_trains_and_serves_with_all_kinds_of_code_of_its_own(tmp_path):
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "JDK_JAVA_OPTIONS": java_options()}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("TOLD ")]
    assert lines, done.stderr[-3000:]
    told = json.loads(lines[0].removeprefix("TOLD "))
    for name, code in (("net", "Net"), ("inner", "Inner")):
        assert told[name]["losses"][1] < told[name]["losses"][0]
        assert told[name]["metrics"] == ["furthest", "gap", "loss"]
        assert told[name]["differs"] < 1e-5
        assert "could not find again" in told[name]["refused"]
        assert not (tmp_path / name).exists()
        warned = [each for each in told["warnings"] if f"'{code}'" in each]
        assert len(warned) == 1
        assert "register_keras_serializable" in warned[0]
    assert len(told["warnings"]) == 2
