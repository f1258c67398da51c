"""The way back on one screen: Arrow tables → windows of rows → batches → bytes.

table ─▶ windows ─▶ rows ─▶ where batches begin ─▶ headers ─▶ records, checksums
                    └── columns of records ──┘     columns of batches, and what the caller says
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kafkajit.batching import BATCH_NAMES, Batching, BatchOptions, StatedBatches
from kafkajit.errors import InvalidRecordError
from kafkajit.records.control_records import END_TRANSACTION, end_transaction_marker
from kafkajit.records.encode import BatchWriter, Plan, Rows
from kafkajit.rows import (
    field_of,
    headers_of,
    milliseconds_of,
    no_field,
    numbers_of,
    rows_counted_from,
)
from kafkajit.schema import RECORD_COLUMNS, check_columns

# Rows that are laid out at a time: their positions and sizes stay in the processor's cache.
_WINDOW_ROWS = 65536
# Tables of smaller pieces than this are put together first.
_FEW_ROWS = 4096


def encode_batches(
    records: pa.Table | pa.RecordBatch, *, batches: pa.Table | None = None, **options: Any
) -> pa.Buffer:
    """Records → record batches of v2, as they stand in a log.

    A record is a row. Its columns are those that `read_records` gives, and none has to be there:
    key, value, headers, offset (else they count up from `base_offset`), timestamp (else now). A
    batch ends where it is full, and wherever a column that speaks of batches has another value:
    baseOffset, position, partitionLeaderEpoch, producerId, producerEpoch, sequence,
    isTransactional, timestampType. A row with a controlType is a marker: COMMIT and ABORT need no
    key and value, coordinatorEpoch says whose they are.

    So what `read_records` gives comes out in the batches that it came from: a log that is not
    compressed, byte for byte. What records do not say of their batches (compaction's gaps, delete
    horizons, batches without records) is said by `batches`.

    Args:
        records: a table; columns of bytes may be strings, views or dictionaries, headers a map.
        batches: what `read_record_batches` says of the log that the records are from. A record's
            `position` names its batch. Records may be missing: their batch has fewer.
        compression_type: none, gzip, snappy, lz4 or zstd; else as `batches` says, or none.
        compression_level: as in Kafka's compression.gzip.level and its like
        batch_size: bytes of a batch before compression, its header included; 16,384 where records
            do not know their batches. Where they do, they stay together unless this is given.
        batch_records: records of a batch; as many as there is room for
        base_offset: of the first record, where there is no column offset
        timestamp: milliseconds, where there is no column timestamp, or where one is null
        timestamp_type: 0 CreateTime, 1 LogAppendTime: then `timestamp` is that of the append
        partition_leader_epoch, producer_id, producer_epoch, base_sequence, is_transactional,
        control_type, coordinator_epoch: of all batches, whatever columns say
        delete_horizon_ms: when tombstones may go; of all batches

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

    Args:
        records: also an iterable of Arrow record batches, such as `iter_records` gives
        batches: as for `encode_batches`
        **options: as for `encode_batches`

    >>> table = pa.table({"value": [bytes(1000)] * 100_000})
    >>> sizes = [buffer.size for buffer in iter_encoded_batches(table)]
    >>> len(sizes) > 1, sum(sizes)
    (True, 101281250)
    """
    encoder = Encoder(BatchOptions(**options))
    return encoder.encode(_record_batches(records), batches)


class Encoder:
    """Encodes records; of what comes later, offsets and sequences go on where they ended."""

    def __init__(self, options: BatchOptions) -> None:
        self.next_offset = options.base_offset
        self._options = options
        self._batching = Batching(options)
        self._writer = BatchWriter(options.compression_level)
        self._now = int(time.time() * 1000) if options.timestamp is None else options.timestamp

    def encode(
        self, records: Iterable[pa.RecordBatch], batches: pa.Table | None = None
    ) -> Iterator[pa.Buffer]:
        """The records' batches, a few megabytes at a time."""
        stated = None if batches is None else StatedBatches(batches, self._options.codec)
        chunks = _of_some_rows(records)
        if stated is not None or self._options.batch_size is None:
            chunks = _of_whole_batches(chunks)
        before = 0
        for chunk in chunks:
            check_columns(chunk.schema.names, RECORD_COLUMNS)
            start, count = 0, _WINDOW_ROWS
            while start < chunk.num_rows:
                window = chunk.slice(start, count)
                is_last = start + count >= chunk.num_rows
                with rows_counted_from(before + start):
                    rows, plan = self._plan(window, stated, is_last=is_last)
                taken = int(plan.first_row[-1])
                if taken == 0:  # the batch is larger than the window
                    count *= 2
                    continue
                start += taken
                self.next_offset = int(rows.offset[taken - 1]) + 1
                yield self._write(rows, plan)
            before += chunk.num_rows
        if stated is not None:
            rows = self._rows(_NO_RECORDS)
            yield self._write(rows, stated.rest(rows))

    def _plan(
        self, window: pa.RecordBatch, stated: StatedBatches | None, *, is_last: bool
    ) -> tuple[Rows, Plan]:
        """The window's first rows as whole batches; all of them where no more follow."""
        rows = self._rows(window)
        if stated is None:
            return rows, self._batching.plan(window, rows, is_last=is_last)
        if "position" not in window.schema.names:
            raise ValueError("with batches, records need a column position that names their batch")
        position = numbers_of(window.column("position"), "position")
        return rows, stated.plan(rows, position, is_last=is_last)

    def _rows(self, window: pa.RecordBatch) -> Rows:
        names, count = window.schema.names, window.num_rows
        if "offset" in names:
            offset = numbers_of(window.column("offset"), "offset")
        else:
            offset = np.arange(self.next_offset, self.next_offset + count)
        if "timestamp" in names:
            timestamp = milliseconds_of(window.column("timestamp"), null=self._now)
        else:
            timestamp = np.full(count, self._now)
        if "controlType" in names or self._options.control_type is not None:
            window = _with_markers(window, self._options)
            names = window.schema.names
        key, value = (
            field_of(window.column(name), name) if name in names else no_field(count)
            for name in ("key", "value")
        )
        headers = headers_of(window.column("headers")) if "headers" in names else no_field(count, 0)
        return Rows(offset, timestamp, key, value, headers)

    def _write(self, rows: Rows, plan: Plan) -> pa.Buffer:
        buffer = pa.allocate_buffer(self._writer.bound(rows, plan))
        end = self._writer.write(rows, plan, np.frombuffer(buffer, dtype=np.uint8))
        return buffer.slice(0, end)


