"""A local Spark for the demo, which prints no log. Runs on the driver."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CONFIG = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # A JVM that lives for a minute would spend half of it on optimizing compilation.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.log.level": "ERROR",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@contextmanager
def local_spark(master: str, folder: Path, *, verbose: bool) -> Iterator[Any]:
    """Yields a session that stores its files below `folder` and, unless `verbose`, writes its log there too."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("keraunos demo")
    builder = builder.config("spark.sql.warehouse.dir", (folder / "warehouse").as_uri())
    for key, value in CONFIG.items():
        builder = builder.config(key, value)
    with _stderr_to(None if verbose else folder / "spark.log"):
        session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def _stderr_to(path: Path | None) -> Iterator[None]:
    """Redirect this process's standard error to a file. The JVM, which starts meanwhile, continues to write there."""
    if path is None:
        yield
        return
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("ab") as log:
            os.dup2(log.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
