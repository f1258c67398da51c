"""Overwriting replaces the partitions that Parquet's files would have replaced."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from spark_state import BRIDGE, setting

SESSION = "spark.sql.sources.partitionOverwriteMode"
OPTION = "partitionOverwriteMode"
PLACES = ["topic", "partition"]


def rows(spark: SparkSession, *partitions: int) -> DataFrame:
    data = [("orders", partition, b"v") for partition in partitions]
    return spark.createDataFrame(data, "topic STRING, partition INT, value BINARY").coalesce(1)


def write(
    frame: DataFrame, folder: Path, kind: str, mode: str, options: dict[str, str] | None = None
) -> None:
    writer = frame.write.format(kind).mode(mode).options(**(options or {}))
    if kind == "parquet":
        writer = writer.partitionBy(*PLACES)
    writer.save(str(folder))


def counts(spark: SparkSession, folder: Path, kind: str) -> list[tuple[int, int]]:
    """How many records each partition has."""
    found = spark.read.format(kind).load(str(folder)).groupBy(*PLACES).count().collect()
    return sorted((row["partition"], row["count"]) for row in found)


@pytest.mark.parametrize(
    ("session", "option", "mode"),
    [*product(["static", "dynamic"], [None, "static", "dynamic"], ["append", "overwrite"])],
)
def test_a_write_does_what_parquets_does(
    session: str, option: str | None, mode: str, spark: SparkSession, tmp_path: Path
) -> None:
    options = {} if option is None else {OPTION: option}
    left = {}
    for kind in ("kafkaLog", "parquet"):
        folder = tmp_path / kind
        write(rows(spark, 0, 1), folder, kind, "append")
        with setting(spark, SESSION, session):
            write(rows(spark, 1, 1, 2), folder, kind, mode, options)
        left[kind] = counts(spark, folder, kind)
    assert left["kafkaLog"] == left["parquet"]
    is_dynamic = mode == "overwrite" and (option or session) == "dynamic"
    assert (left["kafkaLog"] == [(0, 1), (1, 2), (2, 1)]) == is_dynamic


@pytest.mark.parametrize(
    ("session", "insert"),
    [
        *product(
            ["static", "DYNAMIC"], ["INSERT INTO", "INSERT OVERWRITE", "INSERT OVERWRITE TABLE"]
        )
    ],
)
def test_sql_does_what_it_does_to_parquet(
    session: str, insert: str, spark: SparkSession, tmp_path: Path
) -> None:
    rows(spark, 1, 1, 2).createOrReplaceTempView("new_rows")
    left = {}
    for kind in ("kafkaLog", "parquet"):
        folder = tmp_path / kind
        write(rows(spark, 0, 1), folder, kind, "append")
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW target USING {kind} OPTIONS (path '{folder}')")
        with setting(spark, SESSION, session):
            columns = "value, topic, partition"
            spark.sql(f"{insert} target ({columns}) SELECT {columns} FROM new_rows")
        left[kind] = counts(spark, folder, kind)
    for view in ("new_rows", "target"):
        spark.catalog.dropTempView(view)
    assert left["kafkaLog"] == left["parquet"]


def test_without_the_bridge_the_option_decides(spark: SparkSession, tmp_path: Path) -> None:
    with setting(spark, BRIDGE, "false"), setting(spark, SESSION, "dynamic"):
        for options, left in (({OPTION: "dynamic"}, [(0, 1), (1, 1)]), ({}, [(1, 1)])):
            write(rows(spark, 0), tmp_path, "kafkaLog", "overwrite", {OPTION: "static"})
            write(rows(spark, 1), tmp_path, "kafkaLog", "overwrite", options)
            assert counts(spark, tmp_path, "kafkaLog") == left
