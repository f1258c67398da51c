"""Rows → plans, if no table lists the batches: where batches begin, and their headers.

A header's fields come from the options; if an option is not set, from the columns of the batch's
first record; without those, they are what a producer without idempotence writes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.encode.batch_plan import (
    BatchPlan,
    RecordRows,
    first_rows,
    not_increasing,
    plain_headers,
)
from kafkajit.encode.control_rows import control_types
from kafkajit.encode.encode_options import BATCH_NAMES, EncodeOptions
from kafkajit.encode.rows import numbers_of
from kafkajit.errors import InvalidOffsetError, InvalidRecordError
from kafkajit.format.codecs import ZSTD
from kafkajit.format.layout import (
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    MAGIC_V2,
    MESSAGE_OVERHEAD_V1,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
)
from kafkajit.format.limits import MAX_INT32
from kafkajit.format.sequence import decrement_sequence, increment_sequence
from kafkajit.records.control_records import END_TRANSACTION
from kafkajit.storage.source import Int64s

DEFAULT_BATCH_SIZE = 16384  # a producer's batch.size

_UNLIMITED = 2**62
# Columns whose value is one for a whole batch: (the option that overrides it, the default).
_BATCH_COLUMNS = {
    "partitionLeaderEpoch": ("partition_leader_epoch", 0),
    "producerId": ("producer_id", -1),
    "producerEpoch": ("producer_epoch", -1),
    "timestampType": ("timestamp_type", 0),
    "magic": ("magic", MAGIC_V2),
    "isTransactional": ("is_transactional", 0),
}
_FLAGS = {
    "timestampType": TIMESTAMP_TYPE_MASK,
    "isTransactional": TRANSACTIONAL_MASK,
    "isControl": CONTROL_MASK,
}
# The ranges of their header fields.
_FIELD_RANGES = {
    "partitionLeaderEpoch": (-MAX_INT32 - 1, MAX_INT32),
    "producerEpoch": (-(2**15), 2**15 - 1),
    "sequence": (-1, MAX_INT32),
    "timestampType": (-1, 1),
    "magic": (0, 2),
}


class BatchPlanner:
    """Plans batches of records; offsets and sequence numbers continue from call to call."""

    def __init__(self, options: EncodeOptions) -> None:
        self._options = options
        self._next_sequence = options.base_sequence
        self._last_offset: int | None = None
        self._last_names: list[int] | None = None

    def plan(self, records: pa.RecordBatch, rows: RecordRows, *, is_last: bool) -> BatchPlan:
        """Plan batches of the rows; unless `is_last`, without the last one, which may continue."""
        options = self._options
        keeps = options.keeps_batches(records.schema.names)
        columns = _batch_columns(records, options, keeps=keeps)
        # One number if all rows have one magic: looking at each row takes as long as writing it.
        is_old = np.less(columns["magic"], MAGIC_V2)
        if is_old.any():
            is_old = np.broadcast_to(is_old, rows.offset.size)
        firsts = first_rows(
            rows,
            _begins(rows, columns, keeps=keeps),
            batch_size=options.batch_size or (_UNLIMITED if keeps else DEFAULT_BATCH_SIZE),
            batch_records=options.batch_records or _UNLIMITED,
            base_timestamp=options.delete_horizon_ms,
            sizes=_sizes_with_messages(rows, is_old),
        )
        if self._last_offset is not None and rows.offset[0] <= self._last_offset:
            raise not_increasing(rows.offset[0], self._last_offset, 0)
        _check_numbers(columns, firsts[:-1])
        _check_magic(rows, columns, options, is_old)
        if not is_last:
            firsts = firsts[:-1]
        headers = self._headers(rows, firsts, columns)
        if headers.size:
            self._last_offset = int(rows.offset[firsts[-1] - 1])
        return BatchPlan(headers, firsts)

    def _headers(
        self, rows: RecordRows, firsts: Int64s, columns: dict[str, Int64s | int]
    ) -> npt.NDArray[np.void]:
        options = self._options
        of_first = {
            name: column[firsts[:-1]] if isinstance(column, np.ndarray) else column
            for name, column in columns.items()
        }
        headers = plain_headers(rows, firsts)
        for name in ("magic", "partitionLeaderEpoch", "producerId", "producerEpoch"):
            headers[name] = of_first[name]
        if "baseOffset" in of_first:
            is_first = self._are_first_parts(columns, firsts)
            base = np.where(is_first, of_first["baseOffset"], headers["baseOffset"])
            _move_base(headers, base, rows, firsts, self._last_offset)
        is_control = np.greater(of_first["isControl"], 0)
        if options.base_sequence is not None:
            headers["baseSequence"] = self._sequences(headers["lastOffsetDelta"], is_control)
        elif "sequence" in of_first:
            first = np.asarray(of_first["sequence"])
            before = decrement_sequence(first, rows.offset[firsts[:-1]] - headers["baseOffset"])
            headers["baseSequence"] = np.where(first < 0, -1, before)
        attributes = np.full(headers.size, options.codec or 0, dtype=np.int64)
        for name, mask in _FLAGS.items():
            attributes |= np.where(np.greater(of_first[name], 0), mask, 0)
        if options.delete_horizon_ms is not None:
            attributes |= DELETE_HORIZON_MASK
            headers["baseTimestamp"] = options.delete_horizon_ms
        headers["attributes"] = attributes
        return headers

    def _are_first_parts(
        self, columns: dict[str, Int64s | int], firsts: Int64s
    ) -> npt.NDArray[np.bool_]:
        """Whether a planned batch is the first part of the batch that its records name."""
        first = firsts[:-1]
        names = [
            column for column in map(columns.get, BATCH_NAMES) if isinstance(column, np.ndarray)
        ]
        changes = [column[first] != column[first - 1] for column in names]
        begin: npt.NDArray[np.bool_] = np.any(changes, axis=0)
        if first.size:  # its row before is in the previous call
            begin[0] = self._last_names != [column[0] for column in names]
            self._last_names = [column[firsts[-1] - 1] for column in names]
        return begin

    def _sequences(
        self, last_offset_delta: npt.NDArray[np.int32], is_control: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int32]:
        """Base sequences: they advance with the offsets; control batches have none."""
        assert self._next_sequence is not None
        if self._next_sequence < 0:
            return np.full(last_offset_delta.size, -1, dtype=np.int32)
        counts = np.where(is_control, 0, last_offset_delta.astype(np.int64) + 1)
        before = np.append(0, counts.cumsum())
        sequences = increment_sequence(np.full(before.size, self._next_sequence), before % 2**31)
        self._next_sequence = int(sequences[-1])
        return np.where(is_control, np.int32(-1), sequences[:-1])


def _batch_columns(
    records: pa.RecordBatch, options: EncodeOptions, *, keeps: bool
) -> dict[str, Int64s | int]:
    """Each record's batch fields, from the options or columns: one number, or one per row."""
    names = records.schema.names
    columns: dict[str, Int64s | int] = {}
    for name, (option, default) in _BATCH_COLUMNS.items():
        stated = getattr(options, option)
        if stated is not None:
            columns[name] = int(stated)
        elif name in names:
            columns[name] = numbers_of(records.column(name), name, null=default)
        else:
            columns[name] = default
    types = control_types(records, options.control_type)
    columns["isControl"] = 0 if types is None else numbers_of(types.is_valid(), "controlType")
    if types is not None and options.is_transactional is None and "isTransactional" not in names:
        ends_transaction = pc.is_in(types, pa.array(END_TRANSACTION))
        columns["isTransactional"] = numbers_of(ends_transaction, "controlType")
    for name in BATCH_NAMES if keeps else ():
        if name in names:
            columns[name] = numbers_of(records.column(name), name)
    if "sequence" in names and options.base_sequence is None:
        columns["sequence"] = numbers_of(records.column("sequence"), "sequence", null=-1)
    return columns


