"""The bridge: what its scans are asked for, with the answers of the Python source."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from corpus import DATA, rows_of
from pyspark.sql import DataFrame, SparkSession
from scanning import write_partition
from spark_state import BRIDGE, arrow_bytes, plan_of, setting

import kafkajit
import kafkajit.testing as kt
from kafkajit.scan.predicates import Predicate
from kafkajit.spark.conditions import conditions_of

DAMAGED = DATA / "damaged" / "crc"


@pytest.fixture
def log(spark: SparkSession) -> DataFrame:
    return spark.read.format("kafkaLog").load(kt.SAMPLE)


def scan_of(df: DataFrame) -> str:
    """The plan's line about the only scan."""
    (line,) = (line for line in plan_of(df).splitlines() if "BatchScan" in line)
    return line


def columns_of(df: DataFrame) -> list[str]:
    inside = scan_of(df).partition("[")[2].partition("]")[0]
    return [name.partition("#")[0] for name in inside.split(", ") if name]


def test_a_scan_reads_the_columns_that_a_query_uses(log: DataFrame) -> None:
    assert columns_of(log.selectExpr("sum(offset)", "max(timestamp)")) == ["offset", "timestamp"]
    assert columns_of(log.where("offset < 5").select("key")) == ["key", "offset"]
    assert columns_of(log.select("key").where("key IS NOT NULL").selectExpr("1")) == ["key"]
    assert columns_of(log.selectExpr("1")) == []
    assert len(columns_of(log)) == len(log.columns)


def test_each_core_gets_its_share(spark: SparkSession, tmp_path: Path) -> None:
    values = pa.array([bytes(1 << 20)] * 40)
    log = kafkajit.encode_batches(pa.table({"value": values}), batch_records=1)
    write_partition(tmp_path, {0: log})
    tasks = {}
    for cores in ("1", "2", "64"):
        with setting(spark, "spark.sql.leafNodeDefaultParallelism", cores):
            table = spark.read.format("kafkaLog").load(str(tmp_path))
            tasks[cores] = table._jdf.queryExecution().toRdd().getNumPartitions()
            assert table.count() == 40
    assert tasks == {"1": 1, "2": 2, "64": 3}  # a task has at least 16 MiB


def test_a_task_ends_at_the_limit(spark: SparkSession, log: DataFrame) -> None:
    assert "limit: 3, " in scan_of(log.select("key").limit(3))
    assert "limit: 3, " in scan_of(log.where("topic = 'orders'").limit(3))
    # Spark judges this condition, so rows that do not meet it must not count.
    assert "limit" not in scan_of(log.where("offset > 20").limit(3))
    assert [row.offset for row in log.where("offset > 20").select("offset").limit(3).collect()] == [
        *(21, 22, 23)
    ]
    for size in (0, 1, 3, 51, 52):
        assert len(log.limit(size).collect()) == min(size, 51)
    files = spark.read.format("kafkaLog").option("kind", "files").load(kt.SAMPLE)
    assert len(files.limit(2).collect()) == 2
    damaged = spark.read.format("kafkaLog").option("mode", "PERMISSIVE").load(str(DAMAGED))
    assert len(damaged.limit(4).collect()) == 4
    # The damage is behind the first rows.
    assert spark.read.format("kafkaLog").load(str(DAMAGED)).limit(1).count() == 1


def test_a_part_of_a_struct_is_read_alone(log: DataFrame) -> None:
    keys = log.where("headers IS NOT NULL").selectExpr("headers.key AS keys").distinct()
    scan = keys._jdf.queryExecution().optimizedPlan().collectLeaves().head().scan()
    assert scan.readSchema().simpleString() == "struct<headers:array<struct<key:string>>>"
    assert sorted(row.keys[0] for row in keys.collect()) == sorted(
        {row["headers"][0]["key"] for row in sample_rows() if row["headers"]}
    )


def sample_rows() -> list[dict[str, Any]]:
    return [
        row
        for path in sorted(Path(kt.SAMPLE).glob("*/*.log"))
        for row in rows_of(kafkajit.read_records(path))
    ]


