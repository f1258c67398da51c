"""Rows → plans, if a table lists the batches: each batch takes the rows with its position.

This keeps what records do not hold: gaps left by compaction, delete horizons, and batches without
records. If records are missing, the headers count those that are left.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.encode.batch_plan import BatchPlan, RecordRows
from kafkajit.encode.encode_options import EncodeOptions
from kafkajit.encode.planned_batches import check_offsets
from kafkajit.encode.rows import milliseconds_of, numbers_of
from kafkajit.errors import InvalidRecordError
from kafkajit.format.codecs import COMPRESSION_IDS, ZSTD
from kafkajit.format.layout import (
    COMPRESSION_CODEC_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    MAGIC_V2,
    NATIVE_BATCH_HEADER,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
)
from kafkajit.storage.source import Int64s

# The columns of read_record_batches that are fields of a header.
_HEADER_COLUMNS = (
    "position",
    "baseOffset",
    "lastOffset",
    "recordsCount",
    "baseSequence",
    "producerId",
    "producerEpoch",
    "partitionLeaderEpoch",
    "isTransactional",
    "isControlBatch",
    "deleteHorizonMs",
    "timestampType",
    "baseTimestamp",
    "maxTimestamp",
    "magic",
    "compressionType",
)
_FLAGS = {
    "isTransactional": TRANSACTIONAL_MASK,
    "isControlBatch": CONTROL_MASK,
    "timestampType": TIMESTAMP_TYPE_MASK,
}
# The options that go with given batches.
_ALLOWED_OPTIONS = ("compression_type", "compression_level")


class GivenBatches:
    """Plans batches whose headers are given in a table."""

    def __init__(self, batches: pa.Table | pa.RecordBatch, options: EncodeOptions) -> None:
        if not isinstance(batches, (pa.Table, pa.RecordBatch)):
            raise TypeError(f"batches must be an Arrow table, not a {type(batches).__name__}")
        for name in _HEADER_COLUMNS:
            if name not in batches.schema.names:
                raise ValueError(f"batches have no column {name}: see read_record_batches")
        for option in fields(options):
            if (
                option.name not in _ALLOWED_OPTIONS
                and getattr(options, option.name) != option.default
            ):
                raise ValueError(f"batches already set {option.name}: leave the option out")
        self._header = _headers(batches, options.codec)
        self._position = _numbers(batches, "position")
        _refuse(
            np.diff(self._position, prepend=-1) <= 0,
            "position is not after that of the batch before it",
        )
        self._next = 0
        self._last_position = -1

    def plan(self, rows: RecordRows, position: Int64s, *, is_last: bool) -> BatchPlan:
        """Plan the batches of the rows, and the empty batches before those."""
        goes_back = np.diff(position, prepend=self._last_position) < 0
        if goes_back.any():
            row = int(np.argmax(goes_back))
            raise InvalidRecordError(
                f"position {position[row]} is before that of the record before it: records must "
                "come in the order of their batches",
                row=row,
            )
        if not is_last:  # the last row's batch may continue
            position = position[: np.searchsorted(position, position[-1])]
        stop = self._next
        if position.size:
            stop = int(np.searchsorted(self._position, position[-1], side="right"))
            self._last_position = int(position[-1])
        known = self._position[self._next : stop]
        is_lost = ~np.isin(position, known)
        if is_lost.any():
            row = int(np.argmax(is_lost))
            raise InvalidRecordError(
                f"batches have no row for position {position[row]}, which the record has", row=row
            )
        firsts = np.append(np.searchsorted(position, known), position.size)
        return self._take(stop, rows, firsts)

    @property
    def has_more(self) -> bool:
        return self._next < self._position.size

    def rest(self, rows: RecordRows) -> BatchPlan:
        """Plan the remaining batches, which have no rows."""
        left = self._position.size - self._next
        return self._take(self._position.size, rows, np.zeros(left + 1, dtype=np.int64))

    def _take(self, stop: int, rows: RecordRows, firsts: Int64s) -> BatchPlan:
        headers, position = self._header[self._next : stop], self._position[self._next : stop]
        self._next = stop
        # A message of v0 or v1 cannot be empty: it goes with its record, a set with its last.
        stays = (np.diff(firsts) > 0) | (headers["magic"] == MAGIC_V2)
        headers, position = headers[stays], position[stays]
        firsts = np.append(firsts[:-1][stays], firsts[-1])
        _count_records(headers, rows, firsts)
        check_offsets(headers, rows, firsts)
        _check_record_headers(headers, rows, firsts)
        return BatchPlan(headers, firsts, position)


def _count_records(headers: npt.NDArray[np.void], rows: RecordRows, firsts: Int64s) -> None:
    """Set the headers' fields to the records that are left."""
    counts = np.diff(firsts)
    shrunk = np.flatnonzero(counts != headers["recordsCount"])
    headers["recordsCount"] = counts
    for batch in shrunk.tolist():
        stamps = rows.timestamp[firsts[batch] : firsts[batch + 1]]
        if stamps.size and not headers["attributes"][batch] & TIMESTAMP_TYPE_MASK:
            headers["maxTimestamp"][batch] = stamps.max()
    # As Kafka's cleaner leaves them: an empty batch is not compressed.
    headers["attributes"][counts == 0] &= ~np.int16(COMPRESSION_CODEC_MASK)


