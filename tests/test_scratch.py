"""Temporary folders of processes that were killed: the next fit removes them, or Spark does."""

import os
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from keraunos import scratch
from keraunos.launch.attempts import saved
from tests.conformance import engine
from tests.conformance import learner_models as models

pytestmark = pytest.mark.leaks

# A driver whose parameters may be lost, at the time when it trains.
DRIVER = """
from keraunos.launch.attempts import saved
from tests.test_scratch import job
with saved(job(), None) as saving:
    print(saving.store.path, flush=True)
    input()
"""

# A worker that is killed while Keras reads a model for it.
WORKER = """
import os, signal, sys
import keras
from keraunos.learners.keras_archive import from_archive, to_archive

@keras.saving.register_keras_serializable("tests")
class Fatal(keras.layers.Layer):
    def load_own_variables(self, store):
        os.kill(os.getpid(), signal.SIGKILL)
    def build(self, shape):
        self.w = self.add_weight(shape=(1,))
    def call(self, x):
        return x

archive = to_archive(keras.Sequential([keras.Input((2,)), Fatal()]), {"Fatal": Fatal})
print(sorted(os.listdir(sys.argv[1])), flush=True)
from_archive(archive, {"Fatal": Fatal})
"""


def job():
    return engine.job_of(models.dense("sgd"), 1, servers="workers")


@pytest.fixture
def driver():
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def test_the_checkpoints_of_a_killed_driver_go_with_the_next_fit(driver):
    process, folder = driver
    assert folder.is_dir()
    with saved(job(), None):
        assert folder.is_dir()  # its owner lives
    process.kill()
    process.wait()
    (folder / "checkpoint").mkdir(exist_ok=True)
    with saved(job(), None) as saving:
        assert not folder.exists()
        assert Path(saving.store.path).is_dir()
    assert not Path(saving.store.path).exists()


def test_a_driver_that_ends_removes_its_own(driver):
    process, folder = driver
    process.communicate("\n")
    assert process.returncode == 0
    assert not folder.exists()


def test_a_worker_that_is_killed_leaves_its_files_where_spark_removes_them(tmp_path):
    temporary, of_spark = tmp_path / "temporary", tmp_path / "blockmgr-1"
    temporary.mkdir()
    of_spark.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary), "SPARK_LOCAL_DIRS": str(of_spark)}
    ended = subprocess.run(
        [sys.executable, "-c", WORKER, str(temporary)], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode < 0, ended.stderr
    assert list(temporary.iterdir()) == []
    assert list(of_spark.glob("keraunos-*"))


@pytest.mark.spark
def test_spark_tells_its_workers_of_such_a_place(spark):
    (place,) = spark.sparkContext.parallelize([0], 1).map(lambda _: scratch.spark_directory()).collect()
    assert Path(place).is_dir()
    assert scratch.spark_directory() is None


def test_only_folders_of_this_user_that_nobody_holds_are_removed(tmp_path):
    base = Path(tempfile.gettempdir())
    others = base / "keraunos-of-somebody"
    link = base / f"{scratch.PREFIX}link"
    target = tmp_path / "target"
    for each in (others, target):
        each.mkdir()
    link.symlink_to(target)
    try:
        with scratch.folder("test") as held:
            scratch.remove_abandoned()
            assert stat.S_IMODE(Path(held).stat().st_mode) == 0o700
            assert others.is_dir()
            assert target.is_dir()
    finally:
        link.unlink()
        others.rmdir()


def test_folders_are_made_while_others_look_for_abandoned_ones():
    ended = threading.Event()

    def sweep():
        while not ended.is_set():
            scratch.remove_abandoned()

    thread = threading.Thread(target=sweep)
    thread.start()
    try:
        for _ in range(200):
            with scratch.folder("test") as folder:
                Path(folder, "file").write_text("mine")
                assert Path(folder, "file").read_text() == "mine"
    finally:
        ended.set()
        thread.join()
