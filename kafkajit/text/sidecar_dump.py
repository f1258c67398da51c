"""Files beside a log → the lines that kafka-dump-log.sh prints of them, byte for byte.

Answers to Kafka 4.1.1's DumpLogSegments: dumpProducerIdSnapshot, dumpIndex, dumpTimeIndex and
dumpTxnIndex. Whole columns become strings and are joined row by row, tens of thousands at a time.
Before an error they print what Kafka prints before it throws.

Over 400 lines because the four kinds of files share their way of printing: columns, joined row by
row.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.errors import (
    BATCH_TOO_SMALL,
    OK,
    CorruptIndexError,
    CorruptRecordError,
    CorruptSnapshotError,
    InvalidRecordError,
    KafkaJitError,
    error_for,
)
from kafkajit.format.layout import (
    BATCH_LENGTH_OFFSET,
    COMPRESSION_CODEC_MASK,
    HEADER_SIZE_UP_TO_MAGIC,
    LAST_OFFSET_DELTA_OFFSET,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_V2,
    MESSAGE_ATTRIBUTES_OFFSET,
    MESSAGE_TIMESTAMP_OFFSET,
    MIN_ENTRY_SIZE,
    RECORD_BATCH_OVERHEAD,
)
from kafkajit.index.bisect import slots_as_found
from kafkajit.index.offset_index import OffsetIndex
from kafkajit.index.time_index import NO_TIMESTAMP, TimeIndex
from kafkajit.index.transaction_index import ENTRY as TRANSACTION
from kafkajit.index.transaction_index import transaction_entries
from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import read_int32, read_int64
from kafkajit.records.batches import Batches, frame, framing_error
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.decode import Decoder
from kafkajit.state.producer_snapshot import SnapshotCutShortError, parse_producer_snapshot
from kafkajit.storage.source import Bytes, Int64s, Source

_Part = Any  # an array or a text

_ROWS = 1 << 16
_LAST_ENTRIES = 8192 // 8  # AbstractIndex.warmEntries of an OffsetIndex
_NO_BATCH = -1  # a kernel's status

_OF_PRODUCER = ("producerId", "producerEpoch", "coordinatorEpoch")
_OF_BATCH = ("firstSequence", "lastSequence", "lastOffset", "offsetDelta", "timestamp")


def snapshot_text(
    content: Bytes, path: str | None = None, *, json: bool = False
) -> Iterator[bytes]:
    """The lines of a .snapshot file; raises CorruptSnapshotError before the first."""
    table = parse_producer_snapshot(content, path)

    def lines(start: int) -> bytes:
        rows = table.slice(start, _ROWS)
        text = {name: _strings(rows[name]) for name in rows.column_names}
        return _objects("producer", text) if json else _producer_lines(text)

    return map(lines, range(0, table.num_rows, _ROWS))


def snapshot_complaint(error: CorruptSnapshotError) -> str:
    """The line that Kafka prints on stderr instead of the entries of a corrupt snapshot.

    Kafka then continues with the next file; a corrupt snapshot does not change the exit code.
    """
    if isinstance(error, SnapshotCutShortError):
        return "Snapshot failed schema validation: null"  # Java's BufferUnderflowException
    return error.message


def transaction_index_text(
    content: Bytes, path: str | None = None, *, json: bool = False
) -> Iterator[bytes]:
    """The lines of a .txnindex file. Like Kafka, it ignores an incomplete entry at the end."""
    whole = content.size // TRANSACTION.itemsize * TRANSACTION.itemsize
    entries = content[:whole].view(TRANSACTION)
    # Kafka takes the first byte for the version, and accepts any below 0.
    versions = content[:whole].view(np.int8)[:: TRANSACTION.itemsize]
    if (versions > 0).any():
        transaction_entries(content[:whole], path)  # raises the error
    for start in range(0, entries.size, _ROWS):
        rows = entries[start : start + _ROWS]
        columns = {name: _numbers(rows[name]) for name in rows.dtype.names or ()}
        columns["version"] = _numbers(versions[start : start + _ROWS])
        yield _objects("txnindex", columns) if json else _fields(columns)


class OffsetIndexDump:
    """One dump of one .index file: read `text` to its end, then look at the findings."""

    def __init__(
        self, index: OffsetIndex, log: Source, *, max_message_size: int, json: bool = False
    ) -> None:
        self.mismatches: list[tuple[int, int]] = []  # the entry's offset, its batch's last one
        self._index = index
        self._log = log
        self._max_message_size = max_message_size
        self._json = json

    def text(self) -> Iterator[bytes]:
        """Lines, one for each entry whose batch is found."""
        entries = _entries_up_to_zero(self._index)
        base_offset, content = self._index.base_offset, self._log.content
        for start in range(0, entries.size, _ROWS):
            rows = entries[start : start + _ROWS]
            offsets = rows["relativeOffset"].astype(np.int64) + base_offset
            positions = rows["position"].astype(np.int64)
            found = np.empty(rows.size, dtype=np.int64)
            good, status = _last_offsets_at(content, positions, self._max_message_size, found)
            for row in np.flatnonzero(found[:good] != offsets[:good]).tolist():
                self.mismatches.append((int(offsets[row]), int(found[row])))
            columns = {"offset": _numbers(offsets[:good]), "position": _numbers(positions[:good])}
            yield _objects("index", columns) if self._json else _fields(columns)
            if good < rows.size:
                raise self._error(start + good, int(positions[good]), status)

    def _error(self, entry: int, position: int, status: int) -> Exception:
        if status == BATCH_TOO_SMALL:
            size = read_int32(self._log.content, position + BATCH_LENGTH_OFFSET)
            return error_for(status, size, path=self._log.path, position=position)
        return CorruptIndexError(
            f"entry {entry} names position {position}, where {self._log.path} has no whole batch "
            f"of at most {self._max_message_size} bytes"
        )


class TimeIndexDump:
    """One dump of one .timeindex file: read `text` to its end, then look at the findings."""

    def __init__(
        self,
        time_index: TimeIndex,
        index: OffsetIndex,
        log: Source,
        *,
        max_decompressed_bytes: int,
        json: bool = False,
    ) -> None:
        self.mismatches: list[tuple[int, int]] = []  # the entry's timestamp, its batch's largest
        self.out_of_order: list[tuple[int, int]] = []  # the entry's timestamp, the one's before
        self.not_found: list[tuple[int, int]] = []  # the entry's offset, that of the log, or -1
        self._json = json
        self._time_index = time_index
        self._index = index
        self._log = log
        # position → an offset: from that position on, every batch ends before the offset
        self._nothing_from: dict[int, int] = {}
        self._decoder = Decoder(
            log,
            ColumnMemory(Wanted(timestamp=True)),
            max_decompressed_bytes=max_decompressed_bytes,
        )

    def text(self) -> Iterator[bytes]:
        """Lines, one for each entry up to the first whose batch cannot be read."""
        entries = _entries_up_to_zero(self._time_index)
        before = NO_TIMESTAMP
        for start in range(0, entries.size, _ROWS):
            part = entries[start : start + _ROWS]
            timestamps = part["timestamp"].astype(np.int64)
            offsets = part["relativeOffset"].astype(np.int64) + self._time_index.base_offset
            positions, log_offsets, error = self._find(offsets)
            good = positions.size
            is_found = (positions >= 0) & (log_offsets == offsets[:good])
            largest, errors = self._largest_timestamps(positions[is_found])
            if errors:
                good = int(np.argmax(is_found & np.isin(positions, list(errors))))
                error = errors[int(positions[good])]
            for row in range(good):
                self._judge(
                    int(timestamps[row]),
                    before,
                    int(offsets[row]),
                    int(log_offsets[row]),
                    largest[int(positions[row])] if is_found[row] else None,
                )
                before = int(timestamps[row])
            columns = {
                "timestamp": _numbers(timestamps[:good]),
                "offset": _numbers(offsets[:good]),
            }
            yield _objects("timeindex", columns) if self._json else _fields(columns)
            if error is not None:
                raise error

    def _judge(
        self, timestamp: int, before: int, offset: int, log_offset: int, largest: int | None
    ) -> None:
        if largest is None:
            self.not_found.append((offset, log_offset))
            return
        if largest != timestamp:
            self.mismatches.append((timestamp, largest))
        if before >= timestamp:
            self.out_of_order.append((timestamp, before))

    def _find(self, offsets: Int64s) -> tuple[Int64s, Int64s, KafkaJitError | None]:
        """For each offset the first batch from the index's position on that ends at or after it.

        (positions, last offsets, error): -1 if there is no such batch, and only the offsets before
        the one that the error is about.
        """
        keys = self._index.whole_file["relativeOffset"].astype(np.int64)
        slots = slots_as_found(keys, offsets - self._index.base_offset, _LAST_ENTRIES)
        starts = np.append(self._index.whole_file["position"].astype(np.int64), 0)[slots]
        batches, last_offsets = self._batches, self._last_offsets
        rows = np.searchsorted(batches.position, starts)
        is_known = np.append(batches.position, -1)[rows] == starts
        firsts = np.searchsorted(np.maximum.accumulate(last_offsets), offsets)
        # In a sound log offsets increase, so the first such batch of all is not before that one.
        is_known &= (firsts >= rows) | (np.append(last_offsets, 0)[rows] >= offsets)
        rows = np.maximum(rows, firsts)
        is_known &= rows < len(batches)
        positions = np.append(batches.position, -1)[rows]
        log_offsets = np.append(last_offsets, -1)[rows]
        for row in np.flatnonzero(~is_known).tolist():
            try:
                found = self._look(int(starts[row]), int(offsets[row]))
            except KafkaJitError as error:
                return positions[:row], log_offsets[:row], error
            positions[row], log_offsets[row] = found
        return positions, log_offsets, None

    def _look(self, position: int, offset: int) -> tuple[int, int]:
        """Search that batch from any position: its position and last offset."""
        if not 0 <= position <= self._log.content.size:
            raise CorruptIndexError(
                f"the index names position {position} for offset {offset}, but {self._log.path} "
                f"has {self._log.content.size} bytes"
            )
        # Otherwise each entry beyond the log's end would read the whole log.
        if offset >= self._nothing_from.get(position, offset + 1):
            return -1, -1
        for batches in _framed(self._log, position):
            rows = np.flatnonzero(_last_offsets(batches) >= offset)
            if rows.size:
                return int(batches.position[rows[0]]), int(_last_offsets(batches)[rows[0]])
        self._nothing_from[position] = offset
        return -1, -1

    @cached_property
    def _batches(self) -> Batches:
        """The log's batches, up to the first that cannot be framed."""
        parts = [frame(self._log.content, self._log.content.size).batches]
        with suppress(KafkaJitError):
            parts.extend(_framed(self._log, 0))
        return _together(parts)

    @cached_property
    def _last_offsets(self) -> Int64s:
        return _last_offsets(self._batches)

    def _largest_timestamps(
        self, positions: Int64s
    ) -> tuple[dict[int, int], dict[int, KafkaJitError]]:
        """The largest timestamp of the batches at these positions, and the errors of the others."""
        batches = self._batches[np.isin(self._batches.position, positions)]
        alone = np.setdiff1d(
            positions, batches.position
        ).tolist()  # inside of other batches: Kafka reads them
        left = [batches, *(frame(self._log.content, at, max_bytes=0).batches[:1] for at in alone)]
        largest: dict[int, int] = {}
        errors: dict[int, KafkaJitError] = {}
        while left:
            batches = left.pop()
            is_known = batches.field("magic").astype(np.int8) >= 0
            for position in batches.position[~is_known].tolist():
                entry = self._log.content[position:]
                if not entry[MESSAGE_ATTRIBUTES_OFFSET] & COMPRESSION_CODEC_MASK:
                    # Kafka takes it for a message without compression, after format v0.
                    timestamp = entry[MESSAGE_TIMESTAMP_OFFSET:][:8].tobytes()
                    largest[position] = max(NO_TIMESTAMP, int.from_bytes(timestamp, signed=True))
                    continue
                errors[position] = InvalidRecordError(
                    "Invalid wrapper magic found in legacy deep record iterator "
                    f"{np.int8(self._log.content[position + MAGIC_OFFSET])}",
                    path=self._log.path,
                    position=position,
                )
            batches = batches[is_known]
            if not len(batches):
                continue
            chunk = self._decoder.decode(batches, lazy=True)
            ends = np.cumsum(chunk.counts)
            done = chunk.counts.size
            for row, end, count in zip(
                range(done), ends.tolist(), chunk.counts.tolist(), strict=True
            ):
                records = chunk.columns.timestamp[end - count : end]
                largest[int(batches.position[row])] = int(records.max(initial=NO_TIMESTAMP))
            if chunk.error is not None:
                errors[int(batches.position[done])] = chunk.error
                done += 1
            left.append(batches[done:])
        return largest, errors


