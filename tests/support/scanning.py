"""Folders of logs, and tables of them: read as Spark's tasks do, local or in ranges."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import reference
from corpus import SOUND_LOGS, rows_of
from pyarrow.fs import FileSystem, LocalFileSystem, SubTreeFileSystem

import kafkajit
import kafkajit.places.location
import kafkajit.storage.source
import kafkajit.walk.frames
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.plan import ScanPlan
from kafkajit.scan.predicates import Predicate
from kafkajit.scan.table import (
    PLANNED,
    plan_table,
    plan_tasks,
    planned_rows,
    read_task,
    schema_of,
)
from kafkajit.schema import in_microseconds

# Partition folders as a broker left them, without damaged ones, and without records of megabytes,
# which would only test the same promises again.
FOLDERS = sorted(
    {
        path.parent
        for path in SOUND_LOGS
        if path.suffix == ".log" and not path.parent.name.startswith("large-value-")
    }
)
by_folder = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def options_of(*locations: str | Path, **options: object) -> ScanOptions:
    """Options as Spark passes them."""
    paths = {"paths": json.dumps([str(location) for location in locations])}
    return ScanOptions.parse(paths | {name: str(value) for name, value in options.items()})


def read_table(
    *locations: str | Path,
    predicates: Sequence[Predicate] = (),
    columns: Sequence[str] | None = None,
    **options: object,
) -> pa.Table:
    """All rows of a table, task by task and split by split, as they would arrive in Spark."""
    asked = options_of(*locations, **options)
    schema = schema_of(asked)
    if columns is not None:
        schema = pa.schema([schema.field(name) for name in columns])
    if asked.kind in PLANNED:
        return pa.Table.from_batches([planned_rows(asked, predicates, schema)])
    batches = []
    for task in plan_tasks(asked, predicates):
        batches += read_task(pickle.loads(pickle.dumps(task)), schema, asked)
    table = pa.Table.from_batches(batches, schema=schema)
    table.validate(full=True)
    return table


def read_rows(*locations: str | Path, **asked: Any) -> list[dict[str, Any]]:
    """As `read_table`, as dicts; timestamps in microseconds."""
    return rows_of(read_table(*locations, **asked))


def offsets_of(*locations: str | Path, **asked: Any) -> list[int]:
    column: list[int] = read_table(*locations, columns=["offset"], **asked)["offset"].to_pylist()
    return column


def plan_of(
    *locations: str | Path, predicates: Sequence[Predicate] = (), **options: object
) -> ScanPlan:
    return plan_table(options_of(*locations, **options), predicates)


def stretches_of(plan: ScanPlan) -> list[tuple[int, int]]:
    return [(split.start, split.end) for task in plan.tasks for split in task]


def logs_of(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log"))


def records_by_segment(folder: Path) -> pa.Table:
    """The result of read_records for each segment of a folder, with Spark's timestamps."""
    table = pa.concat_tables(kafkajit.read_records(log) for log in logs_of(folder))
    return table.replace_schema_metadata().cast(in_microseconds(table.schema.remove_metadata()))


def batches_by_segment(folder: Path, location: str | None = None) -> pa.Table:
    """The result of read_record_batches for each segment, with the segment's columns."""
    tables = []
    for log in logs_of(folder):
        table = kafkajit.read_record_batches(log).replace_schema_metadata()
        path = kafkajit.parse_log_path(log)
        before = {"topic": path.topic, "partition": path.partition}
        for place, (name, value) in enumerate(before.items()):
            type_ = pa.string() if name == "topic" else pa.int32()
            column = pa.array([value] * table.num_rows, type_)
            table = table.add_column(place, name, column)
        column = pa.array([f"{location or folder}/{log.name}"] * table.num_rows, pa.string())
        tables.append(table.append_column("path", column))
    table = pa.concat_tables(tables)
    return table.cast(in_microseconds(table.schema))


def table_rows(rows: list[dict[str, Any]], topic: str, partition: int) -> list[dict[str, Any]]:
    """Rows of the reference in the form of the table's rows."""
    where = {"topic": topic, "partition": partition}
    return [row | where | {"timestamp": row["timestamp"] * 1000} for row in rows]


def write_transaction_indexes(folder: Path) -> None:
    """Write the .txnindex files that a broker would, for segments with aborted transactions."""
    logs = logs_of(folder)
    for aborted in reference.transactions([log.read_bytes() for log in logs])[0]:
        with logs[aborted.segment].with_suffix(".txnindex").open("ab") as index:
            index.write(aborted.encode())


def copied(folder: Path, to: Path, *, without: Iterable[str] = ()) -> Path:
    """A copy of a partition's folder, goldens and some other suffixes left out."""
    target = to / folder.name
    goldens = ("*.out", "*.err", "*.exit", "*.sha256")
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns(*goldens, *without))
    return target


def write_partition(
    root: Path, segments: Mapping[int, bytes] | Iterable[bytes], name: str = "orders-0"
) -> Path:
    """A partition's folder with these segments, by base offset; or by their own first offset."""
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    if not isinstance(segments, Mapping):
        segments = {int.from_bytes(log[:8], signed=True): log for log in segments}
    for base_offset, log in segments.items():
        (folder / f"{base_offset:020}.log").write_bytes(log)
    return folder


class _Bucket:
    """Stands in for pyarrow's file systems: `away://NAME/` is a folder of this machine.

    Its files have no local path, so they are read in ranges, as those of any object store.
    """

    folder: Path

    @classmethod
    def from_uri(cls, uri: str) -> tuple[FileSystem, str]:
        assert uri == f"away://{cls.folder.name}/"
        return SubTreeFileSystem(str(cls.folder.parent), LocalFileSystem()), cls.folder.name


def far_away(monkeypatch: pytest.MonkeyPatch, root: Path) -> str:
    """The URI of a local folder, as if it were in an object store."""
    bucket = type("Bucket", (_Bucket,), {"folder": root})
    monkeypatch.setattr(kafkajit.places.location, "FileSystem", bucket)
    return f"away://{root.name}"


def read_in_small_pieces(monkeypatch: pytest.MonkeyPatch, window: int = 64) -> None:
    """Make ranges smaller than any batch, and chunks hardly larger than a batch's header."""
    monkeypatch.setattr(kafkajit.storage.source, "_WINDOW", window)
    monkeypatch.setattr(kafkajit.walk.frames, "CHUNK_BYTES", 70)
