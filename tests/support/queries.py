"""Questions to a session, and its answers: asked locally, on a cluster, and through Spark Connect.

As a program it asks the questions that are named and prints the answers as JSON. Spark ships the
functions in a program's own file by value, so executors need no module but kafkajit.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

# As users write it: before they start the session, of classic Spark or of Spark Connect.
from kafkajit.spark import register

TASKS = 4
Rows = list[list[Any]]


class Asked(NamedTuple):
    """A session, a folder of logs and a damaged log."""

    spark: SparkSession
    logs: str
    damaged: str

    def load(self, *names: str, **options: str) -> DataFrame:
        paths = [f"{self.logs}/{name}" for name in names]
        return self.spark.read.format("kafkaLog").options(**options).load(paths)

    @property
    def binary_files(self) -> str:
        return f"binaryFile.`{self.logs}/{{headers,transactions}}-0/*.log`"


def unregistered(asked: Asked) -> int:
    return asked.load("headers-0").count()


def records(asked: Asked) -> Rows:
    return rows(asked.load("*segments-0", maxPartitionBytes="2k"))


def by_columns(asked: Asked) -> bool:
    """Whether the session reads through the bridge."""
    plan = io.StringIO()
    with contextlib.redirect_stdout(plan):
        asked.load("segments-0").select("key").explain()
    return "kafkaLog by columns" in plan.getvalue()


def batches(asked: Asked) -> Rows:
    return rows(asked.load("segments-0", "transactions-0", kind="batches"))


def files(asked: Asked) -> Rows:
    return rows(asked.load("segments-0", kind="files").select("path", "length"))


def corruption(asked: Asked) -> Rows:
    return rows(asked.spark.read.format("kafkaLog").load(asked.damaged, kind="corruption"))


def filtered(asked: Asked) -> Rows:
    frame = asked.load("*")
    frame = frame.where("topic LIKE 'segments%' AND offset BETWEEN 20 AND 25")
    return rows(frame.select("topic", "offset", "key", "value"))


def kafka_records(asked: Asked) -> Rows:
    return rows(asked.spark.sql(f"SELECT kafka_records(content) FROM {asked.binary_files}"))


def kafka_log(asked: Asked) -> Rows:
    table = f"SELECT path FROM {asked.binary_files}"
    return rows(asked.spark.sql(f"SELECT * FROM kafka_log(TABLE({table}))"))


def column_functions(asked: Asked) -> Rows:
    from kafkajit.spark.functions import kafka_log_path, kafka_record_batches, kafka_valid_bytes

    frame = asked.spark.read.format("binaryFile").load(f"{asked.logs}/single-record-0/*.log")
    content = [kafka_record_batches("content"), kafka_valid_bytes("content")]
    return rows(frame.select(*content, kafka_log_path("path")))


def errors(asked: Asked) -> list[list[Any]]:
    """kafkajit's error lines, and for each whether Spark shows Python's traceback."""
    broken = asked.spark.read.format("kafkaLog").load(asked.damaged)
    bad = f"binaryFile.`{asked.damaged}/*.log`"
    return [
        error_of(lambda: asked.load("no-such-folder")),
        error_of(lambda: asked.load("headers-0", kidn="batches")),
        error_of(lambda: broken),
        error_of(lambda: asked.spark.sql(f"SELECT kafka_records(content) FROM {bad}")),
    ]


def error_of(ask: Callable[[], DataFrame]) -> list[Any]:
    try:
        stated = str(ask().collect())
    except PySparkException as error:
        stated = str(error)
    line = re.search(r"\w+Error: .*", stated)
    return [line[0].strip() if line else stated, "Traceback" in stated]


def report(asked: Asked) -> dict[str, Any]:
    """A report without measured times."""
    from kafkajit.spark import report

    found = report(asked.spark, asked.logs, asked.damaged)
    del found["madeAt"], found["madeBy"], found["seconds"]
    for topic in found["topics"]:
        for encoding in topic["savings"]["encodings"]:
            del encoding["encodeSeconds"], encoding["decodeSeconds"]
    return found


def planner_log(asked: Asked) -> list[str]:
    """The lines that planning a query logs, as its user sees them."""
    spark = asked.spark
    spark.conf.set("spark.sql.pyspark.worker.logging.enabled", "true")
    asked.load("segments-0", endingOffsets='{"segments": {"0": 1}}').collect()
    logged = spark.sql("SELECT msg FROM python_worker_logs() WHERE logger = 'kafkajit'").collect()
    spark.conf.set("spark.sql.pyspark.worker.logging.enabled", "false")
    return [row.msg for row in logged]


def executors(asked: Asked) -> Rows:
    """For each task of a small job: its working folder, its Python, and its kafkajit."""

    def tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys
        from pathlib import Path

        import kafkajit

        time.sleep(0.5)  # long enough for every executor to get a task
        for _ in batches:
            stated = [str(Path.cwd()), sys.executable, kafkajit.__file__]
            columns = [pa.array([text]) for text in stated]
            yield pa.RecordBatch.from_arrays(columns, ["folder", "python", "package"])

    frame = asked.spark.range(0, TASKS, numPartitions=TASKS)
    return rows(frame.mapInArrow(tell, "folder STRING, python STRING, package STRING"))


QUESTIONS = {
    question.__name__: question
    for question in (
        unregistered,
        records,
        by_columns,
        batches,
        files,
        corruption,
        filtered,
        kafka_records,
        kafka_log,
        column_functions,
        errors,
        report,
        planner_log,
        executors,
    )
}


def rows(frame: DataFrame) -> Rows:
    """All rows in a fixed order, in the types of JSON."""
    found: Rows = json.loads(json.dumps(frame.collect(), default=repr))
    return sorted(found, key=repr)


def answers(asked: Asked, names: Iterable[str]) -> dict[str, Any]:
    """Answers by question; questions that need no registration come first."""
    bare = [name for name in names if name in ("unregistered", "executors")]
    found = {name: QUESTIONS[name](asked) for name in bare}
    register(asked.spark)
    return found | {name: QUESTIONS[name](asked) for name in names if name not in bare}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("logs")
    parser.add_argument("damaged")
    parser.add_argument("questions", nargs="+", choices=QUESTIONS)
    parser.add_argument("--remote", help="where a Spark Connect server listens")
    parser.add_argument("--archive", help="an environment to ship to it")
    given = parser.parse_args()
    builder = SparkSession.builder
    spark = (builder.remote(given.remote) if given.remote else builder).getOrCreate()
    if given.archive:
        spark.addArtifacts(given.archive, archive=True)
        spark.conf.set("spark.sql.execution.pyspark.python", "environment/bin/python")
    print(json.dumps(answers(Asked(spark, given.logs, given.damaged), given.questions)))  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    main()
