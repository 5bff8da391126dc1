import json
import subprocess
import sys


def test_a_checkpoint_that_does_not_fit(tmp_path):
    command = [sys.executable, "-m", "tests.checkpoints.full_disk", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    one, four = "checkpoint-000000000001", "checkpoint-000000000004"
    assert told["found"] == [[1, [one]], [1, [one]], [1, [one]], [4, [one, four]]]
    assert (told["written"], told["failures"]) == (2, 2)
    first, last = told["warnings"]
    assert first.startswith(
        f"Checkpoint 2 could not be written into {str(tmp_path)!r}. Received: [Errno 27] File too large"
    )
    assert "parameters.bin" in first
    assert first.endswith(
        "Training continues without it. Free some space there, or choose another checkpointDir: it needs space for "
        "checkpointKeep + 1 checkpoints."
    )
    assert last.startswith("2 of 4 checkpoints could not be written")
