"""kafkajit in Spark side by side with Parquet and Spark's own Kafka connector, local[2], warm.

Subjects take turns, each in a session of its own. Segments and the Parquet files of the same rows
are made once, in KAFKAJIT_BENCH_DIR or ~/.cache/kafkajit/bench.

  python -m asv_bench.peers.spark                       all but the connector, 8 minutes or so
  python -m asv_bench.peers.spark --kafka-python PYTHON --kafka-jars A.jar,B.jar
  python -m asv_bench.peers.spark --only explode
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from asv_bench.benchmarks.segments import Segment, cache_folder
from asv_bench.peers.rounds import REPO, Command, Worker, measure, python, summary
from kafkajit.source import Source
from kafkajit.walk import frames

sys.path.insert(0, str(REPO / "tests" / "broker"))
import broker

Subjects = dict[str, Callable[[], Worker | Command]]


def comparisons(options: argparse.Namespace, running: ExitStack) -> dict[str, Subjects]:
    p100 = Segment(round(4_000_000 * options.scale))
    large = Segment(round(8_970_000 * options.scale))  # 1 GiB

    def worker(name: str, path: object) -> Callable[[], Worker]:
        return partial(Worker, python("asv_bench.peers.spark_subjects", name, str(path)))

    def table() -> Subjects:
        log = p100.path()
        found: Subjects = {
            name: worker(name, log) for name in ("kafkaLog", "kafkaLog, 4 columns", "kafka_log()")
        }
        for codec in ("none", "zstd"):
            found[f"Parquet, {codec}"] = worker(f"Parquet, {codec}", parquet(log, codec))
        if options.kafka_python:
            servers = running.enter_context(broker_with(p100.records))
            found["Kafka connector"] = partial(connector, options, servers)
        return found

    def explode() -> Subjects:
        folder = eight_files(p100.path())
        return {name: worker(name, folder) for name in ("explode", "explode, 2 columns")}

    def write() -> Subjects:
        rows = parquet(p100.path(), "none")
        names = ("Parquet, none", "Parquet, zstd", "kafkaLog", "kafkaLog by key", "kafkaLog, zstd")
        return {name: worker(f"write {name}", rows) for name in (*names, "noop")}

    makers = {
        "table": table,
        "explode": explode,
        "batches": lambda: {"batches": worker("batches", large.path())},
        "write": write,
    }
    return {name: makers[name]() for name in options.only or makers}


def connector(options: argparse.Namespace, servers: str) -> Worker:
    """Spark's connector, with the pyspark that it is made for."""
    os.environ["KAFKAJIT_BENCH_JARS"] = options.kafka_jars
    subjects = Path(__file__).with_name("spark_subjects.py")
    try:
        return Worker([options.kafka_python, str(subjects), "Kafka connector", servers])
    finally:
        del os.environ["KAFKAJIT_BENCH_JARS"]


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


def eight_files(log: Path) -> Path:
    """The first 256 MiB in eight segments."""
    folder = log.parent / "eight" / "orders-0"
    if not folder.exists():
        source = Source(log)
        batches = [framing.batches for framing in frames(source)]
        ends = np.concatenate([part.end for part in batches])
        offsets = np.concatenate([part.last_offset for part in batches])
        partial_folder = folder.parent / "part"
        shutil.rmtree(partial_folder, ignore_errors=True)
        partial_folder.mkdir(parents=True)
        start = base = 0
        for size in range(1, 9):
            last = min(int(np.searchsorted(ends, size * (32 << 20))), ends.size - 1)
            (partial_folder / f"{base:020}.log").write_bytes(source.content[start : ends[last]])
            start, base = int(ends[last]), int(offsets[last]) + 1
        partial_folder.rename(folder)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m asv_bench.peers.spark",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--scale", type=float, default=1, help="of all segments (default: 1)")
    parser.add_argument("--only", nargs="+", choices=["table", "explode", "batches", "write"])
    parser.add_argument("--rounds", type=int, default=7, help="queries of each (default: 7)")
    parser.add_argument("--warm", type=float, default=12, metavar="SECONDS")
    parser.add_argument("--kafka-python", metavar="PYTHON", help="one that has pyspark 4.0.0")
    parser.add_argument("--kafka-jars", metavar="JARS", help="of spark-sql-kafka-0-10")
    parser.add_argument("--json", type=Path, metavar="FILE", help="add the results to it")
    options = parser.parse_args()
    results = {}
    with ExitStack() as running:
        for name, subjects in comparisons(options, running).items():
            seconds = measure(subjects, warm=options.warm, rounds=options.rounds, bind=False)
            results[name] = {subject: summary(all_) for subject, all_ in seconds.items()}
            first = next(iter(results[name].values()))["median"]
            print(f"\n{name}")
            for subject, found in results[name].items():
                median, best = found["median"], found["best"]
                print(f"  {subject:22} {median:6.2f} s  best {best:6.2f}  {median / first:5.2f} x")
    if options.json:
        known = json.loads(options.json.read_text()) if options.json.exists() else {}
        options.json.write_text(json.dumps(known | {"spark": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