@pytest.mark.parametrize(
    ("condition", "pushed"),
    [
        ("offset > 5", "offset > 5"),
        ("5 >= partition", "partition IS NOT NULL, partition <= 5"),
        ("topic IN ('orders', 'it''s')", "topic IN ('orders', 'it''s')"),
        ("topic NOT LIKE 'pay%'", "topic IS NOT NULL, NOT (topic LIKE 'pay%' ESCAPE '\\')"),
        ("timestamp < TIMESTAMP '2025-11-05'", "timestamp < 1762300800000000"),
        ("partition IS NOT NULL", "partition IS NOT NULL"),
        ("partition IS NULL", ""),
        ("offset > 5 OR topic = 'orders'", ""),
        ("length(key) > 5", ""),
        ("headers[0].key = 'trace'", ""),
        ("value = X'00'", ""),
    ],
)
def test_conditions_that_can_skip_bytes_are_pushed(
    condition: str, pushed: str, log: DataFrame
) -> None:
    shown = scan_of(log.where(condition)).partition("conditions: [")[2].partition("], reads: ")[0]
    assert shown == pushed
    whole = log.selectExpr("*", f"{condition} AS is_met").collect()
    assert log.where(condition).count() == sum(bool(row.is_met) for row in whole)


def test_a_condition_on_the_topic_or_partition_is_not_judged_twice(log: DataFrame) -> None:
    plan = plan_of(log.where("topic = 'orders' AND partition < 3 AND offset < 5").select("key"))
    (judged,) = (line for line in plan.splitlines() if " Filter (" in line)
    assert "offset" in judged
    assert "topic" not in judged
    assert "partition" not in judged


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM log",
        "SELECT count(offset), min(offset), max(offset), max(timestamp) FROM log",
        "SELECT topic, count(*) FROM log GROUP BY topic",
        "SELECT partition, min(timestamp) FROM log WHERE topic = 'payments' GROUP BY partition",
        "SELECT count(*), max(offset) FROM log WHERE topic = 'no-such-topic'",
        "SELECT topic, count(*) FROM log WHERE topic = 'no-such-topic' GROUP BY topic",
        "SELECT max(topic), min(partition), avg(partition) FROM log",
        "SELECT count(*) + 1, topic FROM log GROUP BY ALL HAVING count(*) > 20",
        "SELECT topic, partition, count(*), sum(sizeInBytes), sum(recordsCount) FROM batches"
        " GROUP BY ALL",
    ],
)
def test_each_task_aggregates_its_own_rows(query: str, spark: SparkSession) -> None:
    whole = aggregated(spark, query, is_bridged=False)
    found = aggregated(spark, query)
    assert found.schema == whole.schema
    assert "aggregates: [" in scan_of(found)
    assert sorted(found.collect()) == sorted(whole.collect())


@pytest.mark.thorough
@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM log WHERE offset < 5",
        "SELECT count(DISTINCT partition) FROM log",
        "SELECT sum(offset) FROM log",
        "SELECT min(key), max(value) FROM log",
        "SELECT count(*) FILTER (WHERE offset < 5) FROM log",
        "SELECT timestamp, count(*) FROM log GROUP BY timestamp",
        "SELECT max(offset + 1) FROM log",
    ],
)
def test_other_aggregates_are_sparks(query: str, spark: SparkSession) -> None:
    found = aggregated(spark, query)
    assert "aggregates: [" not in scan_of(found)
    assert sorted(found.collect()) == sorted(aggregated(spark, query, is_bridged=False).collect())


def aggregated(spark: SparkSession, query: str, *, is_bridged: bool = True) -> DataFrame:
    with setting(spark, BRIDGE, str(is_bridged)):
        for name, kind in {"log": "records", "batches": "batches"}.items():
            rows = spark.read.format("kafkaLog").option("kind", kind).load(kt.SAMPLE)
            rows.createOrReplaceTempView(name)
        return spark.sql(query)


def test_a_plan_names_the_files_and_bytes_to_read(log: DataFrame) -> None:
    for topic, files in {"orders": "1 file", "payments": "4 files"}.items():
        logs = Path(kt.SAMPLE).glob(f"{topic}-*/*.log")
        size = sum(path.stat().st_size for path in logs)
        assert f"reads: {files}, {size:,} bytes" in scan_of(log.where(f"topic = '{topic}'"))


def test_a_small_log_is_broadcast_to_a_join(log: DataFrame) -> None:
    plan = plan_of(log.alias("a").join(log.alias("b"), ["topic", "partition", "offset"]))
    assert "BroadcastHashJoin" in plan


