"""The option oneTaskPerPartition: Spark neither moves nor sorts what a log has together."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from spark_state import plan_of

import kafkajit.testing as kt

Ask = Callable[..., DataFrame]
PATHS = [f"{kt.SAMPLE}/orders-0", f"{kt.SAMPLE}/payments-0"]


@pytest.fixture
def ask(spark: SparkSession) -> Ask:
    """A query of the view `log` over these paths."""

    def ask(query: str, paths: list[str] = PATHS, **options: str) -> DataFrame:
        asked = {"oneTaskPerPartition": "true", **options}
        spark.read.format("kafkaLog").options(**asked).load(paths).createOrReplaceTempView("log")
        return spark.sql(query)

    return ask


BY_PARTITION = "SELECT topic, partition, count(DISTINCT key) FROM log GROUP BY topic, partition"
PREVIOUS = "SELECT topic, {0}, lag({0}) OVER (PARTITION BY topic, partition ORDER BY {0}) FROM log"


@pytest.mark.parametrize(
    ("query", "options"),
    [
        (BY_PARTITION, {}),
        (PREVIOUS.format("offset"), {}),
        (PREVIOUS.format("baseOffset"), {"kind": "batches"}),
        (PREVIOUS.format("offset"), {"mode": "DROPMALFORMED"}),
        ("SELECT a.key FROM log a JOIN log b USING (topic, partition, offset)", {}),
        ("SELECT topic, partition, max(offset) FROM log GROUP BY topic, partition", {}),
        (BY_PARTITION, {"startingOffsets": '{"orders": {"0": 1000}, "payments": {"0": 1000}}'}),
    ],
)
def test_answers_are_the_same_without_the_option(
    query: str, options: dict[str, str], ask: Ask
) -> None:
    rows = sorted(map(str, ask(query, **options).collect()))
    assert rows == sorted(map(str, ask(query, oneTaskPerPartition="false", **options).collect()))


def test_groups_and_windows_by_partition_are_not_moved(ask: Ask) -> None:
    for query in (BY_PARTITION, PREVIOUS.format("offset")):
        assert "Exchange" not in plan_of(ask(query))
        assert "Exchange" in plan_of(ask(query, oneTaskPerPartition="false"))


def test_rows_by_offset_are_not_sorted(ask: Ask) -> None:
    assert not re.search(r"\bSort\b", plan_of(ask(PREVIOUS.format("offset"))))
    # Rows that report damage have no offset.
    assert re.search(r"\bSort\b", plan_of(ask(PREVIOUS.format("offset"), mode="PERMISSIVE")))


def test_a_join_may_leave_no_partition(spark: SparkSession, ask: Ask, tmp_path: Path) -> None:
    names = spark.range(2000).selectExpr("concat('topic-', id) AS topic", "id")
    names.write.parquet(f"{tmp_path}/names")
    spark.read.parquet(f"{tmp_path}/names").createOrReplaceTempView("names")
    joined = ask(
        "SELECT /*+ BROADCAST(names) */ topic, partition, count(key) FROM log"
        " JOIN names USING (topic) WHERE id < 5 GROUP BY topic, partition"
    )
    assert joined.collect() == []
    assert "reads: 0 files" in plan_of(joined)


def test_offsets_that_go_back_are_refused(ask: Ask) -> None:
    overlapping = ["sample:damaged/refunds-1"]
    assert [row.offset for row in ask("SELECT offset FROM log", overlapping).collect()] == [
        *range(8)
    ]
    with pytest.raises(PySparkException, match=r"offset 4 follows 5 in .*refunds-1"):
        ask("SELECT offset FROM log", overlapping, overlaps="all").collect()
    counted = ask("SELECT count(key) FROM log", overlapping, overlaps="all")
    assert counted.first()[0] > 0  # offsets are not asked for


def test_the_option_is_judged_by_python(spark: SparkSession) -> None:
    """With a user's schema Spark asks the bridge first."""
    read = spark.read.format("kafkaLog").schema("topic STRING, partition INT, offset BIGINT")
    log = read.option("oneTaskPerPartition", "TRUE").load(PATHS)
    assert log.groupBy("topic", "partition").count().count() == 2
    with pytest.raises(AnalysisException, match=r"option oneTaskPerPartition: .* not 'maybe'"):
        read.option("oneTaskPerPartition", "maybe").load(PATHS).groupBy("topic").count().collect()


def test_a_file_outside_of_a_partition_is_refused(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / f"{0:020}.log").write_bytes(kt.batch([kt.Record(b"k")]))
    with pytest.raises(AnalysisException, match="does not lie in the folder of a partition"):
        ask("SELECT * FROM log", [str(tmp_path)]).collect()
