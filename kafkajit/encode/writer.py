"""Encoding on one screen: Arrow tables → windows of rows → batches → bytes.

table ─▶ windows ─▶ rows ─▶ batches ─▶ headers ─▶ records, checksums
                    └── columns of records ──┘    columns of batches, and the options
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.encode.batch_plan import BatchPlan, RecordRows
from kafkajit.encode.control_rows import check_markers, control_types, with_markers
from kafkajit.encode.encode_options import CompressionType, ControlType, EncodeOptions
from kafkajit.encode.given_batches import GivenBatches
from kafkajit.encode.planned_batches import BatchPlanner
from kafkajit.encode.record_writer import BatchWriter
from kafkajit.encode.rows import (
    byte_strings_of,
    frozen,
    headers_of,
    milliseconds_of,
    missing_column,
    numbers_of,
    rows_counted_from,
)
from kafkajit.encode.source_batches import SourceBatches
from kafkajit.encode.windows import chunks_of, window_rows
from kafkajit.errors import InvalidOffsetError
from kafkajit.format.limits import MAX_INT64


# These two functions exceed the house's limit of 12 parameters. Like pyarrow's writers they spell
# every option, keyword-only and flat, for editors, type checkers and help().
def encode_batches(
    records: pa.Table | pa.RecordBatch,
    *,
    batches: pa.Table | None = None,
    source: Any = None,
    compression_type: CompressionType | None = None,
    compression_level: int | None = None,
    batch_size: int | None = None,
    batch_records: int | None = None,
    base_offset: int = 0,
    timestamp: int | None = None,
    timestamp_type: Literal[0, 1] | None = None,
    partition_leader_epoch: int | None = None,
    producer_id: int | None = None,
    producer_epoch: int | None = None,
    base_sequence: int | None = None,
    is_transactional: bool | None = None,
    control_type: ControlType | None = None,
    coordinator_epoch: int | None = None,
    delete_horizon_ms: int | None = None,
    magic: Literal[0, 1, 2] | None = None,
) -> pa.Buffer:
    """Encode records as record batches, the bytes of a log segment.

    Each row is a record. The columns are those that `read_records` returns, all of them optional:
    key, value, headers, offset (if missing, offsets count up from `base_offset`) and timestamp (if
    missing, now). A batch ends when it is full, and where a column that describes batches changes:
    baseOffset, position, partitionLeaderEpoch, producerId, producerEpoch, sequence,
    isTransactional, timestampType or magic. A row with a controlType is a control record. COMMIT
    and ABORT need no key and value; coordinatorEpoch is their coordinator's epoch.

    So the result of `read_records` is encoded into the batches that it was read from. Pass the
    log as `source` to change some of its records: all batches whose records are unchanged are
    copied byte for byte. Or pass `batches` to write all of them anew, with what records do not
    hold: gaps left by compaction, delete horizons, and batches without records. One thing is lost
    of a batch that is written: under LogAppendTime a record has its batch's timestamp, and the
    columns do not hold the timestamp that the producer set.

    A record that cannot be written raises an error before anything is returned. The error names the
    row, counted from 0, and the column or option.

    Args:
        records: a table. Columns of bytes may be strings, views or dictionaries; headers may be a
            map.
        batches: the result of `read_record_batches` for the log that the records come from. A
            record's `position` names its batch; offset and timestamp are required, too. If some
            records of a batch are missing, it is written with the rest. The only other options
            allowed are those of compression.
        source: the log that the records come from, instead of `batches`: a path or bytes, as for
            `read_records`. A batch that has the same records as there is copied, and each other one
            is written as with `batches`. No other option is allowed.
        compression_type: the codec. If None, each batch keeps the codec that `batches` gives, and
            without `batches` nothing is compressed.
        compression_level: as in Kafka's compression.gzip.level, compression.lz4.level and
            compression.zstd.level. If None, Kafka's default.
        batch_size: the most bytes of a batch before compression, including its header. If None,
            16,384, except that records that name their batches stay together.
        batch_records: the most records of a batch. If None, as many as fit.
        base_offset: the offset of the first record, if there is no column offset.
        timestamp: milliseconds since 1970, for records without a timestamp. If None, now.
        timestamp_type: 0 is CreateTime, 1 is LogAppendTime. With 1, `timestamp` is the timestamp of
            all records; without `timestamp`, a batch ends where the column timestamp changes.
        partition_leader_epoch: the leader epoch of all batches. This option and those below, if
            given, override the columns.
        producer_id: the id of an idempotent producer, 0 or more.
        producer_epoch: the producer's epoch.
        base_sequence: the sequence number of the first record; the others count on from it.
        is_transactional: whether the records belong to a transaction.
        control_type: makes every record a control record of this type.
        coordinator_epoch: the epoch of the transaction coordinator, for COMMIT and ABORT.
        delete_horizon_ms: when tombstones may be deleted, milliseconds since 1970.
        magic: the message format's version. If None, 2. Versions 0 and 1 have neither headers nor
            producers.

    >>> import kafkajit
    >>> log = encode_batches(pa.table({"key": ["a", "b"]}), base_offset=7, compression_type="zstd")
    >>> kafkajit.read_records(log, columns=["offset", "key"]).to_pylist()
    [{'offset': 7, 'key': b'a'}, {'offset': 8, 'key': b'b'}]
    """
    options = EncodeOptions(
        compression_type=compression_type,
        compression_level=compression_level,
        batch_size=batch_size,
        batch_records=batch_records,
        base_offset=base_offset,
        timestamp=timestamp,
        timestamp_type=timestamp_type,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        control_type=control_type,
        coordinator_epoch=coordinator_epoch,
        delete_horizon_ms=delete_horizon_ms,
        magic=magic,
    )
    return _joined(list(_encoded(records, batches, source, options)))


def iter_encoded_batches(
    records: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch],
    *,
    batches: pa.Table | None = None,
    source: Any = None,
    compression_type: CompressionType | None = None,
    compression_level: int | None = None,
    batch_size: int | None = None,
    batch_records: int | None = None,
    base_offset: int = 0,
    timestamp: int | None = None,
    timestamp_type: Literal[0, 1] | None = None,
    partition_leader_epoch: int | None = None,
    producer_id: int | None = None,
    producer_epoch: int | None = None,
    base_sequence: int | None = None,
    is_transactional: bool | None = None,
    control_type: ControlType | None = None,
    coordinator_epoch: int | None = None,
    delete_horizon_ms: int | None = None,
    magic: Literal[0, 1, 2] | None = None,
) -> Iterator[pa.Buffer]:
    """Encode records as `encode_batches` does, in buffers of a few megabytes of whole batches.

    Memory use does not grow with the records. A wrong option raises an error at once. A record that
    cannot be written raises one when the iterator reaches it.

    Args:
        records: as for `encode_batches`, or an iterable of record batches, such as `iter_records`
            returns.
        batches: the result of `read_record_batches`, as for `encode_batches`.
        source: the log that the records come from, as for `encode_batches`.
        compression_type: the codec. If None, each batch keeps the codec that `batches` gives, and
            without `batches` nothing is compressed.
        compression_level: as in Kafka's compression.gzip.level, compression.lz4.level and
            compression.zstd.level. If None, Kafka's default.
        batch_size: the most bytes of a batch before compression, including its header. If None,
            16,384, except that records that name their batches stay together.
        batch_records: the most records of a batch. If None, as many as fit.
        base_offset: the offset of the first record, if there is no column offset.
        timestamp: milliseconds since 1970, for records without a timestamp. If None, now.
        timestamp_type: 0 is CreateTime, 1 is LogAppendTime. With 1, `timestamp` is the timestamp of
            all records; without `timestamp`, a batch ends where the column timestamp changes.
        partition_leader_epoch: the leader epoch of all batches. This option and those below, if
            given, override the columns.
        producer_id: the id of an idempotent producer, 0 or more.
        producer_epoch: the producer's epoch.
        base_sequence: the sequence number of the first record; the others count on from it.
        is_transactional: whether the records belong to a transaction.
        control_type: makes every record a control record of this type.
        coordinator_epoch: the epoch of the transaction coordinator, for COMMIT and ABORT.
        delete_horizon_ms: when tombstones may be deleted, milliseconds since 1970.
        magic: the message format's version. If None, 2. Versions 0 and 1 have neither headers nor
            producers.

    >>> table = pa.table({"value": [bytes(1000)] * 100})
    >>> sum(buffer.size for buffer in iter_encoded_batches(table))
    101327
    """
    options = EncodeOptions(
        compression_type=compression_type,
        compression_level=compression_level,
        batch_size=batch_size,
        batch_records=batch_records,
        base_offset=base_offset,
        timestamp=timestamp,
        timestamp_type=timestamp_type,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        control_type=control_type,
        coordinator_epoch=coordinator_epoch,
        delete_horizon_ms=delete_horizon_ms,
        magic=magic,
    )
    return _encoded(records, batches, source, options)


def _encoded(
    records: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch],
    batches: pa.Table | None,
    source: Any,
    options: EncodeOptions,
) -> Iterator[pa.Buffer]:
    if source is None:
        return Encoder(options).encode(records, batches)
    if batches is not None:
        raise ValueError("source has the batches: pass either source or batches")
    copied = SourceBatches(source, options)
    return Encoder(options).encode(records, copied.table, copied)


class Encoder:
    """Encodes records; offsets and sequence numbers continue from one call to the next.

    Args:
        options: how records become batches
        writer: a writer made for these options; several encoders may take turns with its buffers
    """

    def __init__(self, options: EncodeOptions, writer: BatchWriter | None = None) -> None:
        self.next_offset = options.base_offset
        self._options = options
        self._planner = BatchPlanner(options)
        self._writer = writer or BatchWriter(options.compression_level)
        self._now = int(time.time() * 1000) if options.timestamp is None else options.timestamp
        # Under LogAppendTime all records have the time of the append.
        self._is_stamped = options.timestamp_type == 1 and options.timestamp is not None

    def encode(
        self,
        records: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch],
        batches: pa.Table | None = None,
        source: SourceBatches | None = None,
    ) -> Iterator[pa.Buffer]:
        """Encode the records, a few megabytes of batches at a time.

        Args:
            records: to encode.
            batches: of these, as in `encode_batches`.
            source: the log with these batches, to copy those that have not changed.
        """
        given = None if batches is None else GivenBatches(batches, self._options)
        return self._encoded(records, given, source)

    def _encoded(
        self,
        records: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch],
        given: GivenBatches | None,
        source: SourceBatches | None,
    ) -> Iterator[pa.Buffer]:
        keeps = given is not None or self._options.batch_size is None
        before = 0
        for chunk in chunks_of(records, whole_batches=keeps):
            start, count = 0, window_rows(chunk)
            while start < chunk.num_rows:
                window = chunk.slice(start, count)
                is_last = start + count >= chunk.num_rows
                with rows_counted_from(before + start):
                    rows, plan = self._plan(window, given, is_last=is_last)
                    taken = int(plan.first_row[-1])
                    if taken == 0:  # the first batch is larger than the window
                        count *= 2
                        continue
                    encoded = list(self._written(rows, plan, source))
                start += taken
                self.next_offset = int(rows.offset[taken - 1]) + 1
                yield from encoded
            before += chunk.num_rows
        if given is not None and given.has_more:
            rows = self._rows(_NO_RECORDS)
            yield from self._written(rows, given.rest(rows), source)

    def _plan(
        self, window: pa.RecordBatch, given: GivenBatches | None, *, is_last: bool
    ) -> tuple[RecordRows, BatchPlan]:
        """Plan whole batches of the window's first rows; of all its rows if it is the last."""
        if given is None:
            rows = self._rows(window)
            return rows, self._planner.plan(window, rows, is_last=is_last)
        for name in ("position", "offset", "timestamp"):
            if name not in window.schema.names:
                raise ValueError(f"with batches, records need the column {name}")
        rows = self._rows(window, nulls_are_now=False)
        position = numbers_of(window.column("position"), "position")
        return rows, given.plan(rows, position, is_last=is_last)

    def _rows(self, window: pa.RecordBatch, *, nulls_are_now: bool = True) -> RecordRows:
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
            byte_strings_of(window.column(name), name) if name in names else missing_column(count)
            for name in ("key", "value")
        )
        if types is not None:
            check_markers(types, key, value)
        headers = (
            headers_of(window.column("headers")) if "headers" in names else missing_column(count, 0)
        )
        return RecordRows(offset, timestamp, key, value, headers)

    def _written(
        self, rows: RecordRows, plan: BatchPlan, source: SourceBatches | None
    ) -> Iterator[pa.Buffer]:
        if source is None:
            yield self._write(rows, plan)
            return
        for part, copied in source.parts(rows, plan, self._rows):
            yield self._write(rows, part) if copied is None else copied

    def _write(self, rows: RecordRows, plan: BatchPlan) -> pa.Buffer:
        buffer = pa.allocate_buffer(self._writer.bound(rows, plan), resizable=True)
        end = self._writer.write(rows, plan, np.frombuffer(buffer, dtype=np.uint8))
        # The bound is the uncompressed size: give back what compression saved.
        buffer.resize(end, shrink_to_fit=True)
        return buffer


_NO_RECORDS = pa.RecordBatch.from_pydict({"key": pa.array([], pa.binary())})


def _counted_up(first: int, count: int) -> npt.NDArray[np.int64]:
    """Offsets for `count` records that have none."""
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
        parts[at] = None  # frees it before the next part is copied
    return joined
