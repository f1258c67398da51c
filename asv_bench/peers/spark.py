"""kafkajit in Spark side by side with Parquet and Spark's own Kafka connector, local[2], warm.

Subjects take turns, each in a session of its own. Segments and the Parquet files of the same rows
are made once, in KAFKAJIT_BENCH_DIR or ~/.cache/kafkajit/bench.

  python -m asv_bench.peers.spark                   all but the connector, a quarter of an hour
  python -m asv_bench.peers.spark --kafka-python PYTHON --kafka-jars A.jar,B.jar
  python -m asv_bench.peers.spark --only explode --record     and into docs/performance
"""

from __future__ import annotations

import argparse
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np

import kafkajit
from asv_bench.benchmarks.segments import Segment, cache_folder
from asv_bench.peers import report
from asv_bench.peers.folders import unfinished
from asv_bench.peers.jvm import broker
from asv_bench.peers.options import add_measuring, add_record, add_warm, finish, keep, parser_of
from asv_bench.peers.record import measured_with
from asv_bench.peers.rounds import Command, Worker, measure, python, summary
from kafkajit import Log
from kafkajit.storage.source import Source
from kafkajit.walk.frames import frames

Subjects = dict[str, Callable[[], Worker | Command]]

KINDS = ("table", "explode", "batches", "write")


class Comparison(NamedTuple):
    """The files to read, and the subjects that read them."""

    records: int
    bytes: int
    subjects: Subjects


def comparisons(options: argparse.Namespace, running: ExitStack) -> dict[str, Comparison]:
    p100 = Segment(round(4_000_000 * options.scale))
    large = Segment(round(8_970_000 * options.scale))  # 1 GiB

    def worker(name: str, path: object) -> Callable[[], Worker]:
        return partial(Worker, python("asv_bench.peers.spark_subjects", name, str(path)))

    def table() -> Comparison:
        log = p100.path()
        partition = as_a_broker_leaves_it(log)
        found: Subjects = {
            name: worker(name, partition)
            for name in (
                "kafkaLog",
                "kafkaLog, 2 columns",
                "kafkaLog, counted",
                "kafkaLog, Python source",
            )
        }
        found |= {name: worker(name, log) for name in ("kafka_log()", "ready-made")}
        for codec in ("none", "zstd"):
            found[f"Parquet, {codec}"] = worker(f"Parquet, {codec}", parquet(log, codec))
        for query in ("2 columns", "counted"):
            found[f"Parquet, {query}"] = worker(f"Parquet, {query}", parquet(log, "none"))
        if options.kafka_python:
            servers = running.enter_context(broker_with(p100.records))
            found["Kafka connector"] = partial(connector, options, servers)
        return Comparison(p100.records, log.stat().st_size, found)

    def explode() -> Comparison:
        folder = eight_files(p100.path())
        size = sum(file.stat().st_size for file in folder.iterdir())
        found: Subjects = {name: worker(name, folder) for name in ("explode", "explode, 2 columns")}
        return Comparison(Log(folder).end_offset, size, found)

    def batches() -> Comparison:
        log = large.path()
        found: Subjects = {"batches": worker("batches", as_a_broker_leaves_it(log))}
        return Comparison(large.records, log.stat().st_size, found)

    def write() -> Comparison:
        rows = parquet(p100.path(), "none")
        names = ("Parquet, none", "Parquet, zstd", "kafkaLog", "kafkaLog by key", "kafkaLog, zstd")
        found: Subjects = {name: worker(f"write {name}", rows) for name in (*names, "noop")}
        return Comparison(p100.records, p100.path().stat().st_size, found)

    makers = {"table": table, "explode": explode, "batches": batches, "write": write}
    return {name: makers[name]() for name in options.only}


def connector(options: argparse.Namespace, servers: str) -> Worker:
    """The subject of Spark's connector, with the pyspark that it is made for."""
    os.environ["KAFKAJIT_BENCH_JARS"] = options.kafka_jars
    subjects = Path(__file__).with_name("spark_subjects.py")
    try:
        return Worker([options.kafka_python, str(subjects), "Kafka connector", servers])
    finally:
        del os.environ["KAFKAJIT_BENCH_JARS"]


