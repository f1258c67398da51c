"""The way back on one screen: Arrow tables → windows of rows → batches → bytes.

table ─▶ windows ─▶ rows ─▶ where batches begin ─▶ headers ─▶ records, checksums
                    └── columns of records ──┘     columns of batches, and what the caller says
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.encode.batch_options import BatchOptions
from kafkajit.encode.control_rows import check_markers, control_types, with_markers
from kafkajit.encode.given_batches import StatedBatches
from kafkajit.encode.planned_batches import Batching
from kafkajit.encode.record_writer import BatchWriter, Plan, Rows
from kafkajit.encode.rows import (
    field_of,
    frozen,
    headers_of,
    milliseconds_of,
    no_field,
    numbers_of,
    rows_counted_from,
)
from kafkajit.encode.windows import pieces_of, rows_of_a_window
from kafkajit.errors import InvalidOffsetError
from kafkajit.format.limits import MAX_INT64


def encode_batches(
    records: pa.Table | pa.RecordBatch, *, batches: pa.Table | None = None, **options: Any
) -> pa.Buffer:
    """Records → record batches, as they stand in a log.

    A record is a row. Its columns are those that `read_records` gives, and none has to be there:
    key, value, headers, offset (else they count up from `base_offset`), timestamp (else now). A
    batch ends where it is full, and wherever a column that speaks of batches has another value:
    baseOffset, position, partitionLeaderEpoch, producerId, producerEpoch, sequence,
    isTransactional, timestampType, magic. A row with a controlType is a marker: COMMIT and ABORT
    need no key and value, coordinatorEpoch says whose they are.

    So what `read_records` gives comes out in the batches that it came from: a log that is not
    compressed, byte for byte. What records do not say of their batches (compaction's gaps, delete
    horizons, batches without records) is said by `batches`. Under LogAppendTime a record has its
    batch's timestamp: what its producer had given it is not in the columns, so there the same
    records come out, not the same bytes. Where a log was compressed its records come out the same.

    What cannot be written is an error before anything is: it says the row, from 0, and the column,
    or the option.

    Args:
        records: a table; columns of bytes may be strings, views or dictionaries, headers a map.
        batches: what `read_record_batches` says of the log that the records are from. A record's
            `position` names its batch; offset and timestamp are needed, too. Records may be
            missing: their batch has fewer. Of the options only compression's go with it.
        compression_type: none, gzip, snappy, lz4 or zstd; else as `batches` says, or none.
        compression_level: as in Kafka's compression.gzip.level and its like
        batch_size: bytes of a batch before compression, its header included; 16,384 where records
            do not know their batches. Where they do, they stay together unless this is given.
        batch_records: records of a batch; as many as there is room for
        base_offset: of the first record, where there is no column offset
        timestamp: milliseconds, where there is no column timestamp, or where one is null
        timestamp_type: 0 CreateTime, 1 LogAppendTime: then `timestamp` is that of all records, and
            without it a batch ends where the column timestamp changes
        partition_leader_epoch: of all batches, whatever a column says; so are the next five
        producer_id: 0 or more for an idempotent producer
        producer_epoch: its epoch
        base_sequence: of the first record; sequence numbers count on from it
        is_transactional: whether they are part of a transaction
        control_type: COMMIT or ABORT: every record is a marker
        coordinator_epoch: of who writes markers
        delete_horizon_ms: when tombstones may go; of all batches
        magic: the message format's version: 2, or 1 or 0, which have neither headers nor producers

    >>> import kafkajit
    >>> log = encode_batches(pa.table({"key": ["a", "b"]}), base_offset=7, compression_type="zstd")
    >>> kafkajit.read_records(log, columns=["offset", "key"]).to_pylist()
    [{'offset': 7, 'key': b'a'}, {'offset': 8, 'key': b'b'}]
    """
    return _joined(list(iter_encoded_batches(records, batches=batches, **options)))


def iter_encoded_batches(
    records: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch],
    *,
    batches: pa.Table | None = None,
    **options: Any,
) -> Iterator[pa.Buffer]:
    """The same, a few megabytes of whole batches at a time; memory stays bounded.

    A record that cannot be written is an error when its turn comes.

    Args:
        records: also an iterable of Arrow record batches, such as `iter_records` gives
        batches: as for `encode_batches`
        **options: as for `encode_batches`

    >>> table = pa.table({"value": [bytes(1000)] * 100})
    >>> sum(buffer.size for buffer in iter_encoded_batches(table))
    101327
    """
    encoder = Encoder(BatchOptions.named(options))
    return encoder.encode(records, batches)


class Encoder:
    """Encodes records; of what comes later, offsets and sequences go on where they ended.

    Args:
        options: of all of them
        writer: of these options, whose buffers several encoders use in turn
    """

    def __init__(self, options: BatchOptions, writer: BatchWriter | None = None) -> None:
        self.next_offset = options.base_offset
        self._options = options
        self._batching = Batching(options)
        self._writer = writer or BatchWriter(options.compression_level)
        self._now = int(time.time() * 1000) if options.timestamp is None else options.timestamp
        # The time of an append is that of all its records.
        self._is_stamped = options.timestamp_type == 1 and options.timestamp is not None

    def encode(
        self,
        records: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch],
        batches: pa.Table | None = None,
    ) -> Iterator[pa.Buffer]:
        """The records' batches, a few megabytes at a time."""
        stated = None if batches is None else StatedBatches(batches, self._options)
        keeps = stated is not None or self._options.batch_size is None
        before = 0
        for piece in pieces_of(records, whole_batches=keeps):
            start, count = 0, rows_of_a_window(piece)
            while start < piece.num_rows:
                window = piece.slice(start, count)
                is_last = start + count >= piece.num_rows
                with rows_counted_from(before + start):
                    rows, plan = self._plan(window, stated, is_last=is_last)
                    taken = int(plan.first_row[-1])
                    if taken == 0:  # the batch is larger than the window
                        count *= 2
                        continue
                    encoded = self._write(rows, plan)
                start += taken
                self.next_offset = int(rows.offset[taken - 1]) + 1
                yield encoded
            before += piece.num_rows
        if stated is not None and stated.has_more:
            rows = self._rows(_NO_RECORDS)
            yield self._write(rows, stated.rest(rows))

    def _plan(
        self, window: pa.RecordBatch, stated: StatedBatches | None, *, is_last: bool
    ) -> tuple[Rows, Plan]:
        """The window's first rows as whole batches; all of them where no more follow."""
        if stated is None:
            rows = self._rows(window)
            return rows, self._batching.plan(window, rows, is_last=is_last)
        for name in ("position", "offset", "timestamp"):
            if name not in window.schema.names:
                raise ValueError(f"with batches, records need the column {name} that they had")
        rows = self._rows(window, nulls_are_now=False)
        position = numbers_of(window.column("position"), "position")
        return rows, stated.plan(rows, position, is_last=is_last)

    def _rows(self, window: pa.RecordBatch, *, nulls_are_now: bool = True) -> Rows:
        names, count = window.schema.names, window.num_rows
        if "offset" in names:
            offset = numbers_of(window.column("offset"), "offset")
        else:
            offset = _counted_up(self.next_offset, count)
        if "timestamp" in names and not self._is_stamped:
            now = self._now if nulls_are_now else None
            timestamp = milliseconds_of(window.column("timestamp"), null=now)
        else:
            timestamp = frozen(np.full(count, self._now))
        types = control_types(window, self._options.control_type)
        if types is not None:
            window = with_markers(window, types, self._options.coordinator_epoch)
            names = window.schema.names
        key, value = (
            field_of(window.column(name), name) if name in names else no_field(count)
            for name in ("key", "value")
        )
        if types is not None:
            check_markers(types, key, value)
        headers = headers_of(window.column("headers")) if "headers" in names else no_field(count, 0)
        return Rows(offset, timestamp, key, value, headers)

    def _write(self, rows: Rows, plan: Plan) -> pa.Buffer:
        buffer = pa.allocate_buffer(self._writer.bound(rows, plan), resizable=True)
        end = self._writer.write(rows, plan, np.frombuffer(buffer, dtype=np.uint8))
        # What compresses well would hold on to much that it does not need.
        buffer.resize(end, shrink_to_fit=True)
        return buffer


_NO_RECORDS = pa.RecordBatch.from_pydict({"key": pa.array([], pa.binary())})


def _counted_up(first: int, count: int) -> npt.NDArray[np.int64]:
    """Offsets of so many records, where they have none."""
    if first + count - 1 > MAX_INT64:
        raise InvalidOffsetError(
            f"its offset would be larger than {MAX_INT64}", row=MAX_INT64 - first + 1
        )
    return frozen(first + np.arange(count))


def _joined(parts: list[pa.Buffer]) -> pa.Buffer:
    if len(parts) == 1:
        return parts[0]
    joined = pa.allocate_buffer(sum(part.size for part in parts))
    out, end = np.frombuffer(joined, dtype=np.uint8), 0
    for at, part in enumerate(parts):
        out[end : end + part.size] = np.frombuffer(part, dtype=np.uint8)
        end += part.size
        parts[at] = None  # its memory is the next one's
    return joined
