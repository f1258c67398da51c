"""Typed values of kafkaLog in Spark side by side with from_avro, and with plain columns; local[2].

The log has orders of ten fields in Confluent's framing, and the registry's log beside it. All
queries have five aggregates, and take turns in one session, warm. from_avro needs its jar:

  mvn dependency:get -Dartifact=org.apache.spark:spark-avro_2.13:4.0.0 -Dtransitive=false
  python -m asv_bench.peers.spark_values --avro-jar ~/.m2/…/spark-avro_2.13-4.0.0.jar
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, functions

import kafkajit
import kafkajit.spark
from asv_bench.benchmarks import avro_values
from asv_bench.benchmarks.segments import cache_folder
from asv_bench.peers.folders import unfinished

_SCHEMA = json.dumps(avro_values.FLAT)


def orders(rows: int) -> Path:
    """The folder of the topic's partition and of the registry's log."""
    folder = cache_folder() / f"orders-avro-{rows}"
    if not folder.exists():
        with unfinished(folder / "orders-0") as partition:
            part = partition.parent
            key = {"keytype": "SCHEMA", "subject": "orders-value", "version": 1, "magic": 1}
            value = {"subject": "orders-value", "version": 1, "id": 1, "schema": _SCHEMA}
            registry = {"key": [json.dumps(key).encode()], "value": [json.dumps(value).encode()]}
            for name, table in (
                ("_schemas-0", pa.table(registry)),
                ("orders-0", pa.table({"value": avro_values.flat(rows)})),
            ):
                (part / name).mkdir(parents=True, exist_ok=True)
                log = kafkajit.encode_batches(table)
                (part / name / f"{0:020}.log").write_bytes(log)
    return folder / "orders-0"


def five(rows: DataFrame, *columns: str) -> DataFrame:
    """Five aggregates: sums, a maximum, and the sizes of two texts."""
    first, second, third, text, other = columns
    return rows.agg(
        functions.sum(first),
        functions.sum(second),
        functions.max(third),
        functions.sum(functions.octet_length(text)),
        functions.sum(functions.octet_length(other)),
    )


def queries(spark: SparkSession, path: Path, jar: str | None) -> dict[str, DataFrame]:
    """The queries by their names."""
    source = spark.read.format("kafkaLog")
    plain = source.load(str(path))
    typed = spark.read.format("kafkaLog").option("schemas", "auto").load(str(path))
    fields = ("value.id", "value.price", "value.created", "value.sku", "value.city")
    found = {
        "kafkaLog, plain columns": five(
            plain, "offset", "partition", "timestamp", "value", "topic"
        ),
        "kafkaLog, typed values": five(typed, *fields),
        "kafka_decode_value": five(
            plain.select(
                functions.expr(f"kafka_decode_value(value, '{_SCHEMA}')").alias("v")
            ).selectExpr(
                "v:id::bigint AS id",
                "v:price::double AS price",
                "v:created::timestamp AS created",
                "v:sku::string AS sku",
                "v:city::string AS city",
            ),
            *("id", "price", "created", "sku", "city"),
        ),
    }
    if jar:
        from pyspark.sql.avro.functions import from_avro

        body = functions.expr("substring(value, 6)")
        decoded = plain.select(from_avro(body, _SCHEMA).alias("value"))
        found["kafkaLog, from_avro"] = five(decoded, *fields)
    return found


def main() -> None:
    """Print a table of medians."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--avro-jar", metavar="JAR", help="the jar with from_avro")
    given = parser.parse_args()
    path = orders(given.rows)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    if given.avro_jar:
        builder = builder.config("spark.jars", given.avro_jar)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    kafkajit.spark.register(spark)
    asked = queries(spark, path, given.avro_jar)
    seconds: dict[str, list[float]] = {name: [] for name in asked}
    results = {name: query.collect() for name, query in asked.items()}
    for name in list(asked)[1:]:
        assert results[name] == results["kafkaLog, typed values"], name
    for _ in range(given.rounds):
        # A query that has run keeps the results of its stages.
        for name, query in queries(spark, path, given.avro_jar).items():
            start = time.perf_counter()
            query.collect()
            seconds[name].append(time.perf_counter() - start)
    spark.stop()
    ours = statistics.median(seconds["kafkaLog, typed values"])
    print("| | seconds | of typed values' |\n|---|---:|---:|")
    for name, all_ in seconds.items():
        median = statistics.median(all_)
        print(f"| {name} | {median:.2f} | {median / ours:.2f} × |")


if __name__ == "__main__":
    main()