def _check_record_headers(headers: npt.NDArray[np.void], rows: RecordRows, firsts: Int64s) -> None:
    """Raise if a message of v0 or v1 has record headers."""
    is_old = headers["magic"] < MAGIC_V2
    if not is_old.any():
        return
    sizes = rows.headers.sizes[: firsts[-1]]
    bad = np.repeat(is_old, np.diff(firsts)) & (sizes > 1)
    if bad.any():
        raise InvalidRecordError(
            "a message of v0 or v1 does not support record headers", row=int(np.argmax(bad))
        )


def _headers(batches: pa.Table | pa.RecordBatch, codec: int | None) -> npt.NDArray[np.void]:
    headers = np.zeros(batches.num_rows, dtype=NATIVE_BATCH_HEADER)
    # The header of a message set has neither its first offset nor its record count.
    last = _numbers(batches, "lastOffset")
    is_set = _column(batches, "baseOffset").is_null().to_numpy(False)
    base = np.where(is_set, last, _numbers(batches, "baseOffset", null=0))
    headers["baseOffset"] = base
    _put(headers, "lastOffsetDelta", last - base)
    _put(headers, "recordsCount", _numbers(batches, "recordsCount", null=-1))
    for name in ("magic", "partitionLeaderEpoch", "producerId", "producerEpoch", "baseSequence"):
        _put(headers, name, _numbers(batches, name))
    for name in ("baseTimestamp", "maxTimestamp"):
        headers[name] = milliseconds_of(_column(batches, name), f"batches' {name}", None)
    attributes = np.full(headers.size, codec or 0, dtype=np.int64)
    if codec is None:
        attributes |= _codecs(batches)
    for name, mask in _FLAGS.items():
        attributes |= np.where(_numbers(batches, name) > 0, mask, 0)
    has_horizon = _column(batches, "deleteHorizonMs").is_valid().to_numpy(False)
    attributes |= np.where(has_horizon, DELETE_HORIZON_MASK, 0)
    horizons = _numbers(batches, "deleteHorizonMs", null=0)
    headers["baseTimestamp"][has_horizon] = horizons[has_horizon]
    headers["attributes"] = attributes
    _refuse((headers["magic"] < 0) | (headers["magic"] > MAGIC_V2), "magic is neither 0, 1 nor 2")
    _refuse(
        (attributes & COMPRESSION_CODEC_MASK == ZSTD) & (headers["magic"] < MAGIC_V2),
        "magic is of messages that have no zstd: give another compression_type",
    )
    return headers


def _codecs(batches: pa.Table | pa.RecordBatch) -> Int64s:
    types = _column(batches, "compressionType").to_pylist()
    codecs = np.array([COMPRESSION_IDS.get(name, -1) for name in types], dtype=np.int64)
    _refuse(codecs < 0, f"compressionType is not one of {', '.join(COMPRESSION_IDS)}")
    return codecs


def _put(headers: npt.NDArray[np.void], name: str, numbers: Int64s) -> None:
    held = np.iinfo(headers.dtype[name])
    _refuse((numbers < held.min) | (numbers > held.max), f"{name} is more than {held.dtype} holds")
    headers[name] = numbers


def _refuse(is_bad: npt.NDArray[np.bool_], message: str) -> None:
    if is_bad.any():
        raise InvalidRecordError(f"batches' {message}", row=int(np.argmax(is_bad)))


def _numbers(batches: pa.Table | pa.RecordBatch, name: str, null: int | None = None) -> Int64s:
    return numbers_of(_column(batches, name), f"batches' {name}", null)


def _column(batches: pa.Table | pa.RecordBatch, name: str) -> Any:
    column = batches.column(name)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
