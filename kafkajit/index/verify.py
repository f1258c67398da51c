"""Verifies an index against its log: finds the entries that lead to other offsets than their own.

Answers to DumpLogSegments' dumpIndex and dumpTimeIndex, and looks further. What they report is a
problem here too, except entries for several batches that were appended at once. The log's headers
are read once, however many entries there are; a damaged log is read as far as it is sound.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.index.index_file import base_offset_of, whole_entries
from kafkajit.index.offset_index import ENTRY as OFFSET_ENTRY
from kafkajit.index.time_index import ENTRY as TIME_ENTRY
from kafkajit.schema import INDEX_PROBLEM_COLUMNS, TIME_INDEX_PROBLEM_COLUMNS, table_schema
from kafkajit.storage.source import Int64s, Mask, Source, whole
from kafkajit.walk.damage import DROPMALFORMED
from kafkajit.walk.walk import Walk

TORN = "the file ends inside this entry"
OUT_OF_ORDER = "entries out of order: it is not behind the one before"


def verify_offset_index(log: Any, index: Any, base_offset: int | None = None) -> pa.Table:
    """List the entries of an .index that do not fit its log, a row each; none if all fit.

    An entry fits if a batch begins at its position, and that batch, or one that was appended with
    it, ends with its offset. The columns are `kafkajit.schema.INDEX_PROBLEM_COLUMNS`.

    Args:
        log: the segment, as for `kafkajit.read_records`.
        index: the .index file: bytes or a path.
        base_offset: the segment's; that of a name by default.

    >>> import kafkajit.testing as kt
    >>> log = kt.batch([kt.Record(value=b"v")] * 3, base_offset=7)
    >>> index = bytes.fromhex("00000002 00000000 00000005 00000040")
    >>> verify_offset_index(log, index, base_offset=7).select(["entry", "problem"]).to_pylist()
    [{'entry': 1, 'problem': 'no batch begins at its position'}]
    """
    source = log if isinstance(log, Source) else Source(log)
    content, path = whole(index)
    base_offset = base_offset_of(path or source.path) if base_offset is None else base_offset
    entries = whole_entries(content, OFFSET_ENTRY)
    offset = entries["relativeOffset"].astype(np.int64) + base_offset
    position = entries["position"].astype(np.int64)
    batches = _Batches.of(source)

    row = np.searchsorted(batches.position, position)
    begins = _at(batches.position, row, -1) == position
    log_offset = np.where(begins, _at(batches.last_offset, row, -1), -1)
    # What was appended at once lies before the next entry's position.
    ends = np.searchsorted(batches.last_offset, offset)
    fits = _at(batches.last_offset, ends, -1) == offset
    fits &= (ends >= row) & (_at(batches.position, ends, 0) < _next(position))

    problem = np.full(entries.size, "", dtype=object)
    problem[begins & ~fits] = "its batch ends with another offset"
    problem[~begins] = "no batch begins at its position"
    problem[position >= source.content.size] = "its position is past the log's end"
    problem[~_grows(offset, base_offset - 1, 1) | ~_grows(position, -1, 1)] = OUT_OF_ORDER
    columns = [
        pa.array(offset),
        pa.array(position),
        pa.array(log_offset, mask=~begins),
    ]
    torn = content.size % OFFSET_ENTRY.itemsize != 0
    return _problems(problem, columns, table_schema(INDEX_PROBLEM_COLUMNS), torn=torn)


def verify_time_index(log: Any, time_index: Any, base_offset: int | None = None) -> pa.Table:
    """List the entries of a .timeindex that do not fit its log, a row each; none if all fit.

    An entry fits if a batch ends with its offset and has its timestamp as the largest, and no
    earlier batch has a later one. The columns are `kafkajit.schema.TIME_INDEX_PROBLEM_COLUMNS`.

    Args:
        log: the segment, as for `kafkajit.read_records`.
        time_index: the .timeindex file: bytes or a path.
        base_offset: the segment's; that of a name by default.

    >>> import kafkajit.testing as kt
    >>> log = kt.batch([kt.Record(value=b"v", timestamp=100)], base_offset=7)
    >>> index = bytes.fromhex("0000000000000065 00000000")
    >>> verify_time_index(log, index, base_offset=7)["problem"].to_pylist()
    ["its batch's largest timestamp is another"]
    """
    source = log if isinstance(log, Source) else Source(log)
    content, path = whole(time_index)
    base_offset = base_offset_of(path or source.path) if base_offset is None else base_offset
    entries = whole_entries(content, TIME_ENTRY)
    timestamp = entries["timestamp"].astype(np.int64)
    offset = entries["relativeOffset"].astype(np.int64) + base_offset
    batches = _Batches.of(source)

    row = np.searchsorted(batches.last_offset, offset)
    found = row < batches.last_offset.size
    log_offset = _at(batches.last_offset, row, -1)
    log_timestamp = _at(batches.max_timestamp, row, -1)
    latest = _at(np.maximum.accumulate(batches.max_timestamp), row, -1)

    problem = np.full(entries.size, "", dtype=object)
    problem[latest > timestamp] = "a batch before its own has a later timestamp"
    problem[log_timestamp != timestamp] = "its batch's largest timestamp is another"
    problem[log_offset != offset] = "no batch ends with its offset"
    problem[~found] = "its offset is past the log's end"
    problem[~_grows(timestamp, -1, 1) | ~_grows(offset, base_offset, 0)] = OUT_OF_ORDER
    schema = table_schema(TIME_INDEX_PROBLEM_COLUMNS)
    columns = [
        pa.array(timestamp).cast(schema.field("timestamp").type),
        pa.array(offset),
        pa.array(log_timestamp, mask=~found).cast(schema.field("logTimestamp").type),
        pa.array(log_offset, mask=~found),
    ]
    return _problems(problem, columns, schema, torn=content.size % TIME_ENTRY.itemsize != 0)


class _Batches(NamedTuple):
    """The batches of a log that entries are compared with, a row each."""

    position: Int64s
    last_offset: Int64s
    max_timestamp: Int64s

    @classmethod
    def of(cls, source: Source) -> _Batches:
        parts: list[tuple[npt.NDArray[Any], ...]] = [(np.empty(0, np.int64),) * 3]
        for framed in Walk(source, mode=DROPMALFORMED).framed():
            parts.append((framed.position, framed.last_offset, framed.field("maxTimestamp")))
            source.forget(int(framed.end[-1]))
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _at(values: Int64s, rows: npt.NDArray[np.intp], otherwise: int) -> Int64s:
    """The values in these rows; `otherwise` for a row behind the last."""
    return np.append(values, otherwise)[np.minimum(rows, values.size)]


def _next(position: Int64s) -> Int64s:
    """The position of the next entry, if it is larger; otherwise the end of all files."""
    following = np.append(position[1:], -1)[: position.size]
    return np.where(following > position, following, np.int64(2**62))


def _grows(values: Int64s, before: int, least: int) -> Mask:
    """Whether each value is at least `least` larger than the one before it."""
    grows: Mask = np.diff(values, prepend=before) >= least
    return grows


def _problems(
    problem: npt.NDArray[np.object_], columns: list[pa.Array], schema: pa.Schema, *, torn: bool
) -> pa.Table:
    rows = np.flatnonzero(problem != "")
    arrays = [pa.array(rows), *(column.take(pa.array(rows)) for column in columns)]
    arrays.append(pa.array(problem[rows].tolist(), pa.string()))
    table = pa.Table.from_arrays(
        [array.cast(field.type) for array, field in zip(arrays, schema, strict=True)], schema=schema
    )
    if not torn:
        return table
    last = pa.Table.from_pylist([{"entry": problem.size, "problem": TORN}], schema=schema)
    return pa.concat_tables([table, last])
