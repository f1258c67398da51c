from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from corpus import DATA, run_python
from producing import files_of, log_of
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from waiting import eventually

import kafkajit
import kafkajit.testing as kt


def save(frame: DataFrame, folder: Path, mode: str = "append", **options: object) -> None:
    frame.write.format("kafkaLog").options(**options).mode(mode).save(str(folder))


def numbers(spark: SparkSession, count: int, tasks: int = 2) -> DataFrame:
    return spark.range(0, count, 1, tasks).selectExpr(
        "'orders' AS topic", "string(id) AS key", "repeat('v', int(id % 50)) AS value"
    )


def test_what_is_written_is_read(spark: SparkSession, tmp_path: Path) -> None:
    when = datetime(2025, 11, 5, 12, 30, 15, 123456, UTC)
    rows = [
        ("orders", 0, b"k", b"v", when, [("h", b"1"), ("h", None), ("", b"")]),
        ("orders", 0, None, b"", when, []),
        ("orders", 1, b"", None, datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), None),
        ("a-1.b_c", 7, b"\x00\xff", "üñ".encode(), when, [("ключ", b"\x00")]),
    ]
    schema = (
        "topic STRING, partition INT, key BINARY, value BINARY, timestamp TIMESTAMP, "
        "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
    )
    save(spark.createDataFrame(rows, schema).coalesce(1), tmp_path)
    read = spark.read.format("kafkaLog").load(str(tmp_path))
    found = read.orderBy("topic", "partition", "offset").collect()
    wanted = sorted(rows, key=lambda row: row[:2])
    for row, (topic, partition, key, value, timestamp, headers) in zip(found, wanted, strict=True):
        assert (row.topic, row.partition, row.key, row.value) == (topic, partition, key, value)
        written = timestamp.replace(microsecond=timestamp.microsecond // 1000 * 1000)
        assert row.timestamp.astimezone(UTC) == written
        assert [tuple(header) for header in row.headers or ()] == (headers or [])
    assert [row.offset for row in found] == [0, 0, 1, 0]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_codec_is_what_the_option_says(codec: str, spark: SparkSession, tmp_path: Path) -> None:
    save(numbers(spark, 100), tmp_path, partitions=2, **{"compression.type": codec})
    batches = spark.read.format("kafkaLog").option("kind", "batches").load(str(tmp_path))
    assert {row.compressionType for row in batches.collect()} == {codec}
    assert spark.read.format("kafkaLog").load(str(tmp_path)).count() == 100


def test_rows_go_where_their_keys_say(spark: SparkSession, tmp_path: Path) -> None:
    save(numbers(spark, 300), tmp_path, partitions=3)
    read = spark.read.format("kafkaLog").load(str(tmp_path))
    assert read.where("partition != kafka_partition(key, 3)").count() == 0
    assert {row.partition for row in read.select("partition").distinct().collect()} == {0, 1, 2}


def test_rows_of_a_task_keep_their_order_and_tasks_theirs(
    spark: SparkSession, tmp_path: Path
) -> None:
    for _ in range(2):
        save(numbers(spark, 1000, tasks=5), tmp_path, partitions=1)
    keys = [b"%d" % number for number in range(1000)] * 2
    assert log_of(tmp_path / "orders-0", "offset", "key") == list(enumerate(keys))


def test_a_log_is_restored_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    source = DATA / "v2" / "transactions-0"
    rows = spark.read.format("kafkaLog").load(str(source))
    sorted_ = rows.repartition("topic", "partition").sortWithinPartitions("offset")
    save(sorted_, tmp_path, keepOffsets=True, segmentMs=2**62)
    (log,) = tmp_path.rglob("*.log")
    assert log.read_bytes() == (source / log.name).read_bytes()
    (aborted,) = tmp_path.rglob("*.txnindex")
    assert aborted.read_bytes() == (source / aborted.name).read_bytes()


def test_overwrite_replaces_what_it_reads_from(spark: SparkSession, tmp_path: Path) -> None:
    save(numbers(spark, 100), tmp_path, partitions=3)
    read = spark.read.format("kafkaLog").load(str(tmp_path))
    save(read.where("offset < 5").drop("partition"), tmp_path, "overwrite", partitions=1)
    assert [path.name for path in tmp_path.iterdir()] == ["orders-0"]
    assert kafkajit.Log(tmp_path / "orders-0").end_offset == 15


def test_sql_inserts_into_a_view(spark: SparkSession, tmp_path: Path) -> None:
    save(numbers(spark, 10), tmp_path, partitions=1)
    spark.sql(f"CREATE TEMPORARY VIEW logs USING kafkaLog OPTIONS (path '{tmp_path}')")
    spark.sql("INSERT INTO logs (topic, partition, value) SELECT 'orders', 0, binary('new')")
    assert log_of(tmp_path / "orders-0", "offset", "key", "value")[-1] == (10, None, b"new")
    spark.catalog.dropTempView("logs")


def test_no_rows_are_no_error(spark: SparkSession, tmp_path: Path) -> None:
    save(numbers(spark, 10).where("false"), tmp_path / "new", partitions=1)
    assert files_of(tmp_path) == {"new": b""}


@pytest.mark.parametrize(
    ("options", "stated"),
    [
        ({"topik": "a"}, "ValueError: unknown option 'topik': did you mean 'topic'"),
        ({}, "ValueError: partition is missing: set the option partitions to the topic's"),
    ],
)
def test_what_is_wrong_with_a_job_is_said_before_it_begins(
    options: dict, stated: str, spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(AnalysisException) as raised:
        save(numbers(spark, 10), tmp_path / "new", **options)
    assert stated in str(raised.value)
    assert "Traceback" not in str(raised.value)
    assert files_of(tmp_path) == {}


def test_a_path_that_is_not_local_is_refused(spark: SparkSession) -> None:
    stated = "use a local or shared folder"
    with pytest.raises(AnalysisException, match=stated):
        numbers(spark, 10).write.format("kafkaLog").mode("append").save("s3://bucket/logs")


@pytest.mark.parametrize(
    ("bad", "stated"),
    [
        ("IF(id = 999, NULL, 'orders') AS topic, 'secret' AS value", "null topic present"),
        ("'orders' AS topic, IF(id = 999, RAISE_ERROR('boom'), 'secret') AS value", "boom"),
        (
            "'orders' AS topic, IF(id = 999, REPEAT('x', 2000000), 'v') AS value",
            "max.message.bytes",
        ),
    ],
)
def test_a_job_that_fails_leaves_what_was_there(
    bad: str, stated: str, spark: SparkSession, tmp_path: Path
) -> None:
    save(numbers(spark, 10), tmp_path, partitions=2)
    before = files_of(tmp_path)
    rows = spark.range(0, 1000, 1, 4).selectExpr("string(id) AS key", *split_columns(bad))
    for mode in ("append", "overwrite"):
        with pytest.raises(PySparkException) as raised:
            save(rows, tmp_path, mode, partitions=2)
        assert stated in str(raised.value)
        assert "Traceback" not in str(raised.value)
        assert "secret" not in str(raised.value)
        settled(tmp_path, before)


def split_columns(text: str) -> list[str]:
    topic, _, value = text.partition(" AS topic, ")
    return [f"{topic} AS topic", value]


def settled(folder: Path, expected: dict[str, bytes]) -> None:
    """Tasks that were running when the job failed may take a moment to end."""
    assert eventually(lambda: files_of(folder) == expected), files_of(folder)


@pytest.mark.thorough
def test_a_job_that_is_cancelled_leaves_what_was_there(spark: SparkSession, tmp_path: Path) -> None:
    save(numbers(spark, 10), tmp_path, partitions=2)
    before = files_of(tmp_path)

    def cancel() -> None:
        while not any(tmp_path.glob(".kafkajit-*/*/*/*.log")):
            time.sleep(0.05)
        spark.sparkContext.cancelAllJobs()

    slow = spark.range(0, 10_000_000, 1, 2).selectExpr(
        "'orders' AS topic", "repeat(string(id), 40) AS value", "int(id % 2) AS partition"
    )
    canceller = threading.Thread(target=cancel)
    canceller.start()
    with pytest.raises(Py4JJavaError, match=r"SPARK_JOB_CANCELLED"):
        save(slow, tmp_path)
    canceller.join()
    settled(tmp_path, before)


def test_jobs_at_the_same_time_come_one_behind_the_other(
    spark: SparkSession, tmp_path: Path
) -> None:
    def job() -> None:
        # What a session has registered is known where it is the thread's.
        spark._jvm.SparkSession.setActiveSession(spark._jsparkSession)
        save(numbers(spark, 200), tmp_path, partitions=2)

    jobs = [threading.Thread(target=job) for _ in range(3)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    found = []
    for partition in range(2):
        offsets, keys = zip(*log_of(tmp_path / f"orders-{partition}", "offset", "key"), strict=True)
        assert offsets == tuple(range(len(offsets)))
        found += keys
    assert sorted(found) == sorted([b"%d" % number for number in range(200)] * 3)
    assert {path.name for path in tmp_path.iterdir()} == {"orders-0", "orders-1"}


RETRIES = """
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark import TaskContext
from pyspark.sql import SparkSession
from kafkajit.spark.datasource import KafkaLogDataSource

spark = (
    SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.sql.execution.arrow.maxRecordsPerBatch", "100").getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
spark.dataSource.register(KafkaLogDataSource)

def failing(batches):
    for number, batch in enumerate(batches):
        yield batch
        assert number < 3 or TaskContext.get().attemptNumber() > 1
rows = spark.range(0, 2000, 1, 2).selectExpr("'orders' AS topic", "string(id) AS value")
rows = rows.mapInArrow(failing, rows.schema)
rows.write.format("kafkaLog").option("partitions", 1).mode("append").save(sys.argv[1])
"""


@pytest.mark.thorough
def test_a_task_that_is_tried_again_has_its_rows_once(tmp_path: Path) -> None:
    run_python(RETRIES, str(tmp_path))
    values = [b"%d" % number for number in range(2000)]
    assert log_of(tmp_path / "orders-0", "offset", "value") == list(enumerate(values))
    assert [path.name for path in tmp_path.iterdir()] == ["orders-0"]


def test_streams_are_refused_with_what_to_do_instead(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.readStream.format("rate").load().selectExpr("string(value) AS value")
    writer = rows.writeStream.format("kafkaLog").option("checkpointLocation", str(tmp_path / "c"))
    with pytest.raises(StreamingQueryException) as raised:
        writer.start(str(tmp_path / "logs")).awaitTermination(60)
    assert "kafkaLog does not write streams: write each micro-batch" in str(raised.value)
    assert "Traceback" not in str(raised.value)
    assert not (tmp_path / "logs").exists()


def test_rows_of_a_table_are_not_written_into_it_where_no_path_is_given(
    spark: SparkSession, tmp_path: Path
) -> None:
    save(numbers(spark, 10), tmp_path, partitions=1)
    before = files_of(tmp_path)
    spark.sql(f"CREATE TABLE logs_of_orders USING kafkaLog OPTIONS (path '{tmp_path}')")
    try:
        table = spark.table("logs_of_orders")
        with pytest.raises(AnalysisException, match="option path is missing"):
            table.write.format("kafkaLog").mode("overwrite").save()
        for insert in ("INSERT INTO", "INSERT OVERWRITE"):
            with pytest.raises(AnalysisException, match="INTO a temporary view"):
                spark.sql(f"{insert} logs_of_orders SELECT * FROM logs_of_orders")
    finally:
        spark.sql("DROP TABLE logs_of_orders")
    assert files_of(tmp_path) == before


def test_spark_says_which_modes_there_are(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(AnalysisException, match=r"use either the \"Append\" or \"Overwrite\" mode"):
        numbers(spark, 1).write.format("kafkaLog").save(str(tmp_path))


def test_kafkas_own_sample_is_copied_with_another_number_of_partitions(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.read.format("kafkaLog").option("isolationLevel", "read_committed").load(kt.SAMPLE)
    save(rows.drop("partition"), tmp_path, partitions=5)
    copy = spark.read.format("kafkaLog").load(str(tmp_path))
    columns = ["topic", "key", "value", "timestamp"]
    assert copy.select(columns).exceptAll(rows.select(columns)).count() == 0
    assert copy.count() == rows.count()
