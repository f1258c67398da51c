"""Measure how fast a stream catches up, and what a trigger costs that finds nothing; local[2].

    python -m asv_bench.peers.streams                 1 GiB; 1,000 partitions
    python -m asv_bench.peers.streams --scale 0.25    256 MiB; 250 partitions

By turns, a query reads offset and value of a log into Spark's noop sink, and a stream does with
Trigger.AvailableNow. The stream's time is that of its micro-batches, without the start of the
query. Then a stream follows partitions of a segment each to which nothing is appended.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import kafkajit
import kafkajit.testing as kt
from asv_bench.benchmarks.segments import Segment, cache_folder
from asv_bench.peers.folders import unfinished
from asv_bench.peers.options import parser_of
from asv_bench.peers.spark_subjects import kafka_log, session
from kafkajit.scan.stream.log_stream import LogStream
from kafkajit.scan.stream.options import Limits, StreamOptions

_RECORD = 115  # bytes, with its part of a batch's header
_SEGMENT = 64 << 20
_IDLE_SECONDS = 10


def log_folder(records: int) -> Path:
    """The log in segments of 64 MiB."""
    folder = cache_folder() / f"stream-{records}"
    if not folder.exists():
        content = Segment(records).path().read_bytes()
        batches = kafkajit.read_record_batches(content)
        positions = [*batches["position"].to_pylist(), len(content)]
        bases = batches["baseOffset"].to_pylist()
        with unfinished(folder / "orders-0") as partition:
            first = 0
            for number in range(1, len(positions)):
                if positions[number] - positions[first] >= _SEGMENT or number == len(bases):
                    name = f"{bases[first]:020}.log"
                    (partition / name).write_bytes(content[positions[first] : positions[number]])
                    first = number
    return folder


def run_batch(spark: SparkSession, path: Path) -> float:
    frame = kafka_log(spark, str(path)).select("offset", "value")
    start = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


def run_stream(spark: SparkSession, path: Path) -> tuple[float, float]:
    """Seconds of the micro-batches, and of the whole query."""
    frame = spark.readStream.format("kafkaLog").load(str(path)).select("offset", "value")
    with tempfile.TemporaryDirectory() as checkpoint:
        sink = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        start = time.perf_counter()
        query = sink.trigger(availableNow=True).start()
        query.awaitTermination()
        whole = time.perf_counter() - start
        triggers = sum(one["durationMs"]["triggerExecution"] for one in query.recentProgress)
    return triggers / 1000, whole


def idle(spark: SparkSession, path: Path) -> list[float]:
    """Milliseconds of triggers that find nothing."""
    frame = spark.readStream.format("kafkaLog").load(str(path)).select("offset", "value")
    with tempfile.TemporaryDirectory() as checkpoint:
        sink = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = sink.start()
        query.processAllAvailable()
        time.sleep(_IDLE_SECONDS)
        found: list[Any] = list(query.recentProgress)
        query.stop()
    return [
        one["durationMs"]["triggerExecution"]
        for one in found
        if "addBatch" not in one["durationMs"]
    ]


def plan_idle(path: Path, rounds: int) -> list[float]:
    """Milliseconds of the processor for planning nothing, without Spark."""
    stream = LogStream(StreamOptions.parse({"path": str(path)}))
    start = stream.initial_offsets()
    while (end := stream.latest_offsets(start, Limits())) != start:
        start = end
    found = []
    for _ in range(rounds):
        before = time.process_time()
        stream.latest_offsets(start, Limits())
        found.append(1000 * (time.process_time() - before))
    return found


def main() -> None:
    """Print medians."""
    parser = parser_of("streams", __doc__)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    path = log_folder(int(given.scale * (1 << 30)) // _RECORD)
    spark = session()
    spark.conf.set("spark.sql.streaming.noDataProgressEventInterval", "0")
    run_batch(spark, path)
    run_stream(spark, path)
    rounds = [(run_batch(spark, path), *run_stream(spark, path)) for _ in range(given.rounds)]
    batch, triggers, whole = (statistics.median(one[at] for one in rounds) for at in range(3))
    ratio = statistics.median(one[1] / one[0] for one in rounds)
    print("| | batch | micro-batches | of the batch | the stream's query |")
    print("| --- | ---: | ---: | ---: | ---: |")
    print(f"| seconds | {batch:.2f} | {triggers:.2f} | {ratio:.2f} | {whole:.2f} |")
    partitions = int(1000 * given.scale)
    with tempfile.TemporaryDirectory() as root:
        for number in range(partitions):
            folder = Path(root) / f"orders-{number}"
            folder.mkdir()
            log = kt.batch([kt.Record(value=b"v" * 100)] * 10, base_offset=0)
            (folder / f"{0:020}.log").write_bytes(log)
        time.sleep(3)  # what has changed a moment ago is looked at again
        planned = plan_idle(Path(root), 50)
        idled = idle(spark, Path(root))
    spark.stop()
    print(
        f"{partitions:,} partitions, nothing new: {statistics.median(idled):.0f} ms a trigger "
        f"(best {min(idled):.0f}, {len(idled)} triggers), of which kafkajit plans "
        f"{statistics.median(planned):.0f} ms of the processor (best {min(planned):.0f})"
    )


if __name__ == "__main__":
    main()
