import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from keraunos.cli.main import command_parser, main
from keraunos.cli.notebook import lab_arguments, lab_environment, write_settings
from keraunos.errors import JobError


def test_what_jupyterlab_is_given(tmp_path):
    plain = lab_arguments(str(tmp_path), port=None, browser=True, allow_root=False)
    assert {"--ServerApp.ip=127.0.0.1", f"--ServerApp.root_dir={tmp_path}"} < set(plain)
    assert not any("token" in word or "password" in word for word in plain)
    asked = lab_arguments(str(tmp_path), port=8890, browser=False, allow_root=True)
    assert asked == [
        *plain,
        "--ServerApp.port=8890",
        "--ServerApp.port_retries=0",
        "--no-browser",
        "--allow-root",
    ]


def test_a_notebook_is_opened_in_its_folder(tmp_path):
    (tmp_path / "my net.ipynb").write_text("{}")
    arguments = lab_arguments(str(tmp_path / "my net.ipynb"), port=None, browser=True, allow_root=False)
    assert f"--ServerApp.root_dir={tmp_path}" in arguments
    assert "--LabApp.default_url=/lab/tree/my%20net.ipynb" in arguments


def test_without_a_target_it_is_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = lab_arguments(None, port=None, browser=True, allow_root=False)
    assert f"--ServerApp.root_dir={tmp_path}" in arguments


@pytest.mark.parametrize(("name", "why"), [("nowhere", "which does not exist"), ("program.py", "which is neither")])
def test_anything_else_is_refused(tmp_path, name, why):
    (tmp_path / "program.py").touch()
    target = str(tmp_path / name)
    with pytest.raises(JobError, match=f"a folder or a notebook.*Received: {target!r}, {why}"):
        lab_arguments(target, port=None, browser=True, allow_root=False)


def test_a_users_own_paths_are_still_looked_into(tmp_path):
    environment = lab_environment({"JUPYTER_PATH": "/opt/jupyter"}, "paddle", tmp_path)
    assert environment["JUPYTER_PATH"].split(os.pathsep) == [str(tmp_path / "kernel"), "/opt/jupyter"]
    assert environment["KERAUNOS_RUN_AS"] == "paddle"


def test_the_kernel_is_pythons_own_with_the_extension(tmp_path):
    write_settings(tmp_path)
    kernel = json.loads((tmp_path / "kernel/kernels/python3/kernel.json").read_text())
    assert kernel["argv"][:3] == [sys.executable, "-m", "ipykernel_launcher"]
    assert "--InteractiveShellApp.extra_extensions=keraunos.notebook" in kernel["argv"]


def test_without_jupyterlab_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr("keraunos.cli.notebook.find_spec", lambda name: None)
    assert main(["notebook"]) == 2
    said = capsys.readouterr().err
    assert "without jupyterlab and ipykernel. Install it with `pip install 'keraunos[notebook]'`" in said


def test_the_documented_commands_are_understood():
    document = Path(__file__).resolve().parents[2] / "docs" / "notebook.md"
    commands = re.findall(r"^keraunos (notebook.*?)(?: *#.*)?$", document.read_text(), re.MULTILINE)
    understood = [command_parser().parse_args(command.split()) for command in commands]
    assert [(each.target, each.system, each.port, each.no_browser) for each in understood] == [
        (None, "", None, False),
        ("digits.ipynb", "paddle", None, False),
        ("/data/notebooks", "", 8890, True),
    ]


def await_port(process, port):
    """Jupyter says where it listens just before it does."""
    pause, deadline = threading.Event(), time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            pause.wait(0.05)
        else:
            return
    pytest.fail("the server does not listen")


@pytest.fixture
def server(tmp_path):
    """The command, running for a home of its own, and the address that it printed."""
    pytest.importorskip("jupyterlab")
    for name in ("home", "temporary", "notebooks"):
        (tmp_path / name).mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    places = {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "temporary")}
    words = ["notebook", "--no-browser", "--allow-root", "--port", str(port), str(tmp_path / "notebooks")]
    process = subprocess.Popen(
        [sys.executable, "-m", "keraunos.cli.main", *words],
        env={name: value for name, value in os.environ.items() if not name.startswith("XDG_")} | places,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            said = ""
            for line in process.stderr:
                said += line
                if found := re.search(r"(http://\S+)\?token=(\w+)", line):
                    break
            else:
                pytest.fail(said)
            await_port(process, port)
            yield process, found.group(1).removesuffix("/lab"), found.group(2)
        finally:
            process.terminate()
            process.stderr.read()


@pytest.mark.slow
def test_it_serves_a_kernel_with_spark_to_whoever_has_the_token_and_leaves_nothing(server, tmp_path):
    process, address, token = server
    assert address.startswith("http://127.0.0.1:")
    with pytest.raises(HTTPError, match="403") as refused:
        urlopen(f"{address}/api/kernelspecs")
    refused.value.close()
    with urlopen(f"{address}/api/kernelspecs?token={token}") as answer:
        kernels = json.load(answer)
    assert kernels["default"] == "python3"
    assert kernels["kernelspecs"]["python3"]["spec"]["display_name"] == "Python 3 with Spark"
    assert [path.name for path in (tmp_path / "temporary").iterdir() if "keraunos" in path.name]

    process.terminate()
    process.stderr.read()
    assert process.wait() == 0
    assert list((tmp_path / "temporary").rglob("*")) == []
    assert list((tmp_path / "home").rglob("*")) == []
