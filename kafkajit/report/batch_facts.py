"""The records of batches, with their offsets and times: from headers, where these have them.

The header of a compressed set of v0 or v1 messages has its last offset and its latest time alone,
and that of a batch of which another segment has a part tells of the whole: such batches are
decoded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kafkajit.log.segment import Segment
from kafkajit.reader import SegmentReader
from kafkajit.records.batches import Batches
from kafkajit.schema import record_schema
from kafkajit.storage.source import Int64s, Mask
from kafkajit.walk.damage import PERMISSIVE
from kafkajit.walk.selection import Selection

_LOG_APPEND_TIME = 1
_SCHEMA = record_schema(["offset", "timestamp"])


class BatchFacts(NamedTuple):
    """An element for each batch."""

    records: Int64s  # without markers
    first_offset: Int64s
    first_timestamp: Int64s  # of the first record; below 0 if it has none
    last_timestamp: Int64s  # the latest of the records; below 0 if they have none
    is_unknown: Mask  # a set that cannot be decoded, whose first offset nothing tells


def facts_of(batches: Batches, segment: Segment) -> BatchFacts:
    """The facts about the batches of a segment, and about those of their records that it serves."""
    first_offset = batches.field("baseOffset").astype(np.int64)
    last = batches.field("maxTimestamp").astype(np.int64)
    # A broker's time is that of all records, and a cleaner puts the time at which tombstones go
    # where the first record's was.
    is_lost = (batches.timestamp_type == _LOG_APPEND_TIME) | batches.has_delete_horizon
    base = batches.field("baseTimestamp").astype(np.int64)
    first = np.where(is_lost | (base < 0), last, np.minimum(base, last))
    records = np.maximum(batches.field("recordsCount").astype(np.int64), 0)
    is_cut = (first_offset < segment.cut.first) | (batches.last_offset > segment.cut.last)
    is_unknown = batches.is_message_set.copy()
    for row in np.flatnonzero(batches.is_message_set | is_cut).tolist():
        offsets, timestamps = _decoded(batches, segment, row)
        records[row] = offsets.size
        if offsets.size:
            is_unknown[row] = False
            first_offset[row] = offsets.min()
            timestamps = timestamps[timestamps >= 0]
            first[row], last[row] = timestamps.min(initial=2**63 - 1), timestamps.max(initial=-1)
            first[row] = min(first[row], last[row])
    for column, nothing in ((records, 0), (first, -1), (last, -1)):
        column[batches.is_control] = nothing
    return BatchFacts(records, first_offset, first, last, is_unknown)


def _decoded(batches: Batches, segment: Segment, row: int) -> tuple[Int64s, Int64s]:
    """The offsets and the timestamps of the records of one batch that the segment serves."""
    start, end = int(batches.position[row]), int(batches.end[row])
    selection = Selection(offsets=segment.cut)
    source = segment.log.open(start, end)
    reader = SegmentReader(source, mode=PERMISSIVE, start=start, end=end, selection=selection)
    rows = [*reader.records(_SCHEMA)]
    table = pa.Table.from_batches(rows, _SCHEMA)
    table = table.filter(table["offset"].is_valid())
    timestamps = table["timestamp"].cast(pa.int64()).fill_null(-1)
    return table["offset"].to_numpy().astype(np.int64), timestamps.to_numpy().astype(np.int64)
