"""What is measured in Spark: each subject runs one query, over and over, in a session of its own.

`python -m asv_bench.peers.spark_subjects NAME PATH` answers every line on stdin with the
nanoseconds that one more query took and the rows it counted. local[2], warm; the session's start
takes no part. Runs with any pyspark: Spark's Kafka connector needs one of its own.
"""

from __future__ import annotations

import os
import sys
import time

from pyspark.sql import DataFrame, SparkSession

AGGREGATES = (
    "count(*)",
    "sum(length(key))",
    "sum(length(value))",
    "max(timestamp)",
    "sum(offset)",
)
NARROW = "key BINARY, value BINARY, offset BIGINT, timestamp TIMESTAMP"


def session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "3g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.python.filterPushdown.enabled", "true")
    )
    if jars := os.environ.get("KAFKAJIT_BENCH_JARS"):
        builder = builder.config("spark.jars", jars)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def kafka_log(spark: SparkSession, path: str) -> DataFrame:
    """All columns, of which the query needs four."""
    return spark.read.format("kafkaLog").load(path)


def kafka_log_narrow(spark: SparkSession, path: str) -> DataFrame:
    """The four columns of the query."""
    return spark.read.schema(NARROW).format("kafkaLog").load(path)


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
    "kafkaLog, 4 columns": kafka_log_narrow,
    "Parquet, none": parquet,
    "Parquet, zstd": parquet,
    "explode": explode,
    "explode, 2 columns": explode_two_columns,
    "kafka_log()": table_function,
    "Kafka connector": kafka_connector,
}


def query(name: str, frame: DataFrame) -> int:
    if name.startswith("explode, 2"):
        return frame.selectExpr("count(*)", "sum(offset)", "max(timestamp)").first()[0]
    return frame.selectExpr(*AGGREGATES).first()[0]


def batches(spark: SparkSession, path: str) -> int:
    """Records counted from headers, checksums checked."""
    frame = spark.read.format("kafkaLog").option("kind", "batches").load(path)
    row = frame.selectExpr("count(*)", "sum(recordsCount)", "bool_and(isValid)").first()
    assert row[2]
    return row[1]


def main() -> None:
    name, path = sys.argv[1:]
    spark = session()
    if name == "batches":

        def one() -> int:
            return batches(spark, path)
    else:
        frame = SUBJECTS[name](spark, path)

        def one() -> int:
            return query(name, frame)

    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter_ns()
        found = one()
        print(time.perf_counter_ns() - start, found, flush=True)


if __name__ == "__main__":
    main()
