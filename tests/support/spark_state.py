"""A Spark session's plans, settings and memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession

BRIDGE = "spark.kafkajit.bridge.enabled"
BY_COLUMNS = "kafkaLog by columns"  # in the plan of a scan through the bridge


def plan_of(df: DataFrame) -> str:
    return str(df._jdf.queryExecution().executedPlan().toString())


@contextlib.contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """Within the block, one of a session's settings that it has by default otherwise."""
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name)


def arrow_bytes(spark: SparkSession) -> int:
    """Arrow's memory in the JVM that is not free.

    Compare with what it was before: Spark's own mapInArrow leaves 260 kB behind if it is cancelled
    at the wrong moment.
    """
    jvm: Any = spark._jvm
    return int(jvm.org.apache.spark.sql.util.ArrowUtils.rootAllocator().getAllocatedMemory())
