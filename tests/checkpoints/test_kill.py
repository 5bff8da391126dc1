import random
import subprocess
import sys

import pytest

from keraunos.checkpoints.folder import LocalFolder
from keraunos.checkpoints.store import CheckpointStore
from tests.checkpoints import killed_writers

pytestmark = pytest.mark.leaks


def command(*arguments):
    return [sys.executable, "-m", "tests.checkpoints.killed_writers", *map(str, arguments)]


@pytest.mark.parametrize("kind", list(killed_writers.KINDS))
def test_killed_at_every_step_of_writing(tmp_path, kind):
    done = subprocess.run(command("every", tmp_path, kind), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    steps = int(done.stdout)
    assert steps > 60
    assert len(list(tmp_path.iterdir())) == steps + 1


def test_killed_from_outside_at_any_moment(tmp_path):
    """The same directory is killed again and again, and goes on from what is there."""
    chance = random.Random(5)
    size = 200_000
    store = CheckpointStore(LocalFolder(tmp_path))
    told = 0
    for _ in range(10):
        with subprocess.Popen(command("forever", tmp_path, size), stdout=subprocess.PIPE, text=True) as writing:
            for _ in range(chance.randrange(1, 120)):
                line = writing.stdout.readline().strip()
                told = told if line == "step" else int(line)
            writing.kill()
            # What it had told before it was killed is committed too.
            told = max([told, *(int(line) for line in writing.stdout if line.strip().isdigit())])
        found = store.latest()
        newest = 0 if found is None else found.number
        assert newest in {told, told + 1}
        if found is not None:
            killed_writers.check(found, size)
    assert newest > 5
