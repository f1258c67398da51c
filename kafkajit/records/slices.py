"""Reads a large compressed batch in slices of its records.

A few kilobytes may become 256 MiB of the smallest records or headers, and these gigabytes of
columns. All records are checked before the first slice is read: a damaged batch has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.errors import OK, DecompressionLimitError
from kafkajit.kernel import kernel
from kafkajit.records.columns import ColumnMemory, Reading, Wanted
from kafkajit.records.default_records import read_default_records
from kafkajit.storage.source import Bytes, Int64s

# The records and bytes of a slice at most, but it has a record.
_MOST_RECORDS = 1 << 16
SLICE_BYTES = 8 << 20
# The headers of one record at most, if headers are asked for: as many as a slice has room for.
MOST_HEADERS = SLICE_BYTES // 2
_NO_SLICES = np.empty((0, 3), dtype=np.int64)


class Slices(NamedTuple):
    """The beginning, the end and the number of records of each slice of a batch; or its error."""

    bounds: Int64s
    refused: Reading | None = None


def check_slices(
    content: Bytes, extent: npt.NDArray[np.void], is_control: bool, memory: ColumnMemory
) -> Slices:
    """Check the records of the batch at `extent`, which has one row, and cut it into slices.

    Raises:
        DecompressionLimitError: a record has more headers than there is room for, or the batch
            has markers, which are small and checked together.
    """
    if is_control:
        raise DecompressionLimitError(f"A control batch holds more than {SLICE_BYTES} bytes")
    checked = read_default_records(content, extent, ColumnMemory(Wanted()))
    if checked.status != OK:
        return Slices(_NO_SLICES, replace(checked, columns=memory.columns(0, 0), rows=0))
    if memory.may_hold is not None:
        places = (np.ascontiguousarray(extent[name]) for name in ("start", "end"))
        if not memory.may_hold(content, *places).any():
            return Slices(_NO_SLICES)
    bounds = _bounds(content, extent)
    if memory.wanted.headers:
        _check_headers(content, extent, bounds)
    return Slices(bounds)


def read_slices(
    content: Bytes, extent: npt.NDArray[np.void], slices: Slices, memory: ColumnMemory
) -> Iterator[tuple[Reading, bool]]:
    """Read a batch into columns slice by slice; with each, whether more slices follow.

    An error, and a batch that `memory` does not ask for, is one reading without records.
    """
    if not slices.bounds.size:
        none = Reading(memory.columns(0, 0), 0, np.zeros(1, dtype=np.int64), OK, 0, 0, 1)
        yield slices.refused or none, False
    own = ColumnMemory(memory.wanted, memory.allocate)
    for row, (start, end, count) in enumerate(slices.bounds.tolist(), 1):
        reading = read_default_records(content, _part(extent, start, end, count), own)
        yield reading, row < len(slices.bounds)


def _part(extent: npt.NDArray[np.void], start: int, end: int, count: int) -> npt.NDArray[np.void]:
    part = extent.copy()
    part["start"], part["end"], part["count"] = start, end, count
    return part


def _check_headers(content: Bytes, extent: npt.NDArray[np.void], bounds: Int64s) -> None:
    """Raise if a record has more headers than a slice may have; one of these is alone in it."""
    memory = ColumnMemory(Wanted(fields=True))
    for start, end, count in bounds[bounds[:, 1] - bounds[:, 0] > SLICE_BYTES].tolist():
        found = read_default_records(content, _part(extent, start, end, count), memory)
        headers = int(found.columns.fields["headersCount"][0])
        if headers > MOST_HEADERS:
            raise DecompressionLimitError(
                f"A record of the batch has {headers} headers, more than {MOST_HEADERS}"
            )


def _bounds(content: Bytes, extent: npt.NDArray[np.void]) -> Int64s:
    """The beginning, the end and the number of records of each slice of a sound batch."""
    start, end, count = (int(extent[name][0]) for name in ("start", "end", "count"))
    # Two slices in a row have more bytes or records than one may have.
    most = 2 * ((end - start) // SLICE_BYTES + count // _MOST_RECORDS) + 2
    bounds = np.empty((most, 3), dtype=np.int64)
    return bounds[: _find_bounds(content, start, end, bounds)]


@kernel
def _find_bounds(content, start, end, bounds):
    row, position = np.int64(0), np.int64(start)
    first, count = position, np.int64(0)
    while position < end:
        after = _behind_record(content, position)
        if count > 0 and (count == _MOST_RECORDS or after - first > SLICE_BYTES):
            bounds[row, 0], bounds[row, 1], bounds[row, 2] = first, position, count
            row += 1
            first, count = position, np.int64(0)
        position = after
        count += 1
    if count > 0:
        bounds[row, 0], bounds[row, 1], bounds[row, 2] = first, end, count
        row += 1
    return row


@kernel
def _behind_record(content, position):
    """The end of a sound record, by the length in front of it."""
    length, shift = np.int64(0), np.int64(0)
    byte = np.int64(0x80)
    while byte >= 0x80:
        byte = np.int64(content[position])
        length |= (byte & 0x7F) << shift
        shift += 7
        position += 1
    return position + (length >> 1)