def _begins(
    rows: RecordRows, columns: dict[str, Int64s | int], *, keeps: bool
) -> npt.NDArray[np.bool_]:
    """The rows that must begin a batch, because a batch field changes there."""
    begins = np.zeros(rows.offset.size, dtype=np.bool_)
    for name, column in columns.items():
        if isinstance(column, np.ndarray) and name != "sequence":
            begins[1:] |= column[1:] != column[:-1]
    sequence = columns.get("sequence")
    if isinstance(sequence, np.ndarray):
        begins[1:] |= _is_out_of_sequence(sequence, rows.offset)
    if not keeps and np.any(columns["isControl"]):
        begins |= np.greater(columns["isControl"], 0)  # a marker is alone in its batch
    is_append_time = np.equal(columns["timestampType"], 1)
    if is_append_time.any():  # a batch then has one timestamp
        begins[1:] |= (np.diff(rows.timestamp) != 0) & np.broadcast_to(
            is_append_time, begins.shape
        )[1:]
    return begins


def _sizes_with_messages(rows: RecordRows, is_old: npt.NDArray[np.bool_]) -> Int64s:
    """The rows' fixed sizes; for messages of v0 and v1, an upper bound of all their bytes."""
    if not is_old.any():
        return rows.fixed_sizes
    data = np.maximum(rows.key.sizes, 0) + np.maximum(rows.value.sizes, 0)
    return np.where(is_old, data + MESSAGE_OVERHEAD_V1, rows.fixed_sizes)


