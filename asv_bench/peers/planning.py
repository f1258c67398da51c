"""Measure how long kafkajit plans a scan of very many segments, and with how much memory.

The segments lie in an object store in memory, where every request takes `--latency` milliseconds,
or with `--local` in a folder of this machine (small sparse files, made once in KAFKAJIT_BENCH_DIR
or ~/.cache/kafkajit/bench). Each segment has two indexes, so a store has three objects for each.

  python -m asv_bench.peers.planning                      100,000 segments in 10,000 partitions
  python -m asv_bench.peers.planning --segments 333333    a million objects
  python -m asv_bench.peers.planning --topic topic-07     a query that names one of 100 topics
  python -m asv_bench.peers.planning --local
"""

from __future__ import annotations

import argparse
import pickle
import resource
import sys
import time
from pathlib import Path

from pyarrow.fs import PyFileSystem

import kafkajit.places.location
from asv_bench.benchmarks.memory_store import SUFFIXES, MemoryStore
from asv_bench.benchmarks.segments import cache_folder
from asv_bench.peers.folders import unfinished
from asv_bench.peers.options import parser_of
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.predicates import Predicate
from kafkajit.scan.table import plan_table


def folder_of(folders: int, segments: int, size: int, topics: int) -> Path:
    """A log.dirs root of sparse segments with sparse indexes."""
    target = cache_folder() / f"sparse-{folders}-{segments}-{size}-{topics}"
    if not target.exists():
        with unfinished(target) as part:
            for at in range(folders):
                folder = part / f"topic-{at % topics:02d}-{at // topics}"
                folder.mkdir()
                for segment in range(-(-segments // folders)):
                    for suffix in SUFFIXES:
                        with (folder / f"{segment * 1000:020d}{suffix}").open("wb") as file:
                            file.truncate(size if suffix == ".log" else 10)
    return target


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def main() -> None:
    """Plan once, and print what it took."""
    parser = parser_of("planning", __doc__)
    parser.add_argument("--segments", type=int, default=100_000)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--topic", help="the topic that the query names (default: all)")
    parser.add_argument("--segment-bytes", type=int, default=1000)
    parser.add_argument(
        "--latency", type=float, default=20, metavar="MS", help="of a request (default: 20)"
    )
    parser.add_argument("--local", action="store_true", help="files on this machine")
    given = parser.parse_args()
    sizes = (given.partitions, given.segments)
    store = None
    if given.local:
        path = str(folder_of(*sizes, given.segment_bytes, given.topics))
    else:
        store = MemoryStore(
            *sizes,
            topics=given.topics,
            segment_bytes=given.segment_bytes,
            latency=given.latency / 1000,
        )
        opened = PyFileSystem(store)
        there = type("Memory", (), {"from_uri": staticmethod(lambda _: (opened, store.root))})
        kafkajit.places.location.FileSystem = there  # type: ignore[misc]
        path = "memory://bucket/"
    options = ScanOptions(paths=(path,), parallelism=64)
    predicates = [Predicate("topic", "=", given.topic)] if given.topic else []
    measure(options, predicates, store, given)


def measure(
    options: ScanOptions,
    predicates: list[Predicate],
    store: MemoryStore | None,
    given: argparse.Namespace,
) -> None:
    """Print seconds, requests, memory, and the bytes that go to the tasks."""
    imported = peak_bytes()
    start = time.perf_counter()
    plan = plan_table(options, predicates)
    planned = time.perf_counter() - start
    peak = peak_bytes() - imported
    if store is not None:
        print(
            f"{store.requests:,} requests, up to {store.at_once} at once, {given.latency} ms each"
        )
    print(plan)
    start = time.perf_counter()
    pickles = [len(pickle.dumps(task)) for task in plan.tasks]
    pickled = time.perf_counter() - start
    print(
        f"plan {planned:.2f} s, {peak >> 20:,} MiB above the import's {imported >> 20} MiB; "
        f"{len(pickles):,} tasks, pickled {sum(pickles) / 1e6:.1f} MB in {pickled:.2f} s, the "
        f"largest {max(pickles, default=0) / 1e3:.0f} kB"
    )


if __name__ == "__main__":
    sys.exit(main())
