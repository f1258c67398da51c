"""Records of given local files, each a log of its own, as `kafka_records(content)` reads them.

Unlike the segments of a folder, these files may have any name, and the files beside them mean
nothing: a file may end as the last segment of a partition may.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from kafkajit.arrow.arrays import column_of, repeated
from kafkajit.reader import SegmentReader
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.plan import Split, plan_files
from kafkajit.scan.predicates import Predicate, meets, millisecond_range_of, range_of
from kafkajit.schema import CONTENT_RECORDS
from kafkajit.storage.stored_file import StoredFile
from kafkajit.walk.selection import EVERYTHING, Selection

# Columns with the same value in all records of a file.
FILE_COLUMNS = ("path", "length", "modificationTime")
# The column that numbers the records of a file, as posexplode does.
PLACE = "pos"


def files_of(text: str) -> list[StoredFile]:
    """The files in the JSON that the bridge passes: path, local path, size and milliseconds.

    >>> files_of('[["file:/k/a.log", "/k/a.log", 69, 1700000000000]]')[0].size
    69
    """
    return [
        StoredFile(path, size, modified_ms * 10**6, local_path, None)
        for path, local_path, size, modified_ms in json.loads(text)
    ]


def plan_given_files(
    files: Iterable[StoredFile],
    schema: pa.Schema,
    options: ScanOptions,
    predicates: Sequence[Predicate],
) -> list[list[Split]]:
    """Plan what each task reads; files and batches that meet no condition are left out.

    A file whose records are numbered is read whole.
    """
    wanted = [file for file in files if meets({"path": file.path, "length": file.size}, predicates)]
    if PLACE in schema.names:
        return plan_files(wanted, options, EVERYTHING, whole=True)
    selection = Selection(
        range_of("offset", predicates), millisecond_range_of("timestamp", predicates)
    )
    return plan_files(wanted, options, selection, whole=False)


def read_given_files(
    splits: Iterable[Split], schema: pa.Schema, options: ScanOptions
) -> Iterator[pa.RecordBatch]:
    """The rows of some splits, as record batches of the schema's columns."""
    names = [name for name in schema.names if name not in (*FILE_COLUMNS, PLACE)]
    fields = pa.schema([CONTENT_RECORDS.field(name) for name in names or ["offset"]])
    for split in splits:
        file = split.file
        reader = SegmentReader(
            file.open(split.start, split.end),
            mode=options.mode,
            selection=split.selection,
            start=split.start,
            end=split.end,
            is_last=True,
        )
        modified = None if file.modified_ns is None else file.modified_ns // 1000
        constants = dict(zip(FILE_COLUMNS, (file.path, file.size, modified), strict=True))
        first = 0
        for rows in reader.records(fields):
            found = dict(zip(rows.schema.names, rows.columns, strict=True))
            for name, value in constants.items():
                if name in schema.names:
                    found[name] = repeated(value, rows.num_rows, schema.field(name).type)
            if PLACE in schema.names:
                places = np.arange(first, first + rows.num_rows)
                found[PLACE] = column_of(places).cast(pa.int32())
            first += rows.num_rows
            columns = [found[name] for name in schema.names]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