def test_a_join_on_the_topic_prunes_files_at_run_time(
    spark: SparkSession, log: DataFrame, tmp_path: Path
) -> None:
    log.createOrReplaceTempView("log")
    rows = [(f"topic-{n}", n) for n in range(1000)] + [("orders", -1)]
    spark.createDataFrame(rows, "name STRING, number INT").write.parquet(f"{tmp_path}/names")
    spark.read.parquet(f"{tmp_path}/names").createOrReplaceTempView("names")
    found = spark.sql(
        "SELECT /*+ BROADCAST(names) */ count(key), count(DISTINCT topic)"
        " FROM log JOIN names ON topic = name WHERE number < 0"
    )
    keys = sum(row["key"] is not None for row in sample_rows() if row["topic"] == "orders")
    assert [tuple(row) for row in found.collect()] == [(keys, 1)]
    plan = plan_of(found)  # with what was read in the end
    assert "dynamicpruning" in plan
    assert "reads: 1 file, " in plan


def test_conditions_are_those_of_their_own_scan(spark: SparkSession, log: DataFrame) -> None:
    log.createOrReplaceTempView("bridged")
    both = spark.sql(
        "SELECT count(*) FROM bridged WHERE offset < 3 UNION ALL"
        " SELECT count(*) FROM bridged WHERE topic = 'payments' UNION ALL"
        " SELECT count(*) FROM bridged a JOIN bridged b USING (topic, partition, offset)"
        " WHERE a.offset >= 3"
    )
    rows = sample_rows()
    few = sum(row["offset"] < 3 for row in rows)
    payments = sum(row["topic"] == "payments" for row in rows)
    places = Counter((row["topic"], row["partition"], row["offset"]) for row in rows)
    joined = sum(count**2 for (*_, offset), count in places.items() if offset >= 3)
    assert [row[0] for row in both.collect()] == [few, payments, joined]
    assert log.count() == len(rows)


def test_names_and_texts_reach_python_as_they_are() -> None:
    text = '[["topic", "=", "\\u0022\\u005c\\u00e9\\ud83d\\ude00", true]]'
    assert conditions_of(text) == [Predicate("topic", "=", '"\\é😀', negated=True)]


def test_a_text_of_any_letters_is_a_condition(log: DataFrame) -> None:
    for text in ('"', "\\\\", "é", "😀", "\\n", "a'"):
        assert log.where(f'topic = "{text}"' if text != '"' else "topic = '\"'").count() == 0


def test_a_timestamp_that_python_cannot_hold_is_left_to_spark() -> None:
    far = '[["timestamp", "<", {"microseconds": 9223372036854775807}, false]]'
    assert conditions_of(far) == []


def test_several_batches_of_nested_columns_are_read(spark: SparkSession, tmp_path: Path) -> None:
    """Spark closes a batch's columns before the next; a closed struct would have no fields."""
    rows = [kt.Record(b"k", b"v" * 100, [("h", b"%d" % n)]) for n in range(200)]
    folder = tmp_path / "orders-0"
    folder.mkdir()
    batches = [kt.batch(rows, base_offset=200 * n) for n in range(1000)]
    batches[-2] = batches[-2][:-1] + b"?"
    (folder / f"{0:020}.log").write_bytes(b"".join(batches))
    log = spark.read.format("kafkaLog").option("mode", "PERMISSIVE").load(str(folder))
    found = log.selectExpr(
        "count(headers[0].value)",
        "sum(CAST(headers[0].value AS STRING))",
        "sum(corruption.length)",
    )
    assert tuple(found.first()) == (199_800, 999 * sum(range(200)), len(batches[-2]))


@pytest.mark.parametrize("query", ["count(*)", "count(offset)", "count(corruption)"])
def test_under_permissive_every_query_counts_the_damaged_stretches(
    query: str, spark: SparkSession
) -> None:
    log = spark.read.format("kafkaLog").option("mode", "PERMISSIVE").load(str(DAMAGED))
    whole = [row.asDict() for row in log.collect()]
    expected = {
        "count(*)": len(whole),
        "count(offset)": sum(row["offset"] is not None for row in whole),
        "count(corruption)": sum(row["corruption"] is not None for row in whole),
    }
    assert expected["count(corruption)"] > 0
    assert log.selectExpr(query).first()[0] == expected[query]


def test_queries_leave_no_arrow_memory_behind(spark: SparkSession, log: DataFrame) -> None:
    before = arrow_bytes(spark)
    for _ in range(5):
        log.limit(3).collect()  # it does not read its batch to the end
        log.groupBy("topic").count().collect()
        with pytest.raises(Exception, match="42"):
            log.selectExpr("assert_true(offset < 1, '42')").collect()
    assert arrow_bytes(spark) == before