def _framed(log: Source, position: int) -> Iterator[Batches]:
    """Batches from a position on, many at a time; raises where Kafka would."""
    while True:
        framing = frame(log.content, position)
        batches = framing.batches
        # Kafka reads a whole header, whatever the bytes are.
        is_cut = ~batches.is_message & (batches.position > log.content.size - RECORD_BATCH_OVERHEAD)
        if is_cut.any():
            whole = batches[~is_cut]
            if len(whole):
                yield whole
            raise CorruptRecordError(
                "Reached the end of the file in a record batch header",
                path=log.path,
                position=int(batches.position[is_cut][0]),
            )
        if not len(batches):
            error = framing_error(log, framing)
            if error is not None:
                raise error
            return
        yield batches
        position = framing.position


def _has_long_header(batches: Batches) -> npt.NDArray[np.bool_]:
    """Whether Kafka takes batches for v2 or later; any other magic, even below 0, is a message."""
    later: npt.NDArray[np.bool_] = batches.field("magic").astype(np.int8) >= MAGIC_V2
    return later


def _last_offsets(batches: Batches) -> Int64s:
    offsets = batches.field("baseOffset").astype(np.int64)
    return np.where(_has_long_header(batches), batches.last_offset, offsets)


def _together(parts: list[Batches]) -> Batches:
    position = np.concatenate([part.position for part in parts])
    return Batches(position, np.concatenate([part.header for part in parts]))