def connector_version(options: argparse.Namespace) -> dict[str, str]:
    """The version of the Spark that it runs in, which may be older than kafkajit's."""
    if not options.kafka_python:
        return {}
    ask = [options.kafka_python, "-c", "import pyspark; print(pyspark.__version__)"]
    found = subprocess.run(ask, check=True, capture_output=True, text=True)
    return {"Spark of the connector": found.stdout.strip()}


@contextmanager
def broker_with(records: int) -> Iterator[str]:
    """A broker on this machine with that many records of 100 random bytes in the topic p100."""
    folder = cache_folder() / f"broker-{records}"
    with broker.running_broker(folder) as running:
        if not (folder / "loaded").exists():
            server = ["--bootstrap-server", running.bootstrap]
            topic = ["--topic", "p100"]
            create = ["--create", "--partitions", "1", *server, *topic]
            subprocess.run(broker.java("org.apache.kafka.tools.TopicCommand", *create), check=True)
            load = ["--num-records", str(records), "--record-size", "100", "--throughput", "-1"]
            load += ["--producer-props", f"bootstrap.servers={running.bootstrap}"]
            program = "org.apache.kafka.tools.ProducerPerformance"
            subprocess.run(broker.java(program, *topic, *load), check=True)
            (folder / "loaded").touch()
        yield running.bootstrap


def parquet(log: Path, codec: str) -> Path:
    """The same rows as Parquet, written by Spark."""
    folder = log.parent / f"{codec}.parquet"
    if not (folder / "_SUCCESS").exists():
        from asv_bench.peers.spark_subjects import kafka_log_narrow, session

        spark = session()
        frame = kafka_log_narrow(spark, str(log))
        frame.write.mode("overwrite").option("compression", codec).parquet(str(folder))
        spark.stop()
    return folder


def as_a_broker_leaves_it(log: Path) -> Path:
    """The partition of that log, with the indexes."""
    partition = log.parent / "partition" / "orders-0"
    if not partition.exists():
        with unfinished(partition) as part:
            (part / f"{0:020}.log").hardlink_to(log)
            kafkajit.repair(part).apply()
    return partition


def eight_files(log: Path) -> Path:
    """The first 256 MiB in eight segments."""
    folder = log.parent / "eight" / "orders-0"
    if not folder.exists():
        source = Source(log)
        batches = [framing.batches for framing in frames(source)]
        ends = np.concatenate([part.end for part in batches])
        offsets = np.concatenate([part.last_offset for part in batches])
        start = base = 0
        with unfinished(folder) as part:
            for size in range(1, 9):
                last = min(int(np.searchsorted(ends, size * (32 << 20))), ends.size - 1)
                (part / f"{base:020}.log").write_bytes(source.content[start : ends[last]])
                start, base = int(ends[last]), int(offsets[last]) + 1
    return folder


def main() -> None:
    parser = parser_of("spark", __doc__)
    add_measuring(parser, KINDS, rounds=7)
    add_warm(parser, 12)
    parser.add_argument("--kafka-python", metavar="PYTHON", help="a Python with pyspark 4.0.0")
    parser.add_argument("--kafka-jars", metavar="JARS", help="of spark-sql-kafka-0-10")
    add_record(parser)
    options = parser.parse_args()
    if bool(options.kafka_python) != bool(options.kafka_jars):
        parser.error("the connector needs both --kafka-python and --kafka-jars")
    connectors = connector_version(options)
    with ExitStack() as running:
        for name, comparison in comparisons(options, running).items():
            seconds = measure(
                comparison.subjects, warm=options.warm, rounds=options.rounds, bind=False
            )
            result = {
                "records": comparison.records,
                "bytes": comparison.bytes,
                "seconds": {subject: summary(all_) for subject, all_ in seconds.items()},
                "with": measured_with((), Spark=version("pyspark"), Kafka=broker.KAFKA.version)
                | connectors,
            }
            print(f"\n{name}\n{report.ratios(result)}", flush=True)
            keep(options, "spark", {name: result})
    finish(options)


if __name__ == "__main__":
    main()
