import json
import os
import subprocess
import sys

import pytest

from keraunos.notebook.live_curve import LiveCurve
from keraunos.telemetry.progress import DISPLAY


def run(shell, cell):
    """What the cell's last line is worth; its error is raised."""
    result = shell.run_cell(cell)
    result.raise_error()
    return result.result


@pytest.fixture
def loaded(shell):
    run(shell, "%load_ext keraunos.notebook")
    return shell


def test_spark_is_there_when_a_cell_uses_it(loaded, spark):
    assert run(loaded, "[name in globals() for name in ('spark', 'sc', 'sqlContext')]") == [False, False, False]
    assert run(loaded, "sc") is spark.sparkContext
    assert run(loaded, "def rows():\n    return spark.range(3).count()\nrows()") == 3
    assert run(loaded, "sqlContext.sql('select 7 as n').first().n") == 7
    assert {"spark", "sc", "sqlContext"} <= set(loaded.user_ns)


def test_other_names_are_as_they_were(loaded):
    assert run(loaded, "len([max(1, 2)])") == 1
    assert run(loaded, "callable(display) and callable(get_ipython)") is True
    with pytest.raises(NameError, match="name 'spork' is not defined"):
        run(loaded, "spork")


def test_names_come_back_after_a_reset(loaded, spark):
    run(loaded, "sc")
    run(loaded, "%reset -f")
    assert run(loaded, "sc") is spark.sparkContext


@pytest.mark.parametrize("first", ["%pyspark", "%%pyspark", "%spark.pyspark", "%%spark.pyspark", "# a note\n%pyspark"])
def test_a_cell_may_say_that_it_is_for_spark(loaded, first):
    assert run(loaded, f"{first}\nx = 20\nx + 1") == 21
    assert loaded.user_ns["x"] == 20


def test_an_error_below_pyspark_is_the_cells_own(loaded):
    with pytest.raises(ZeroDivisionError):
        run(loaded, "%%pyspark\n1 / 0")


def test_code_beside_pyspark_is_refused(loaded, capsys):
    assert not loaded.run_cell("%pyspark x = 1").success
    assert "%pyspark stands alone on its line" in capsys.readouterr().err
    assert "x" not in loaded.user_ns


def test_spark_is_told_what_run_tells_it_and_to_be_quiet(loaded):
    arguments = os.environ["PYSPARK_SUBMIT_ARGS"]
    assert "spark.python.daemon.module=keraunos.compat.run_unchanged.worker_daemon" in arguments
    assert "spark.log.level=ERROR" in arguments
    assert arguments.endswith(" pyspark-shell")
    assert os.environ["MASTER"].startswith("local[")
    run(loaded, "%reload_ext keraunos.notebook")
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == arguments


def test_a_system_brings_its_modules(shell, monkeypatch):
    monkeypatch.setenv("KERAUNOS_RUN_AS", "paddle")
    run(shell, "%load_ext keraunos.notebook")
    run(shell, "%pyspark\nfrom config_parser import *\nfrom pyspark.sql import SQLContext")
    assert run(shell, "callable(parse_config) and callable(SQLContext.loadImageTable)") is True


def test_a_local_spark_has_room_for_the_cluster_that_a_cell_asks_for(shell, monkeypatch):
    monkeypatch.setenv("KERAUNOS_RUN_AS", "paddle")
    run(shell, "%load_ext keraunos.notebook")
    run(shell, "%pyspark\nif False:\n    paddle.setCluster(trainerNum = 40, pServerNum= 2)")
    assert os.environ["MASTER"] == "local[42]"
    run(shell, "if False:\n    paddle.setCluster(trainerNum=2, pServerNum=1)")
    assert os.environ["MASTER"] == "local[42]"


def test_or_that_the_notebooks_file_asks_for(shell, monkeypatch, tmp_path):
    file = tmp_path / "net.ipynb"
    source = ["%pyspark\n", "paddle.setCluster(trainerNum=30, pServerNum=1)"]
    file.write_text(json.dumps({"cells": [{"cell_type": "code", "source": source}]}))
    monkeypatch.setenv("KERAUNOS_RUN_AS", "paddle")
    monkeypatch.setenv("JPY_SESSION_NAME", str(file))
    run(shell, "%load_ext keraunos.notebook")
    assert os.environ["MASTER"] == "local[31]"


def test_a_master_that_was_chosen_stays(shell, monkeypatch):
    monkeypatch.setenv("KERAUNOS_RUN_AS", "paddle")
    monkeypatch.setenv("MASTER", "yarn")
    run(shell, "%load_ext keraunos.notebook")
    run(shell, "if False:\n    paddle.setCluster(trainerNum=40, pServerNum=2)")
    assert os.environ["MASTER"] == "yarn"


def test_fits_draw_curves_where_there_is_a_page_to_draw_on(loaded):
    assert getattr(loaded, DISPLAY) is LiveCurve


def test_fits_draw_nothing_in_a_terminal(shell):
    del shell.config["IPKernelApp"]
    run(shell, "%load_ext keraunos.notebook")
    assert not hasattr(shell, DISPLAY)


def test_unloading_puts_things_back(loaded):
    run(loaded, "%unload_ext keraunos.notebook")
    assert not hasattr(loaded, DISPLAY)
    with pytest.raises(NameError):
        run(loaded, "spark")
    assert not loaded.run_cell("%pyspark").success
    assert not loaded.run_cell("%%pyspark\n1").success


def test_importing_it_loads_no_framework():
    program = "import keraunos.notebook, sys; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {"IPython", "pyspark", "keras", "jax", "tensorflow", "PIL"} & set(loaded)
