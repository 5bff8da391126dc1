"""The modules that a Spark session trusts. Runs on the driver."""

from __future__ import annotations

import sys
from typing import Any

from keraunos.trust import SETTING, trusted_names


def session_trust(spark: Any = None) -> tuple[str, ...]:
    """What `spark.keraunos.trustedModules` lists, in this session or in the active one; nothing where there is none."""
    session = spark if spark is not None else _active()
    return () if session is None else trusted_names(str(session.conf.get(SETTING, "") or ""), SETTING)


def _active() -> Any:
    # A program that reads a model without Spark has no session, and is not made to load Spark for that.
    sql = sys.modules.get("pyspark.sql")
    return None if sql is None else sql.SparkSession.getActiveSession()