_NO_RECORDS = pa.RecordBatch.from_pydict({"key": pa.array([], pa.binary())})


def _record_batches(records: Any) -> Iterable[pa.RecordBatch]:
    if isinstance(records, pa.RecordBatch):
        return [records]
    if isinstance(records, pa.Table):
        batches: list[pa.RecordBatch] = records.to_batches()
        return batches
    given: Iterable[pa.RecordBatch] = records
    return given


def _of_some_rows(records: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Small pieces put together: a batch does not end where one of them does."""
    few: list[pa.RecordBatch] = []
    for piece in records:
        if piece.num_rows >= _FEW_ROWS and not few:
            yield piece
        elif piece.num_rows:
            few.append(piece)
            if sum(piece.num_rows for piece in few) >= _WINDOW_ROWS:
                yield pa.concat_batches(few)
                few = []
    if few:
        yield pa.concat_batches(few)


def _of_whole_batches(chunks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pieces cut anew where the batches end that records name."""
    held: list[pa.RecordBatch] = []  # its last batch may go on, and if it is many, is all of it
    last_batch, last_names = 0, None
    before = 0
    for chunk in chunks:
        names = [name for name in BATCH_NAMES if name in chunk.schema.names]
        if not names:
            yield chunk
            continue
        with rows_counted_from(before):
            columns = [numbers_of(chunk.column(name), name) for name in names]
        before += chunk.num_rows
        begins = np.any([column[1:] != column[:-1] for column in columns], axis=0)
        begins = np.append(0, np.flatnonzero(begins) + 1)
        if last_names == [column[0] for column in columns]:
            if last_batch:
                yield held[0].slice(0, last_batch)
                held[0] = held[0].slice(last_batch)
                last_batch = 0
            cut = int(begins[1]) if begins.size > 1 else chunk.num_rows
            held.append(chunk.slice(0, cut))
            chunk, begins = chunk.slice(cut), begins[1:] - cut
        if chunk.num_rows:
            if held:
                yield _together(held)
            held, last_batch = [chunk], int(begins[-1])
        last_names = [column[-1] for column in columns]
    if held:
        yield _together(held)


def _together(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)


def _with_markers(window: pa.RecordBatch, options: BatchOptions) -> pa.RecordBatch:
    """The records with the keys and values of markers that have none."""
    names, count = window.schema.names, window.num_rows

    def column(name: str, stated: Any) -> list[Any]:
        if stated is not None or name not in names:
            return [stated] * count
        values: list[Any] = window.column(name).to_pylist()
        return values

    types = column("controlType", options.control_type)
    if not any(types):
        return window
    epochs = column("coordinatorEpoch", options.coordinator_epoch)
    keys, values = column("key", None), column("value", None)
    for row, control_type in enumerate(types):
        if control_type is None or keys[row] is not None:
            continue
        if control_type not in END_TRANSACTION:
            raise InvalidRecordError(
                f"a record of type {control_type} needs the key and value that it has in a log "
                f"(row {row})"
            )
        keys[row], values[row] = end_transaction_marker(control_type, epochs[row] or 0)
    kept = [name for name in names if name not in ("key", "value")]
    arrays = [pa.array(keys, pa.binary()), pa.array(values, pa.binary())]
    return pa.RecordBatch.from_arrays(
        [*arrays, *map(window.column, kept)], names=["key", "value", *kept]
    )


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
