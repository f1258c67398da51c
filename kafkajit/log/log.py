"""A partition's log opened for lookups that otherwise need a broker.

Answers to the reading half of Kafka's UnifiedLog: which segment has an offset, which records follow
it, which offset has a timestamp, and how far consumers may read.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cached_property

import numpy as np
import pyarrow as pa

from kafkajit.errors import (
    CorruptSnapshotError,
    InvalidOffsetError,
    OffsetOutOfRangeError,
)
from kafkajit.format.codecs import DEFAULT_MAX_DECOMPRESSED_BYTES
from kafkajit.format.limits import MAX_INT64
from kafkajit.format.moment import of_datetime
from kafkajit.format.notebook import html_table
from kafkajit.format.ranges import Range
from kafkajit.index.time_index import TimestampOffset
from kafkajit.log.isolation import find_isolation, first_open_offset
from kafkajit.log.open_segment import OpenSegment, logger
from kafkajit.log.overlaps import end_of
from kafkajit.log.segment import Segment, segments_of
from kafkajit.log.tiered_segments import joined
from kafkajit.places.location import READABLE_NAME
from kafkajit.places.locations import find_segments
from kafkajit.places.private_keys import PrivateKeys
from kafkajit.reader import SegmentReader
from kafkajit.records.transactions import AbortedTransactions
from kafkajit.schema import (
    PRODUCER_COLUMNS,
    RECORD_COLUMNS,
    check_columns,
    record_schema,
    table_schema,
)
from kafkajit.state.checkpoints import START_OFFSETS, offsets_in
from kafkajit.state.producer_snapshot import SNAPSHOT_NAME, parse_producer_snapshot
from kafkajit.storage.source import Source, as_bytes
from kafkajit.storage.stored_file import StoredFile
from kafkajit.walk.damage import FAILFAST, Stretch, mode_named
from kafkajit.walk.selection import Selection

# Stretches up to this size are read from the mapping for lookups, larger ones in one go.
_LEAP = 1 << 20
_MOST_HEADERS = 8 << 20


def checkpointed_offset(file: StoredFile | None, topic: str | None, partition: int | None) -> int:
    """A partition's offset in a checkpoint of a log.dirs folder, or 0 without an entry.

    >>> checkpointed_offset(None, "orders", 0)
    0
    """
    if file is None:
        return 0
    return max(0, offsets_in(file).get((topic, partition), 0))


class Log:
    """A partition's log at a path or URI: a folder with its segments, such as orders-0.

    If the indexes fit the log, lookups use them and read little of the log. A Log does not see
    records that a broker appends later. Modes and limits are those of `kafkajit.read_records`.

    >>> import kafkajit.testing as kt
    >>> log = Log(f"{kt.SAMPLE}/payments-0")
    >>> log.start_offset, log.end_offset
    (0, 27)
    >>> log.read(20, max_records=1, columns=["offset", "key"]).to_pylist()
    [{'offset': 20, 'key': b'Ada'}]
    """

    def __init__(
        self,
        location: str | os.PathLike[str],
        *,
        mode: str = FAILFAST,
        check_crcs: bool = True,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
        private_keys: Mapping[str, str] | None = None,
    ) -> None:
        keys = PrivateKeys.of(private_keys)
        logs, files = find_segments([os.fspath(location)], keys=keys)
        folders = {log.folder for log in logs}
        if len(folders) > 1:
            raise ValueError(
                f"{location} has {len(folders)} partitions: a Log is one of them, such as "
                f"{min(folders)}"
            )
        if len(files) == 1:  # a segment by itself: its indexes are beside it
            files |= {file.path: file for file in logs[0].beside()}
        live = [log for log in logs if READABLE_NAME.fullmatch(log.name)]
        self.segments: list[Segment] = joined(segments_of(live or logs, files), files)
        self._snapshots = [file for file in files.values() if SNAPSHOT_NAME.fullmatch(file.name)]
        self.topic = self.segments[0].path.topic
        self.partition = self.segments[0].path.partition
        self._mode = mode_named(mode)
        self._check_crcs = check_crcs
        self._max_decompressed_bytes = max_decompressed_bytes
        self._bases = [max(one.base_offset, one.cut.first) for one in self.segments]
        if self._bases[-1] > MAX_INT64:
            raise InvalidOffsetError(
                "the segment's name is not an offset: `kafkajit repair` removes it from the log",
                path=self.segments[-1].log.path,
            )
        self._opened = [OpenSegment(segment) for segment in self.segments]

    def __repr__(self) -> str:
        return f"Log({self.segments[0].log.folder!r})"

    def _repr_html_(self) -> str:
        rows = [(s.log.name, s.offsets.first, s.log.size) for s in self.segments]
        return html_table(repr(self), ["segment", "first offset", "bytes"], rows)

    def segment_for(self, offset: int) -> Segment:
        """The segment for an offset: the last one that does not begin behind it."""
        return self.segments[self._row(offset)]

    @cached_property
    def start_offset(self) -> int:
        """The first offset that may be read.

        This is the first segment's offset, or a later one from log-start-offset-checkpoint in the
        parent folder: the segment may still hold deleted records before that offset.
        """
        file = self.segments[0].log.above(START_OFFSETS)
        return max(self._bases[0], checkpointed_offset(file, self.topic, self.partition))

    @cached_property
    def end_offset(self) -> int:
        """The offset that the next record would have."""
        for opened in reversed(self._opened):
            last = opened.last_offset(self._mode)
            if last is not None:
                # Truncation leaves an empty segment, which may begin behind a gap.
                return max(min(last, opened.segment.cut.last) + 1, self._bases[-1])
        return self._bases[-1]

    @cached_property
    def last_stable_offset(self) -> int:
        """The offset before which every transaction has ended; read_committed stops there.

        The newest snapshot of producers lists the transactions that were open then, so only the
        batches appended since are read.
        """
        producers, since = self._snapshot
        later = self._opened[self._row(since) :]
        logs = ((*opened.tail(since), opened.segment.cut) for opened in later)
        first_open = first_open_offset(producers, logs, since, self._mode)
        return self.end_offset if first_open is None else first_open

    @cached_property
    def _snapshot(self) -> tuple[pa.Table, int]:
        """The producers of the newest readable snapshot, and its offset."""
        for file in sorted(self._snapshots, key=lambda file: file.name, reverse=True):
            since = int(file.name[:20])
            try:
                if since <= self.end_offset:
                    return parse_producer_snapshot(as_bytes(file.read()), file.path), since
            except CorruptSnapshotError as error:
                logger.warning("%s: transactions are looked for without it", error)
        return table_schema(PRODUCER_COLUMNS).empty_table(), self._bases[0]

    def aborted_transactions(self, first: int, last: int) -> pa.Table:
        """The aborted transactions with an offset from `first` to `last`."""
        found = self._isolation[0].within(first, last)
        order = np.argsort(found.last_offset, kind="stable")
        names = ("producerId", "firstOffset", "lastOffset")
        return pa.table([column[order] for column in found], names=names)

    def read(
        self,
        offset: int,
        max_records: int = 500,
        *,
        columns: Iterable[str] | None = None,
    ) -> pa.Table:
        """At most `max_records` records from an offset on, as `kafkajit.read_records` returns them.

        If compaction has removed the offset, the records begin behind it. At the log's end the
        table is empty. An offset before the log's start or behind its end raises an
        OffsetOutOfRangeError.
        """
        if max_records < 1:
            raise ValueError(f"max_records must be at least 1, not {max_records}")
        names = RECORD_COLUMNS if columns is None else check_columns(columns, RECORD_COLUMNS)
        schema = record_schema(names)
        found: list[pa.RecordBatch] = []
        if offset >= self.start_offset:
            missing, position = max_records, offset
            row = self._row(position)
            while row < len(self._opened):
                opened = self._opened[row]
                for rows in self._records(opened, Selection(Range(position)), schema, missing):
                    found.append(rows[:missing])
                    missing -= found[-1].num_rows
                    if missing == 0:
                        return pa.Table.from_batches(found, schema=schema)
                last = self._last_offset(row)
                position = position if last is None else max(position, last + 1)
                row = max(row + 1, self._row(position))
        if not found and not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRangeError(
                f"Received request for offset {offset} for partition "
                f"{self.topic}-{self.partition}, but we only have log segments from "
                f"{self.start_offset} upto {self.end_offset}",
                path=self.segments[0].log.folder,
            )
        return pa.Table.from_batches(found, schema=schema)

    def offset_for_timestamp(self, timestamp: int | datetime) -> TimestampOffset | None:
        """Find the first record with this timestamp or a later one, or None.

        Args:
            timestamp: milliseconds since 1970, or a datetime, which is UTC unless it has a zone.
        """
        if isinstance(timestamp, datetime):
            timestamp = of_datetime(timestamp)
        schema = record_schema(["timestamp", "offset"])
        for opened in self._opened:
            later = Selection(Range(self.start_offset), Range(timestamp))
            for rows in self._records(opened, later, schema, 1):
                if rows.num_rows:
                    first = (rows[name].cast(pa.int64())[0].as_py() for name in schema.names)
                    return TimestampOffset(*first)
        return None

    def _last_offset(self, row: int) -> int | None:
        """The last offset of a segment; the next one is looked up as a consumer does it.

        It is not needed of the last segment.
        """
        if row == len(self._opened) - 1:
            return None
        segment = self.segments[row]
        return end_of(segment, self.segments[row + 1]) if segment.cut.is_everything else None

    def _row(self, offset: int) -> int:
        return max(bisect_right(self._bases, offset) - 1, 0)

    @cached_property
    def _isolation(self) -> tuple[AbortedTransactions, int | None]:
        logs = [(one.log, one.transaction_index, one.cut) for one in self.segments]
        return find_isolation(logs, self._mode, check_crcs=self._check_crcs)

    def _records(
        self, opened: OpenSegment, asked: Selection, schema: pa.Schema, count: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield a segment's selected records; the first batches with any are read by themselves."""
        asked = replace(asked, offsets=asked.offsets & opened.segment.cut)
        size = opened.segment.log.size
        start = opened.stretch(asked).start
        while start < size:
            stretch = self._next(opened, start, asked, count)
            reader = SegmentReader(
                self._source(opened, stretch),
                mode=self._mode,
                selection=asked,
                start=stretch.start,
                end=stretch.end,
            )
            yield from reader.records(
                schema,
                check_crcs=self._check_crcs,
                max_decompressed_bytes=self._max_decompressed_bytes,
            )
            start = stretch.end

    def _next(self, opened: OpenSegment, start: int, asked: Selection, count: int) -> Stretch:
        """The stretch of batches from `start` on that may have `count` selected records."""
        size = opened.segment.log.size
        window = 8 << 10
        begin = None
        position = start
        while self._mode == FAILFAST and position < size:
            batches = opened.batches_at(position, window)
            if not len(batches):
                break
            window = min(2 * window, _MOST_HEADERS)
            rows = np.flatnonzero(asked.batches(batches))
            if rows.size:
                begin = int(batches.position[rows[0]]) if begin is None else begin
                counts = np.maximum(batches.field("recordsCount"), 1).cumsum()
                counts -= counts[rows[0]] - 1
                enough = np.flatnonzero(counts >= count)
                if enough.size:
                    return Stretch(begin, int(batches.end[enough[0]]))
                count -= int(counts[-1])
            position = int(batches.end[-1])
            if begin is not None and position - begin > _MOST_HEADERS:
                return Stretch(begin, position)
        # The rest is not a batch, or the mode is one that only a reader implements.
        return Stretch(position if begin is None else begin, size)

    def _source(self, opened: OpenSegment, stretch: Stretch) -> Source:
        if opened.segment.log.filesystem is None and stretch.end - stretch.start <= _LEAP:
            return opened.source
        return opened.segment.log.open(*stretch)
