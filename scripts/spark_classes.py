"""Write Spark's classes down as a JVM has them in memory, for later ones to map instead of reading jars.

    python scripts/spark_classes.py FILE

Starting a local Spark then takes about half the time. The file serves the same Java and the same jars; any other JVM
passes it over.
"""

import os
import sys
import tempfile
from pathlib import Path

# The garbage collector is part of what the file is for.
OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def main(file: Path) -> None:
    """Run what most programs run, in a JVM that writes its classes down when it ends."""
    aside = file.with_suffix(".writing")
    os.environ["JDK_JAVA_OPTIONS"] = f"{OPTIONS} -XX:ArchiveClassesAtExit={aside} -Xlog:cds=off -Xlog:cds+dynamic=off"
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
    main(Path(sys.argv[1]).resolve())
