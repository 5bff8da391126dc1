"""The JVMs that tests start: their options, and a file of Spark's classes that halves their start.

    python -m tests.java FILE

writes that file. It has the classes as a JVM has them in memory, for later ones to map instead of reading jars; it
serves the same Java and the same jars, and any other JVM passes it over.
"""

import os
import sys
import tempfile
from pathlib import Path

# A JVM that lives for a minute had better not compile for a long life.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

_CLASSES = Path(sys.prefix) / "spark.jsa"
# A JVM with other classes, such as Spark's launcher, is not to say in its output that it has no use for the file.
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"


def java_options() -> str:
    """For JDK_JAVA_OPTIONS; with the file, where it was written."""
    if not _CLASSES.exists() or " " in str(_CLASSES):
        return SHORT_LIVED
    return f"{SHORT_LIVED} -XX:SharedArchiveFile={_CLASSES} -Xshare:auto {_QUIET}"


def write_classes(file: Path) -> None:
    """Run what most programs run, in a JVM that writes its classes down when it ends."""
    aside = file.with_suffix(".writing")
    os.environ["JDK_JAVA_OPTIONS"] = f"{SHORT_LIVED} -XX:ArchiveClassesAtExit={aside} {_QUIET}"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory() as folder:
        spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
        table = spark.range(100).selectExpr("id", "id % 3 as label", "array(double(id)) as features")
        table.write.parquet(f"{folder}/table")
        read = spark.read.parquet(f"{folder}/table").repartition(2)
        read.mapInArrow(lambda batches: batches, read.schema).groupBy("label").count().collect()
        read.rdd.map(len).sum()
        spark.stop()
        java = SparkContext._gateway  # there is no public way to wait for it
        java.shutdown()
        java.proc.stdin.close()
        java.proc.wait()
    aside.replace(file)


if __name__ == "__main__":
    write_classes(Path(sys.argv[1]).resolve())
