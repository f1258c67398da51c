"""The subjects in Spark: each runs one query, over and over, in a session of its own.

`python -m asv_bench.peers.spark_subjects NAME PATH` answers every line on stdin with the
nanoseconds that one more query took and the rows it counted. local[2], warm; the session's start
takes no part. Runs with any pyspark: Spark's Kafka connector needs one of its own.

Subjects that write take Parquet's rows to a folder, which goes before the next pass begins.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

AGGREGATES = (
    "count(*)",
    "sum(octet_length(key))",
    "sum(octet_length(value))",
    "max(timestamp)",
    "sum(offset)",
)
NARROW = "key BINARY, value BINARY, offset BIGINT, timestamp TIMESTAMP"

PARTITIONS = 8
TASKS = 8  # of ready-made rows, as of kafkaLog's and of Parquet's


def session(memory: str = "3g") -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", memory)
        .config("spark.sql.session.timeZone", "UTC")
    )
    if jars := os.environ.get("KAFKAJIT_BENCH_JARS"):
        builder = builder.config("spark.jars", jars)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def kafka_log(spark: SparkSession, path: str) -> DataFrame:
    """All columns, of which Spark reads those of the query."""
    from kafkajit.spark import register

    register(spark)
    return spark.read.format("kafkaLog").load(path)


def kafka_log_narrow(spark: SparkSession, path: str) -> DataFrame:
    """The four columns of the query, without the bridge."""
    return spark.read.schema(NARROW).format("kafkaLog").load(path)


class ReadyMade(DataSource):
    """As many rows as kafkaLog's, without reading them: the cost of any Python data source."""

    @classmethod
    def name(cls) -> str:
        return "readyMade"

    def reader(self, schema: Any) -> DataSourceReader:  # noqa: ARG002
        from kafkajit import Log

        log = Path(self.options["path"]).parent
        return ReadyMadeReader(self.options["path"], Log(log).end_offset)


class ReadyMadeReader(DataSourceReader):
    def __init__(self, path: str, rows: int) -> None:
        from kafkajit.spark.worker import AckOnUnpickle

        self._path, self._rows = path, rows
        self._ack = AckOnUnpickle()

    def partitions(self) -> list[InputPartition]:
        ends = [self._rows * part // TASKS for part in range(TASKS + 1)]
        return [InputPartition(end - start) for start, end in pairwise(ends)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        from kafkajit import iter_records
        from kafkajit.arrow.record_batches import table_in_microseconds
        from kafkajit.spark.worker import in_worker

        names = ["key", "value", "offset", "timestamp"]
        with in_worker():  # as kafkaLog keeps Spark from collecting garbage after each task
            import pyarrow as pa

            first = pa.Table.from_batches([next(iter_records(self._path, columns=names))])
            (rows,) = table_in_microseconds(first).to_batches()
            left = partition.value
            while left > 0:
                yield rows.slice(0, left)
                left -= rows.num_rows


def ready_made(spark: SparkSession, path: str) -> DataFrame:
    spark.dataSource.register(ReadyMade)
    return spark.read.schema(NARROW).format("readyMade").load(path)


def parquet(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.parquet(path)


def explode(spark: SparkSession, path: str) -> DataFrame:
    return _exploded(spark, path, "kafka_records(content)")


def explode_two_columns(spark: SparkSession, path: str) -> DataFrame:
    return _exploded(spark, path, "kafka_records(content, 'offset,timestamp')")


def table_function(spark: SparkSession, path: str) -> DataFrame:
    from kafkajit.spark import register

    register(spark)
    return spark.sql(f"SELECT * FROM kafka_log(TABLE(SELECT '{path}' AS path))")


def _exploded(spark: SparkSession, path: str, call: str) -> DataFrame:
    from kafkajit.spark import register

    register(spark)
    spark.read.format("binaryFile").load(f"{path}/*.log").createOrReplaceTempView("files")
    return spark.sql(f"SELECT inline({call}) FROM files")


def kafka_connector(spark: SparkSession, servers: str) -> DataFrame:
    return (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "p100")
        .option("minPartitions", "2")
        .load()
    )


SUBJECTS = {
    "kafkaLog": kafka_log,
    "kafkaLog, 2 columns": kafka_log,
    "kafkaLog, counted": kafka_log,
    "kafkaLog, Python source": kafka_log_narrow,
    "ready-made": ready_made,
    "Parquet, none": parquet,
    "Parquet, zstd": parquet,
    "Parquet, 2 columns": parquet,
    "Parquet, counted": parquet,
    "explode": explode,
    "explode, 2 columns": explode_two_columns,
    "kafka_log()": table_function,
    "Kafka connector": kafka_connector,
}


def query(name: str, frame: DataFrame) -> int:
    if name.endswith(", 2 columns"):
        return frame.selectExpr("count(*)", "sum(offset)", "max(timestamp)").first()[0]
    if name.endswith(", counted"):
        return frame.selectExpr("count(*)", "min(offset)", "max(offset)").first()[0]
    return frame.selectExpr(*AGGREGATES).first()[0]


def batches(spark: SparkSession, path: str) -> int:
    """Records counted as a sum over batches, checksums checked."""
    frame = spark.read.format("kafkaLog").option("kind", "batches").load(path)
    row = frame.selectExpr("count(*)", "sum(recordsCount)", "bool_and(isValid)").first()
    assert row[2]
    return row[1]


def write(name: str, spark: SparkSession, path: str, to: Path) -> int:
    """Rows of several partitions, of which every task has some of each."""
    rows = spark.read.parquet(path)
    rows = rows.selectExpr("key", "value", "timestamp", f"int(offset % {PARTITIONS}) AS partition")
    if name.startswith("write kafkaLog"):
        if "by key" in name:
            rows = rows.drop("partition")
        codec = "zstd" if "zstd" in name else "none"
        options = {"topic": "p100", "partitions": PARTITIONS, "compression.type": codec}
        rows.write.format("kafkaLog").options(**options).mode("append").save(str(to))
    elif name.startswith("write Parquet"):
        rows.write.option("compression", name.rpartition(" ")[2]).parquet(str(to))
    else:
        rows.write.format("noop").mode("overwrite").save()
    return 0


def main() -> None:
    name, path = sys.argv[1:]
    if name.startswith("write"):
        with tempfile.TemporaryDirectory(dir=Path(path).parent) as folder:
            to = Path(folder) / "written"
            spark = session(memory="1536m")  # there are many of them
            answer(lambda: write(name, spark, path, to), lambda: shutil.rmtree(to, True))
        return
    spark = session()
    if name == "batches":

        def one() -> int:
            return batches(spark, path)
    else:
        frame = SUBJECTS[name](spark, path)

        def one() -> int:
            return query(name, frame)

    answer(one)


def answer(one: Callable[[], int], before: Callable[[], None] | None = None) -> None:
    """Prepare the subject, then run a pass for each line of input."""
    print("ready", flush=True)
    for _ in sys.stdin:
        if before is not None:
            before()
        start = time.perf_counter_ns()
        found = one()
        print(time.perf_counter_ns() - start, found, flush=True)


if __name__ == "__main__":
    main()
