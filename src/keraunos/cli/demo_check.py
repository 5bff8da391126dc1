"""The second process of the demo: loads the saved pipeline and compares its predictions. Runs on the driver.

python -m keraunos.cli.demo_check SAVED FOLDER MASTER [--verbose]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from keraunos.cli.local_spark import local_spark

OUTPUTS = ("prediction", "probability", "rawPrediction")


def check(saved: str, folder: Path, master: str, *, verbose: bool) -> int:
    """Predict the rows in `folder` again. Returns 0 if all predictions and probabilities are bit-identical."""
    from pyspark.ml import PipelineModel

    with local_spark(master, folder, verbose=verbose) as spark:
        expected = spark.read.parquet(str(folder / "expected"))
        outputs = [column for column in OUTPUTS if column in expected.columns]
        fitted = PipelineModel.load(saved)
        before = _by_id(expected, outputs)
        after = _by_id(fitted.transform(expected.drop(*outputs)), outputs)
    same = sum(before[key] == after.get(key) for key in before)
    print(f"{same} of {len(before)} predictions identical")
    return 0 if before and same == len(before) == len(after) else 1


def _by_id(frame: Any, outputs: list[str]) -> dict[int, tuple[Any, ...]]:
    return {row["id"]: tuple(row[name] for name in outputs) for row in frame.select("id", *outputs).collect()}


if __name__ == "__main__":
    saved, folder, master, *flags = sys.argv[1:]
    sys.exit(check(saved, Path(folder), master, verbose="--verbose" in flags))
