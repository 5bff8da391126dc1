"""How fast a program for Elephas 7.3 is with Elephas and with Keraunos, unchanged, in the same run.

    benchmarks/peers/elephas.sh .venv-elephas
    python benchmarks/elephas.py --data FOLDER --elephas-python .venv-elephas/bin/python

The program is benchmarks/peers/elephas_program.py: the model of Elephas's document on full MNIST (FOLDER has its idx
files) with two workers, epochs averaged with batches of 32, and asynchronous after each batch of 128. Each contestant
runs it in a fresh process, in turns. Goals: on a warm session at least 5 times faster to fit 2 epochs, to 97 % of the
test rows and to predict; at least 1.3 times for the first fit of a process; with equal or better accuracy.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parent / "peers" / "elephas_program.py"
FASTER = {"first": "first fit, 2 epochs", "warm": "warm fit, 2 epochs", "to goal": "to 97 %"}


def run(command, given, plan):
    arguments = ["--data", given.data, "--plan", plan, "--most-epochs", str(given.most_epochs)]
    # Elephas needs TensorFlow; ours runs on what a plain installation has.
    backend = "jax" if "run" in command else "tensorflow"
    environment = {
        **os.environ,
        "KERAS_BACKEND": backend,
        "PYSPARK_PYTHON": sys.executable if "run" in command else command[0],
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    ended = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, check=False, env=environment, timeout=given.timeout
    )
    if ended.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{ended.stderr[-3000:]}")
    return json.loads(next(line for line in reversed(ended.stdout.splitlines()) if line.startswith("{")))


def median(found, name):
    return statistics.median(each[name] for each in found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--elephas-python", default=".venv-elephas/bin/python")
    parser.add_argument("--plans", nargs="+", default=["synchronous", "asynchronous"])
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--most-epochs", type=int, default=20)
    parser.add_argument("--timeout", type=float, default=1800)
    given = parser.parse_args()
    contestants = {
        "Elephas": [str(Path(given.elephas_python).absolute()), str(PROGRAM)],
        "Keraunos": [str(Path(sys.executable).parent / "keraunos"), "run", "--as", "elephas", str(PROGRAM)],
    }
    for plan in given.plans:
        found = {name: [] for name in contestants}
        for _ in range(given.repeats):
            for name, command in contestants.items():
                found[name].append(run(command, given, plan))
                print(f"# {plan}, {name}: {json.dumps(found[name][-1])}", flush=True)
        theirs, ours = found["Elephas"], found["Keraunos"]
        print(f"\n{plan:<22} {'Elephas':>10} {'Keraunos':>10} {'times faster':>13}")
        for name, told in FASTER.items():
            a, b = median(theirs, name), median(ours, name)
            print(f"{told:<22} {a:>8.1f} s {b:>8.1f} s {a / b:>13.1f}")
        a, b = median(theirs, "predict"), median(ours, "predict")
        print(f"{'predict, rows a second':<22} {a:>10.0f} {b:>10.0f} {b / a:>13.1f}")
        for name in ("accuracy after 2", "accuracy", "epochs to goal"):
            print(f"{name:<22} {median(theirs, name):>10.4f} {median(ours, name):>10.4f}")
        print(flush=True)


if __name__ == "__main__":
    main()
