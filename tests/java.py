"""The options of every JVM that a test starts."""

import sys
from pathlib import Path

# A JVM that lives for a minute had better not compile for a long life.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_CLASSES = Path(sys.prefix) / "spark.jsa"


def java_options() -> str:
    """For JDK_JAVA_OPTIONS; with the file that `scripts/spark_classes.py` wrote, where there is one."""
    if not _CLASSES.exists() or " " in str(_CLASSES):
        return _SHORT_LIVED
    # A JVM with other classes, such as Spark's launcher, passes the file over, and is not to say so in its output.
    return f"{_SHORT_LIVED} -XX:SharedArchiveFile={_CLASSES} -Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"
