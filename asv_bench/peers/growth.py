"""Measure how kafkajit's time grows with bytes, batches, records, files and splits; one core.

Every point is a pass over local files that the system has in memory, through the reader of one
file or the data source's plan and tasks; points take turns (A B C A B C ...), in one process, after
a pass that does not count. Files are made once, in KAFKAJIT_BENCH_DIR or ~/.cache/kafkajit/bench:
7 GB at scale 1, the largest of 2 GiB.

  python -m asv_bench.peers.growth                         everything, five minutes
  python -m asv_bench.peers.growth --scale 0.02 --only size
  python -m asv_bench.peers.growth --record                and into docs/performance
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from asv_bench.benchmarks.segments import Segment
from asv_bench.peers import growth_report
from asv_bench.peers.folders import unfinished
from asv_bench.peers.options import add_measuring, add_record, finish, keep, parser_of
from asv_bench.peers.record import measured_with
from asv_bench.peers.rounds import summary
from kafkajit import iter_records
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.table import plan_table, read_task, schema_of
from kafkajit.storage.source import Source
from kafkajit.walk.frames import frames

COLUMNS = ("key", "value", "offset", "timestamp")
# Just below 2 GiB, the most that a segment can have: its positions are Java's ints.
LARGEST = (2 << 30) - (1 << 20)
RECORD_BYTES = 120  # of a record of 100 bytes, its key and what is around it included

# A pass, and how many records it has to find.
Pass = tuple[Callable[[], int], int]


@dataclass(frozen=True)
class Batches(Segment):
    """A segment with a given number of records in each batch, whatever its size."""

    batch_records: int = 1

    @property
    def name(self) -> str:
        return f"{super().name}-{self.batch_records}b"

    @property
    def records_per_batch(self) -> int:  # type: ignore[override]
        return self.batch_records


def sizes(scale: float) -> dict[int, Pass]:
    """One file, read by `iter_records`."""
    wanted = [*(mega * 1_000_000 for mega in (10, 30, 100, 300)), 1 << 30, LARGEST]
    found = {}
    for size in wanted:
        segment = Segment(max(1, int(size * scale) // RECORD_BYTES))
        found[segment.path().stat().st_size] = one_file(segment)
    return found


def batches(scale: float) -> dict[int, Pass]:
    """The same records in more and more batches."""
    count = max(1, round(200_000 * scale))
    return {
        each: one_file(Batches(count, batch_records=min(each, count)))
        for each in (1, 10, 100, 1000, 10_000)
    }


def record_sizes(scale: float) -> dict[int, Pass]:
    """About the same bytes as fewer and larger records, in batches of 64 KB or of one."""
    found = {}
    for size in (10, 100, 1000, 10_000, 100_000, 1_000_000):
        each = max(1, (64 << 10) // (size + 20))
        count = max(each, round((256 << 20) * scale / (size + 20)))
        found[size] = one_file(Batches(count, value_size=size, batch_records=each))
    return found


def shared(scale: float) -> dict[int, Pass]:
    """100 MB, cut into more and more files."""
    counts = [count for count in (1, 10, 100, 1000, 10_000) if count <= 10_000 * scale or count < 9]
    # A batch for each file, if there are 10,000.
    segment = Batches(round(800_000 * scale), batch_records=80)
    return {count: folder(cut(segment, count), segment.records) for count in counts}


def constant(scale: float) -> dict[int, Pass]:
    """More and more files of one batch, 64 KB each."""
    most = max(1, round(10_000 * scale))
    each = 540
    files = cut(Batches(most * each, batch_records=each), most)
    return {
        count: folder(linked(files, count), count * each)
        for count in (1, 10, 100, 1000, 10_000)
        if count <= most
    }


def splits(scale: float) -> dict[int, Pass]:
    """One file split into 1 to 64 tasks, planned and read one after the other."""
    segment = Segment(round(4_000_000 * scale))
    path = segment.path()
    return {
        count: folder(path, segment.records, -(-path.stat().st_size // count), splits=count)
        for count in (1, 2, 4, 8, 16, 32, 64)
    }


MAKERS: dict[str, Callable[[float], dict[int, Pass]]] = {
    "size": sizes,
    "records-per-batch": batches,
    "record-size": record_sizes,
    "files": shared,
    "files-of-64-kB": constant,
    "splits": splits,
}


def one_file(segment: Segment) -> Pass:
    """All records of a file, as Arrow batches of four columns."""
    path = segment.path()

    def read() -> int:
        return sum(batch.num_rows for batch in iter_records(path, columns=COLUMNS))

    return read, segment.records


def folder(path: Path, records: int, share: int | None = None, splits: int | None = None) -> Pass:
    """The same as the data source does it: plan a folder, then read task by task."""
    options = ScanOptions(paths=(str(path),), max_partition_bytes=share)
    schema = pa.schema([field for field in schema_of(options) if field.name in COLUMNS])

    def read() -> int:
        tasks = plan_table(options, ()).tasks
        if splits is not None and len(tasks) != splits:
            raise RuntimeError(f"{len(tasks)} tasks instead of {splits}")
        return sum(rows.num_rows for task in tasks for rows in read_task(task, schema, options))

    return read, records


def cut(segment: Batches, count: int) -> Path:
    """A partition's folder with the segment's batches cut into `count` files."""
    log = segment.path()
    target = log.parent / f"cut-{count}" / "orders-0"
    if not target.exists():
        source = Source(log)
        heads = [framing.batches for framing in frames(source)]
        starts = [int(start) for part in heads for start in part.position]
        chosen = [place * len(starts) // count for place in range(count)]
        ends = [*(starts[place] for place in chosen[1:]), source.content.size]
        with unfinished(target) as part:
            for place, end in zip(chosen, ends, strict=True):
                file = part / f"{place * segment.batch_records:020}.log"
                file.write_bytes(source.content[starts[place] : end])
    return target


def linked(files: Path, count: int) -> Path:
    """A folder with hard links to the first `count` of those files."""
    target = files.parent / f"first-{count}" / files.name
    if not target.exists():
        with unfinished(target) as part:
            for file in sorted(files.iterdir())[:count]:
                os.link(file, part / file.name)
    return target


def measure(points: Mapping[int, Pass], rounds: int) -> list[dict[str, Any]]:
    """Each point's records and seconds: one round to warm up, then `rounds` that count."""
    spent: dict[int, list[float]] = {x: [] for x in points}
    for turn in range(rounds + 1):
        for x, (read, records) in points.items():
            start = time.perf_counter()
            found = read()
            seconds = time.perf_counter() - start
            if found != records:
                raise RuntimeError(f"{found} records instead of {records} at {x}")
            if turn:
                spent[x].append(seconds)
    return [
        {"x": x, "records": points[x][1], "seconds": summary(seconds)}
        for x, seconds in spent.items()
    ]


def main() -> None:
    """Measure the chosen series and print them."""
    parser = parser_of("growth", __doc__)
    add_measuring(parser, list(MAKERS), rounds=7, of="files")
    add_record(parser)
    options = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    for name in options.only:
        points = measure(MAKERS[name](options.scale), options.rounds)
        print(f"\n{growth_report.tables({name: {'points': points}})}", flush=True)
        keep(options, "growth", {name: {"points": points, "with": measured_with(())}})
    finish(options)


if __name__ == "__main__":
    main()
