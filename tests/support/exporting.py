"""Logs to export, and what exported files and imported logs hold."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from corpus import rows_of

import kafkajit
import kafkajit.testing as kt

COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
TIME = 1_767_225_600_000 - 60_000  # a minute before 2026
CONFIG = {"segment.bytes": 20_000, "index.interval.bytes": 500}


def append(folder: Path, offsets: Iterable[int], per_batch: int = 10) -> None:
    """Append records, of which each tenth has no key and each seventh no value."""
    numbers = list(offsets)
    with kafkajit.LogWriter(folder, CONFIG) as log:
        for at in range(0, len(numbers), per_batch):
            some = numbers[at : at + per_batch]
            records = [
                kt.Record(
                    None if n % 10 == 0 else b"k%d" % n,
                    None if n % 7 == 0 else b"v%d" % n * 5,
                    headers=(("n", b"%d" % n), ("null", None)) if n % 3 == 0 else (),
                    # Around midnight timestamps go back and forth.
                    timestamp=TIME + n * 7919 % 99_000,
                )
                for n in some
            ]
            log.append(kt.batch(records, base_offset=some[0], base_timestamp=TIME))


def records_in(root: Path) -> dict[str, list[dict[str, Any]]]:
    """The records of each partition, without markers."""
    found = {}
    for folder in sorted(path for path in root.iterdir() if any(path.glob("*.log"))):
        rows: list[dict[str, Any]] = []
        for log in sorted(folder.glob("*.log")):
            table = kafkajit.read_records(log, columns=[*COLUMNS, "controlType"])
            rows += [row for row in rows_of(table) if row.pop("controlType") is None]
        if rows:
            found[folder.name] = rows
    return found


def exported(folder: Path) -> dict[str, list[int]]:
    """The offsets in the Parquet files of each partition, in the order of names."""
    offsets: dict[str, list[int]] = {}
    for path in sorted(folder.rglob("*.parquet"), key=lambda path: path.name):
        name = path.name.rpartition("-")[0]
        table = pq.ParquetFile(path).read(["offset"])
        offsets.setdefault(name, []).extend(table["offset"].to_pylist())
    return offsets


def table_of(folder: Path) -> pa.Table:
    """All rows of a folder's Parquet files."""
    files = sorted(folder.rglob("*.parquet"))
    return pa.concat_tables([pq.ParquetFile(path).read() for path in files])
