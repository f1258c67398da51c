"""Tiered segments in Spark side by side with Parquet; local[2].

    python -m asv_bench.peers.spark_tiered

The records of one log lie in a broker's folder, in objects of Aiven's plugin in chunks of 4 MiB,
and in Parquet with zstd. The same five aggregates of each take turns in one session, warm.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import pyarrow.parquet as pq

import kafkajit
from asv_bench.benchmarks.segments import Segment, cache_folder
from asv_bench.benchmarks.tiered_objects import (
    TOPIC_ID,
    KeyPair,
    Options,
    key_pair,
    write_segment,
)
from asv_bench.peers.folders import unfinished
from asv_bench.peers.spark_subjects import AGGREGATES, TASKS, kafka_log, session

_CHUNK = 4 << 20
_SEGMENT = 64 << 20  # a file of the folder has about as many bytes
_PARQUET = "Parquet, zstd"
FORMS = {
    "a broker's folder": (False, False),
    "plain objects": (False, False),
    "zstd": (True, False),
    "AES-GCM": (False, True),
    "zstd and AES-GCM": (True, True),
}
_LOCAL, *_TIERED = FORMS


def stored(records: int) -> Path:
    """The folder that has the records in all forms, and the private key."""
    folder = cache_folder() / f"tiered-{records}"
    if folder.exists():
        return folder
    log = Segment(records).path()
    with unfinished(folder / "whole") as whole:
        root = whole.parent
        pair = key_pair(root, "key1")
        content = log.read_bytes()
        batches = kafkajit.read_record_batches(log)
        positions = batches["position"].to_pylist()
        bases = batches["baseOffset"].to_pylist()
        first = 0
        for number in range(1, len(positions) + 1):
            end = len(content) if number == len(positions) else positions[number]
            if end - positions[first] >= _SEGMENT or number == len(positions):
                last = (records if number == len(positions) else bases[number]) - 1
                _write(root, content[positions[first] : end], bases[first], last, pair)
                first = number
        (root / _PARQUET).mkdir()
        table = kafkajit.read_records(log)
        size = -(-records // TASKS)
        for at in range(0, records, size):
            file = root / _PARQUET / f"{at}.parquet"
            pq.write_table(table.slice(at, size), file, compression="zstd")
    return folder


def _write(root: Path, log: bytes, base: int, last: int, pair: KeyPair) -> None:
    local = root / _LOCAL / "orders-0"
    local.mkdir(parents=True, exist_ok=True)
    (local / f"{base:020}.log").write_bytes(log)
    for form in _TIERED:
        compresses, is_encrypted = FORMS[form]
        options = Options(_CHUNK, compresses, pair if is_encrypted else None)
        folder = root / form / f"orders-{TOPIC_ID}" / "0"
        write_segment(folder, base, log, options, end_offset=last, segment_id=f"{base:022}")


def main() -> None:
    """Print a table of medians."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    folder = stored(given.records)
    spark = session()
    kafka_log(spark, str(folder / _LOCAL))  # registers
    key = f"encryption.key.pairs.key1.private.key.file={folder / 'key1.pem'}".split("=")
    reader = spark.read.format("kafkaLog").option(*key)

    def frame(form: str) -> object:
        if form == _PARQUET:
            return spark.read.parquet(str(folder / form)).selectExpr(*AGGREGATES).collect()
        return reader.load(str(folder / form)).selectExpr(*AGGREGATES).collect()

    forms = [_PARQUET, *FORMS]
    results = [frame(form) for form in forms]
    assert all(result == results[0] for result in results)
    seconds: dict[str, list[float]] = {form: [] for form in forms}
    for _ in range(given.rounds):
        for form in forms:
            start = time.perf_counter()
            frame(form)
            seconds[form].append(time.perf_counter() - start)
    spark.stop()
    parquet = statistics.median(seconds[_PARQUET])
    print(f"| | seconds | of {_PARQUET} |\n|---|---:|---:|")
    for form, all_ in seconds.items():
        median = statistics.median(all_)
        print(f"| {form} | {median:.2f} | {median / parquet:.2f} × |")


if __name__ == "__main__":
    main()
