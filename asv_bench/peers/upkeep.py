"""Logs changed by kafkajit beside Kafka's own classes, one core each.

Subjects take turns on fresh copies of a log, in memory if there is a file system of it. Logs are
made once, in KAFKAJIT_BENCH_DIR or ~/.cache/kafkajit/bench. Kafka's Cleaner needs Java 17 and, the
first time, Maven; it runs without a broker, and its throttle is off.

  python -m asv_bench.peers.upkeep                    everything, five minutes
  python -m asv_bench.peers.upkeep --only index       indexes that are made anew, 1 GiB
  python -m asv_bench.peers.upkeep --only compact-lz4
  python -m asv_bench.peers.upkeep --record           and into docs/performance
"""

from __future__ import annotations

import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import kafkajit
from asv_bench.benchmarks.segments import BASE_TIMESTAMP, Segment, cache_folder
from asv_bench.peers import report
from asv_bench.peers.folders import unfinished
from asv_bench.peers.options import add_measuring, add_record, finish, keep, parser_of
from asv_bench.peers.record import measured_with
from asv_bench.peers.rounds import REPO, summary
from kafkajit.storage.source import Source
from kafkajit.walk.frames import frames

sys.path.insert(0, str(REPO / "tests" / "broker"))
import broker
from log_operations import LogOperations

KEYS = 1_000_000
MEMORY = Path("/dev/shm")
NOW = BASE_TIMESTAMP + 86_400_000
# As a broker's cleaner has it.
DEDUPE_BUFFER = 128 << 20
# A quarter of what is compacted.
SEGMENT_BYTES = {"none": 256 << 20, "lz4": 56 << 20}

# A pass: seconds, and how many records stay or bytes are read.
Subjects = dict[str, Callable[[], tuple[float, int]]]


def main() -> None:
    """Run the chosen comparisons and print them."""
    known = tuple(report.UPKEEP)
    parser = parser_of("upkeep", __doc__)
    add_measuring(parser, known, rounds=5, of="logs")
    add_record(parser)
    options = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # the JVM's too
    for name in options.only:
        with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as scratch:
            if name == "index":
                log = Segment(round(8_970_000 * options.scale)).path()
                seconds = compare(indexing(Path(scratch), log), options.rounds)
            else:
                log = compacted_log(options.scale, "lz4" if name.endswith("lz4") else "none")
                with LogOperations(Path(scratch), fast=True) as kafka:
                    seconds = compare(compaction(Path(scratch), log, kafka), options.rounds)
        result = {
            "bytes": sum(file.stat().st_size for file in logs_of(log)),
            "seconds": {subject: summary(all_) for subject, all_ in seconds.items()},
            "with": measured_with((), Kafka=broker.KAFKA.version),
        }
        print(f"\n{name}\n{report.ratios(result)}", flush=True)
        keep(options, "upkeep", {name: result})
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"\npeak memory of this process: {peak >> 10} MiB, files that it maps included")
    finish(options)


def logs_of(path: Path) -> list[Path]:
    """A segment, or those of a partition's folder."""
    return sorted(path.glob("*.log")) if path.is_dir() else [path]


def compare(subjects: Subjects, rounds: int) -> dict[str, list[float]]:
    """The seconds of each pass: one round to warm up, then `rounds` that count."""
    seconds: dict[str, list[float]] = {subject: [] for subject in subjects}
    for turn in range(rounds + 1):
        found = set()
        for subject, one_pass in subjects.items():
            spent, count = one_pass()
            found.add(count)
            if turn:
                seconds[subject].append(spent)
        if len(found) > 1:
            raise RuntimeError(f"subjects do not agree on what is there: {found}")
    return seconds


def indexing(scratch: Path, log: Path) -> Subjects:
    """A segment of 1 GiB without its indexes."""
    folder = scratch / "orders-0"
    folder.mkdir()
    copy = Path(shutil.copy(log, folder))

    def check() -> tuple[float, int]:
        start, size = time.perf_counter(), 0
        source = Source(str(copy))
        for framing in frames(source):
            assert framing.batches.is_valid(source.content).all()
            size = framing.position
        return time.perf_counter() - start, size

    def repair() -> tuple[float, int]:
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path != copy:
                path.unlink()
        start = time.perf_counter()
        plan = kafkajit.repair(folder)
        plan.apply()
        spent = time.perf_counter() - start
        assert len(kafkajit.index.read_offset_index(copy.with_suffix(".index"))) > 0
        return spent, plan.partitions[0].bytes

    return {"reading and checking": check, "kafkajit.repair, written and synced": repair}


def compaction(scratch: Path, log: Path, kafka: LogOperations) -> Subjects:
    """A log whose keys come nine times, all of it dirty."""
    config = {"segment.bytes": 1 << 30, "cleanup.policy": "compact"}

    def ours() -> tuple[float, int]:
        folder = scratch / "ours" / log.name
        shutil.copytree(log, folder)
        start = time.perf_counter()
        plan = kafkajit.compact(
            folder,
            config=kafkajit.LogConfig.of(config),
            now=NOW,
            dedupe_buffer_size=DEDUPE_BUFFER,
        )
        plan.apply(keep=False)
        spent = time.perf_counter() - start
        shutil.rmtree(folder)
        return spent, sum(segment.records for segment in plan.partitions[0].segments)

    def kafkas() -> tuple[float, int]:
        (answer,) = kafka.time_cleaning(log, config, 1, dedupeBufferSize=DEDUPE_BUFFER, now=NOW)
        return answer["seconds"], answer["stats"]["messagesWritten"]

    return {"kafkajit.compact, written and synced": ours, "Kafka's Cleaner": kafkas}


def compacted_log(scale: float, codec: str) -> Path:
    """A partition of 1 GiB before compression in closed segments, and one that is not closed."""
    records = Segment(round(9_400_000 * scale), keys=max(1, round(KEYS * scale)))
    path = records.path()
    folder = cache_folder() / path.parent.parent.name / f"compacted-{codec}-{records.name}"
    if not folder.exists():
        with (
            unfinished(folder / "users-0") as part,
            kafkajit.LogWriter(part, {"segment.bytes": int(SEGMENT_BYTES[codec] * scale)}) as log,
        ):
            for batches in kafkajit.iter_encoded_batches(
                kafkajit.iter_records(path, columns=["offset", "timestamp", "key", "value"]),
                batch_size=16384,
                compression_type=codec,
            ):
                log.append(batches)
    return folder / "users-0"


if __name__ == "__main__":
    main()
