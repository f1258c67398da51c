"""The log that records come from: of a batch whose records are unchanged, its bytes are copied.

source ─▶ records of the same batches ─▶ compared with the rows ─▶ bytes, or batches to write
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.encode.batch_plan import BatchPlan, RecordRows
from kafkajit.encode.encode_options import EncodeOptions
from kafkajit.encode.rows import numbers_of
from kafkajit.kernel import kernel
from kafkajit.places.locations import opened_source
from kafkajit.reader import SegmentReader, read_record_batches
from kafkajit.schema import record_schema
from kafkajit.storage.source import Int64s, Mask

# The columns that make up a record, and the position of its batch.
_COLUMNS = (
    "position",
    "offset",
    "timestamp",
    "key",
    "value",
    "headers",
    "controlType",
    "coordinatorEpoch",
)


class SourceBatches:
    """The batches of a log, to copy them.

    Args:
        source: as for `read_records`.
        options: of the encoding, without a codec.
    """

    def __init__(self, source: Any, options: EncodeOptions) -> None:
        if options.codec is not None:
            raise ValueError(
                "source keeps the compression of each batch: leave compression_type out, or pass "
                "batches instead of source"
            )
        self.table = read_record_batches(source)
        self._source = opened_source(source)
        self._schema = record_schema(_COLUMNS)

    def parts(
        self, rows: RecordRows, plan: BatchPlan, rows_of: Callable[[pa.RecordBatch], RecordRows]
    ) -> Iterator[tuple[BatchPlan, pa.Buffer | None]]:
        """Yield the batches of a plan in order: some to write, or the bytes of some to copy.

        Args:
            rows: of the records.
            plan: with a batch of the source for each of these.
            rows_of: makes rows of the source's records.
        """
        assert plan.position is not None
        if not plan.header.size:
            return
        ends = plan.position + self._sizes(plan.position)
        is_same = self._are_same(rows, plan, int(ends[-1]), rows_of)
        # Messages of v0 and v1 without their records are not in the plan.
        follows = plan.position[1:] == ends[:-1]
        changes = (is_same[1:] != is_same[:-1]) | (is_same[1:] & ~follows)
        cuts = [0, *(np.flatnonzero(changes) + 1).tolist(), plan.header.size]
        for first, behind in pairwise(cuts):
            content = None
            if is_same[first]:
                copied = self._source.content[plan.position[first] : ends[behind - 1]]
                content = pa.py_buffer(copied.tobytes())
            part = BatchPlan(plan.header[first:behind], plan.first_row[first : behind + 1])
            yield part, content
        self._source.forget(int(ends[-1]))

    def _sizes(self, positions: Int64s) -> Int64s:
        every = self.table["position"].to_numpy()
        sizes: Int64s = self.table["sizeInBytes"].to_numpy()[np.searchsorted(every, positions)]
        return sizes

    def _are_same(
        self,
        rows: RecordRows,
        plan: BatchPlan,
        end: int,
        rows_of: Callable[[pa.RecordBatch], RecordRows],
    ) -> Mask:
        """Whether each batch has all its records as they are in the source, and no others."""
        assert plan.position is not None
        self._source.load(end)
        reader = SegmentReader(self._source.shared(), start=int(plan.position[0]), end=end)
        counts = np.zeros(plan.header.size, dtype=np.int64)
        is_same = np.ones(plan.header.size, dtype=np.bool_)
        for theirs in reader.records(self._schema):
            position = numbers_of(theirs.column("position"), "position")
            batch = np.searchsorted(plan.position, position)
            there = rows_of(theirs)
            _compare(
                np.where(plan.position[batch] == position, batch, -1),
                plan.first_row,
                (rows.offset, rows.timestamp, rows.key, rows.value, rows.headers),
                (there.offset, there.timestamp, there.key, there.value, there.headers),
                counts,
                is_same,
            )
        same: npt.NDArray[np.bool_] = is_same & (counts == np.diff(plan.first_row))
        return same


@kernel
def _compare(batch, first_row, ours, theirs, counts, is_same):
    """Compare records of the source with the rows; mark the batches of those that differ.

    batch: the batch of each record, or -1; counts: the records of each batch so far.
    """
    for there in range(batch.size):
        at = batch[there]
        if at < 0:
            continue
        here = first_row[at] + counts[at]
        counts[at] += 1
        if here >= first_row[at + 1] or not _are_equal(ours, here, theirs, there):
            is_same[at] = False


@kernel
def _are_equal(ours, here, theirs, there):
    """Whether two records are equal."""
    offset, timestamp, key, value, headers = ours
    other_offset, other_timestamp, other_key, other_value, other_headers = theirs
    if offset[here] != other_offset[there] or timestamp[here] != other_timestamp[there]:
        return False
    if not _have_same_bytes(key, here, other_key, there, np.int64(-1)):
        return False
    if not _have_same_bytes(value, here, other_value, there, np.int64(-1)):
        return False
    # A size of 1 is a count of 0.
    return _have_same_bytes(headers, here, other_headers, there, np.int64(1))


@kernel
def _have_same_bytes(ours, here, theirs, there, least):
    """Whether two byte strings are equal; sizes up to `least` are the same."""
    data, starts, sizes = ours
    other_data, other_starts, other_sizes = theirs
    size = max(sizes[here], least)
    if size != max(other_sizes[there], least):
        return False
    if size == least:
        return True
    start, other_start = starts[here], other_starts[there]
    i = np.int64(0)
    while i < size and data[start + i] == other_data[other_start + i]:
        i += 1
    return i == size
