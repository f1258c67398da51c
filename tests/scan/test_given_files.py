"""Given files: each is a log of its own, whatever its name is, and its records can be numbered."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import kafkajit.testing as kt
from kafkajit.scan.given_files import files_of, plan_given_files, read_given_files
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.predicates import Predicate

NUMBERED = pa.schema([("path", pa.string()), ("offset", pa.int64()), ("pos", pa.int32())])
# Two batches, the first one thinned out by compaction.
LOG = b"".join(
    kt.batch([kt.Record(b"k", offset_delta=delta) for delta in deltas], base_offset=base)
    for base, deltas in ((0, (0, 1, 5)), (10, (0, 1)))
)


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(LOG)
    return [str(tmp_path / name) for name in ("a", "b")]


def rows_of(
    paths: list[str], schema: pa.Schema, share: int, *conditions: Predicate
) -> tuple[int, list[tuple]]:
    """The number of splits, and their rows."""
    files = files_of(json.dumps([[f"file:{path}", path, len(LOG), 0] for path in paths]))
    options = ScanOptions(paths=("binaryFile",), max_partition_bytes=share)
    tasks = plan_given_files(files, schema, options, conditions)
    splits = [split for task in tasks for split in task]
    rows = [
        tuple(row.values())
        for batch in read_given_files(splits, schema, options)
        for row in batch.to_pylist()
    ]
    return len(splits), rows


@pytest.mark.parametrize("conditions", [(), (Predicate("offset", ">", 9),)])
@pytest.mark.parametrize("share", [1, 1 << 20])
def test_records_are_numbered_in_each_file(
    share: int, conditions: tuple[Predicate, ...], paths: list[str]
) -> None:
    """Neither splits nor conditions change a number; Spark judges the conditions."""
    splits, rows = rows_of(paths, NUMBERED, share, *conditions)
    assert splits == 2
    assert rows == [
        (f"file:{path}", offset, pos)
        for path in paths
        for pos, offset in enumerate([0, 1, 5, 10, 11])
    ]


def test_files_without_numbers_are_split_and_pruned(paths: list[str]) -> None:
    schema = NUMBERED.remove(2)
    assert rows_of(paths, schema, 1)[0] == 4
    assert {offset for _, offset in rows_of(paths, schema, 1, Predicate("offset", ">", 9))[1]} == {
        10,
        11,
    }
    (path, _) = paths
    of_one = Predicate("path", "=", f"file:{path}")
    assert {path for path, _ in rows_of(paths, schema, 1, of_one)[1]} == {f"file:{path}"}