def _producer_lines(text: dict[str, _Part]) -> bytes:
    parts: list[_Part] = []
    for name in _OF_PRODUCER:
        parts += [f"{name}: ", text[name], " "]
    transaction = pc.binary_join_element_wise(
        "OptionalLong[", text["currentTxnFirstOffset"], "]", ""
    )
    parts += ["currentTxnFirstOffset: ", transaction.fill_null("OptionalLong.empty")]
    parts += [" lastTimestamp: ", text["lastTimestamp"], " "]
    batch: list[_Part] = []
    for name in _OF_BATCH:
        batch += [" " if batch else "", f"{name}: ", text[name]]
    parts += [pc.binary_join_element_wise(*batch, "").fill_null(""), "\n"]
    return _joined(parts)


def _entries_up_to_zero(index: OffsetIndex | TimeIndex) -> npt.NDArray[np.void]:
    """The entries that Kafka sees: up to one of the base offset that is not the first."""
    entries = index.whole_file
    is_zero = entries["relativeOffset"] == 0
    is_zero[:1] = False
    return entries[: int(np.argmax(is_zero))] if is_zero.any() else entries


def _fields(columns: dict[str, _Part]) -> bytes:
    """Lines, one for each row, with all columns."""
    parts: list[_Part] = []
    for name, texts in columns.items():
        parts += [f"{' ' if parts else ''}{name}: ", texts]
    return _joined([*parts, "\n"])


