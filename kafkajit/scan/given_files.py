"""Records of given local files, each a log of its own, as `kafka_records(content)` reads them.

Unlike the segments of a folder, these files may have any name, and the files beside them mean
nothing: a file may end as the last segment of a partition may.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from kafkajit.reader import SegmentReader
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.plan import Split, plan_files
from kafkajit.scan.predicates import Predicate, meets, millisecond_range_of, range_of
from kafkajit.schema import CONTENT_RECORDS
from kafkajit.storage.stored_file import StoredFile
from kafkajit.walk.selection import Selection

# Columns with the same value in all records of a file.
FILE_COLUMNS = ("path", "length", "modificationTime")


class GivenFile(NamedTuple):
    """A file as Spark lists it; a row of the JSON that the bridge passes."""

    path: str  # as Spark writes it, with the scheme
    local_path: str
    size: int
    modified_ms: int

    @property
    def columns(self) -> dict[str, str | int]:
        """The values of FILE_COLUMNS; the time in microseconds."""
        values = (self.path, self.size, self.modified_ms * 1000)
        return dict(zip(FILE_COLUMNS, values, strict=True))


class FileTask(NamedTuple):
    """The splits of one task, and the files that they belong to by their local paths."""

    splits: list[Split]
    files: dict[str, GivenFile]


def files_of(text: str) -> list[GivenFile]:
    """The files in the JSON that the bridge passes.

    >>> files_of('[["file:/k/a.log", "/k/a.log", 69, 1700000000000]]')[0].columns["length"]
    69
    """
    return [GivenFile(*row) for row in json.loads(text)]


def plan_file_tasks(
    files: Sequence[GivenFile], options: ScanOptions, predicates: Sequence[Predicate]
) -> list[FileTask]:
    """Plan what each task reads; files and batches that meet no condition are left out."""
    selection = Selection(
        range_of("offset", predicates), millisecond_range_of("timestamp", predicates)
    )
    tested = [predicate for predicate in predicates if predicate.column != "modificationTime"]
    by_path = {file.local_path: file for file in files if meets(file.columns, tested)}
    stored = [
        StoredFile(file.local_path, file.size, file.modified_ms * 10**6, file.local_path, None)
        for file in by_path.values()
    ]
    return [
        FileTask(splits, {split.file.path: by_path[split.file.path] for split in splits})
        for splits in plan_files(stored, options, selection)
    ]


def read_file_task(
    task: FileTask, schema: pa.Schema, options: ScanOptions
) -> Iterator[pa.RecordBatch]:
    """A task's rows, as record batches of the schema's columns."""
    names = [name for name in schema.names if name not in FILE_COLUMNS]
    fields = pa.schema([CONTENT_RECORDS.field(name) for name in names or ["offset"]])
    for split in task.splits:
        reader = SegmentReader(
            split.file.open(split.start, split.end),
            mode=options.mode,
            selection=split.selection,
            start=split.start,
            end=split.end,
            is_last=True,
        )
        constants = task.files[split.file.path].columns
        for rows in reader.records(fields):
            columns = [
                rows.column(field.name)
                if field.name not in constants
                else pa.repeat(pa.scalar(constants[field.name], field.type), rows.num_rows)
                for field in schema
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