def _check_numbers(columns: dict[str, Int64s | int], firsts: Int64s) -> None:
    """Raise if a column's number does not fit its header field."""
    for name, (least, most) in _FIELD_RANGES.items():
        column = columns.get(name)
        if not isinstance(column, np.ndarray):
            continue
        numbers = column[firsts]
        bad = (numbers < least) | (numbers > most)
        if bad.any():
            row = int(firsts[np.argmax(bad)])
            raise InvalidRecordError(
                f"{name} is from {least} to {most}, not {column[row]}", row=row
            )


def _check_magic(
    rows: RecordRows,
    columns: dict[str, Int64s | int],
    options: EncodeOptions,
    is_old: npt.NDArray[np.bool_],
) -> None:
    """Raise if a message of v0 or v1 would have a feature of v2."""
    if not is_old.any():
        return
    is_idempotent = options.base_sequence is not None
    for feature, has in (
        ("record headers", rows.headers.sizes > 1),
        ("control records", np.greater(columns["isControl"], 0)),
        ("transactional records", np.greater(columns["isTransactional"], 0)),
        ("idempotent records", np.greater(columns["producerId"], -1) | is_idempotent),
        ("zstd", options.codec == ZSTD),
        ("delete horizons", options.delete_horizon_ms is not None),
    ):
        bad = is_old & has
        if bad.any():
            row = int(np.argmax(bad))
            magic = np.broadcast_to(columns["magic"], is_old.shape)[row]
            raise InvalidRecordError(f"Magic v{magic} does not support {feature}", row=row)


def _is_out_of_sequence(sequence: Int64s, offset: Int64s) -> npt.NDArray[np.bool_]:
    """Whether a record's sequence number does not follow the one before it."""
    due = np.where(sequence[:-1] < 0, -1, increment_sequence(sequence[:-1], np.diff(offset)))
    out: npt.NDArray[np.bool_] = sequence[1:] != due
    return out


def _move_base(
    headers: npt.NDArray[np.void],
    base: Int64s,
    rows: RecordRows,
    firsts: Int64s,
    last_offset: int | None,
) -> None:
    """Set base offsets before those of the first records, as compaction leaves them."""
    last = headers["baseOffset"] + headers["lastOffsetDelta"]
    headers["baseOffset"] = base
    check_offsets(headers, rows, firsts)
    overlaps = base[1:] <= last[:-1]
    if base.size:
        overlaps = np.append(last_offset is not None and base[0] <= last_offset, overlaps)
    overlaps &= headers["magic"] == MAGIC_V2
    if overlaps.any():
        batch = int(np.argmax(overlaps))
        before = last[batch - 1] if batch else last_offset
        raise InvalidOffsetError(
            f"its batch's baseOffset, {base[batch]}, is not behind offset {before} of the record "
            "before it",
            row=int(firsts[batch]),
        )
    headers["lastOffsetDelta"] = last - base


def check_offsets(headers: npt.NDArray[np.void], rows: RecordRows, firsts: Int64s) -> None:
    """Raise if a v2 batch has a record before its base offset, or too far after it."""
    is_filled = firsts[:-1] < firsts[1:]
    first, offset = firsts[:-1][is_filled], rows.offset[: firsts[-1]]
    if first.size == 0:
        return
    base = headers["baseOffset"][is_filled]
    behind = np.maximum.reduceat(offset, first) - base
    bad = (np.minimum.reduceat(offset, first) < base) | (behind < 0) | (behind > MAX_INT32)
    # The header of a message set does not give its first offset.
    bad &= headers["magic"][is_filled] == MAGIC_V2
    if bad.any():
        batch = np.argmax(bad)
        delta = offset[first[batch] :] - base[batch]
        row = int(first[batch] + np.argmax((delta < 0) | (delta > MAX_INT32)))
        raise InvalidOffsetError(
            f"offset {offset[row]} is not within an int32 behind its batch's baseOffset, "
            f"{base[batch]}",
            row=row,
        )