def _objects(kind: str, columns: dict[str, _Part]) -> bytes:
    """Lines of JSON, one for each row."""
    parts: list[_Part] = [f'{{"kind":"{kind}"']
    for name, texts in columns.items():
        parts += [f',"{name}":', texts.fill_null("null")]
    return _joined([*parts, "}\n"])


def _joined(parts: list[_Part]) -> bytes:
    """The rows' parts joined, as bytes."""
    joined = pc.binary_join_element_wise(*parts, "")
    return "".join(joined.to_pylist()).encode()


def _numbers(values: npt.NDArray[Any]) -> pa.Array:
    return pa.array(values.astype(np.int64)).cast(pa.string())


def _strings(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return column.cast(pa.string())


@kernel
def _last_offsets_at(content, positions, most, found):
    """Find the last offset of the batch at each position: (how many were found, the status).

    Answers to FileRecords.slice(position, most) and FileLogInputStream.nextBatch for each.
    """
    for row in range(positions.size):
        position = positions[row]
        end = min(position + most, content.size)
        if position < 0 or most < 0 or position >= end - HEADER_SIZE_UP_TO_MAGIC:
            return row, _NO_BATCH
        length = read_int32(content, position + BATCH_LENGTH_OFFSET)
        if length < MIN_ENTRY_SIZE:
            return row, BATCH_TOO_SMALL
        if position + LOG_OVERHEAD + length > end:
            return row, _NO_BATCH
        found[row] = read_int64(content, position)
        if np.int8(content[position + MAGIC_OFFSET]) >= MAGIC_V2:
            if position + RECORD_BATCH_OVERHEAD > content.size:  # which Kafka reads
                return row, _NO_BATCH
            found[row] += read_int32(content, position + LAST_OFFSET_DELTA_OFFSET)
    return positions.size, OK
