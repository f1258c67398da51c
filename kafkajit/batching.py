"""Rows → plans: where batches begin, and what their headers say.

A header's fields come from what the caller says of all batches, else from the columns of its first
record, else they are what a producer without idempotence would write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.errors import InvalidOffsetError, InvalidRecordError
from kafkajit.format.compression import COMPRESSION_IDS
from kafkajit.format.compressor import check_level
from kafkajit.format.layout import (
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    MAGIC_V2,
    NATIVE_BATCH_HEADER,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
)
from kafkajit.format.sequence import decrement_sequence, increment_sequence
from kafkajit.records.encode import Plan, Rows, first_rows, not_behind, plain_headers
from kafkajit.rows import milliseconds_of, numbers_of

Int64s = npt.NDArray[np.int64]

DEFAULT_BATCH_SIZE = 16384  # a producer's batch.size
# Columns that say which batch a record is from.
BATCH_NAMES = ("baseOffset", "position")

_UNLIMITED = 2**62
_MAX_INT32 = 2**31 - 1
# Columns that are the same for all records of a batch: their option, what they are without either.
_OF_BATCH = {
    "partitionLeaderEpoch": ("partition_leader_epoch", 0),
    "producerId": ("producer_id", -1),
    "producerEpoch": ("producer_epoch", -1),
    "timestampType": ("timestamp_type", 0),
    "magic": ("magic", MAGIC_V2),
    "isTransactional": ("is_transactional", 0),
}


@dataclass(frozen=True)
class BatchOptions:
    """How records become batches, and what is said of every batch; see `encode_batches`."""

    compression_type: str | None = None
    compression_level: int | None = None
    batch_size: int | None = None
    batch_records: int | None = None
    base_offset: int = 0
    timestamp: int | None = None
    timestamp_type: int | None = None
    partition_leader_epoch: int | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    base_sequence: int | None = None
    is_transactional: bool | None = None
    control_type: str | None = None
    coordinator_epoch: int | None = None
    delete_horizon_ms: int | None = None
    magic: int | None = None

    def __post_init__(self) -> None:
        if self.compression_type is not None and self.compression_type not in COMPRESSION_IDS:
            raise ValueError(
                f"unknown compression type {self.compression_type!r}; there are: "
                + ", ".join(COMPRESSION_IDS)
            )
        if self.compression_level is not None:
            if self.codec is None:
                raise ValueError("compression_level needs a compression_type")
            check_level(self.codec, self.compression_level)
        for name in ("batch_size", "batch_records"):
            limit = getattr(self, name)
            if limit is not None and limit < 1:
                raise ValueError(f"{name} must be at least 1, not {limit}")
        for name, known in (("magic", (None, 0, 1, 2)), ("timestamp_type", (None, 0, 1))):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} is {known[1:]}, not {getattr(self, name)}")

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> BatchOptions:
        """Options that come as text, in the spelling of columns: compressionType and the like.

        >>> BatchOptions.of({"compressionType": "zstd", "baseOffset": "42"}).base_offset
        42
        """
        known = {_camel(field.name).lower(): field for field in fields(cls)}
        options: dict[str, Any] = {}
        for name, text in texts.items():
            field = known.get(name.lower())
            if field is None:
                names = ", ".join(_camel(field.name) for field in fields(cls))
                raise ValueError(f"unknown option {name!r}; there are: {names}")
            options[field.name] = _parsed(name, text, str(field.type))
        return cls(**options)

    @property
    def codec(self) -> int | None:
        return None if self.compression_type is None else COMPRESSION_IDS[self.compression_type]

    def keeps_batches(self, names: list[str]) -> bool:
        """Whether records of these columns stay in the batches that they name."""
        return self.batch_size is None and any(name in names for name in BATCH_NAMES)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _parsed(name: str, text: str, kind: str) -> int | bool | str:
    if kind.startswith("str"):
        return text
    if kind.startswith("bool"):
        if text.lower() not in ("true", "false"):
            raise ValueError(f"{name} is true or false, not {text!r}")
        return text.lower() == "true"
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{name} is a number, not {text!r}") from None


class Batching:
    """Plans batches of records; sequence numbers go on from one call to the next."""

    def __init__(self, options: BatchOptions) -> None:
        self._options = options
        self._next_sequence = options.base_sequence
        self._last_offset: int | None = None

    def plan(self, records: pa.RecordBatch, rows: Rows, *, is_last: bool) -> Plan:
        """Batches of the rows; where more rows follow, without the one that may go on in them."""
        options = self._options
        keeps = options.keeps_batches(records.schema.names)
        said = _said_of_batches(records, options, keeps=keeps)
        _check_magic(rows, said)
        begins = np.zeros(rows.offset.size, dtype=np.bool_)
        for name, column in said.items():
            if isinstance(column, np.ndarray) and name != "sequence":
                begins[1:] |= column[1:] != column[:-1]
        sequence = said.get("sequence")
        if isinstance(sequence, np.ndarray):
            begins[1:] |= _is_out_of_sequence(sequence, rows.offset)
        if not keeps and isinstance(said["isControl"], np.ndarray):
            begins |= said["isControl"] != 0  # markers are alone in their batches
        firsts = first_rows(
            rows,
            begins,
            batch_size=options.batch_size or (_UNLIMITED if keeps else DEFAULT_BATCH_SIZE),
            batch_records=options.batch_records or _UNLIMITED,
        )
        if self._last_offset is not None and rows.offset[0] <= self._last_offset:
            raise not_behind(rows.offset[0], self._last_offset, 0)
        if not is_last:
            firsts = firsts[:-1]
        if firsts[-1] > 0:
            self._last_offset = int(rows.offset[firsts[-1] - 1])
        return Plan(self._headers(rows, firsts, said), firsts)

    def _headers(
        self, rows: Rows, firsts: Int64s, said: dict[str, Int64s | int]
    ) -> npt.NDArray[np.void]:
        options = self._options
        of_first = {
            name: column[firsts[:-1]] if isinstance(column, np.ndarray) else column
            for name, column in said.items()
        }
        headers = plain_headers(rows, firsts)
        if "baseOffset" in of_first:
            _move_base(headers, of_first["baseOffset"])
        for name in ("magic", "partitionLeaderEpoch", "producerId", "producerEpoch"):
            headers[name] = of_first[name]
        if options.base_sequence is not None:
            headers["baseSequence"] = self._sequences(np.diff(firsts))
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

    def _sequences(self, counts: Int64s) -> npt.NDArray[np.int32]:
        """A producer's sequence numbers count its records."""
        assert self._next_sequence is not None
        before = np.concatenate([[0], counts.cumsum()])
        sequences = increment_sequence(np.full(before.size, self._next_sequence), before)
        self._next_sequence = int(sequences[-1])
        return sequences[:-1]


class StatedBatches:
    """Batches whose headers are known: each takes the rows of its position."""

    def __init__(self, batches: pa.Table, codec: int | None) -> None:
        for name in _STATED:
            if name not in batches.column_names:
                raise ValueError(f"batches have no column {name}: see read_record_batches")
        self._position = _numbers(batches, "position")
        self._header = _stated_headers(batches, codec)
        self._next = 0
        if (np.diff(self._position) <= 0).any():
            raise ValueError("batches are not in the order of their positions")

    def plan(self, rows: Rows, position: Int64s, *, is_last: bool) -> Plan:
        """Batches of the rows, and those before them that have none; see `Batching.plan`."""
        if not is_last:  # the last row's batch may have more
            position = position[: np.searchsorted(position, position[-1])]
        stop = int(np.searchsorted(self._position, position[-1:], side="right").sum())
        stop = max(stop, self._next)
        known = self._position[self._next : stop]
        is_known = np.isin(position, known)
        if not is_known.all():
            lost = int(position[np.argmin(is_known)])
            raise InvalidRecordError(
                f"batches have none at position {lost}, where a record is from"
            )
        firsts = np.append(np.searchsorted(position, known), position.size)
        return self._take(stop, rows, firsts)

    def rest(self, rows: Rows) -> Plan:
        """Those that are left, which have no rows."""
        left = self._position.size - self._next
        return self._take(self._position.size, rows, np.zeros(left + 1, dtype=np.int64))

    def _take(self, stop: int, rows: Rows, firsts: Int64s) -> Plan:
        headers = self._header[self._next : stop].copy()
        self._next = stop
        counts = np.diff(firsts)
        shrunk = np.flatnonzero(counts != headers["recordsCount"])
        headers["recordsCount"] = counts
        for batch in shrunk.tolist():
            stamps = rows.timestamp[firsts[batch] : firsts[batch + 1]]
            if stamps.size and not headers["attributes"][batch] & TIMESTAMP_TYPE_MASK:
                headers["maxTimestamp"][batch] = stamps.max()
        # Where a set of messages begins its header does not say.
        checked = (counts > 0) & (headers["magic"] == MAGIC_V2)
        first, last = firsts[:-1][checked], firsts[1:][checked] - 1
        filled = headers[checked]
        if first.size:
            _check_offsets(rows.offset[first], rows.offset[last], filled)
        return Plan(headers, firsts)


_STATED = (
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
    "timestampType": TIMESTAMP_TYPE_MASK,
    "isTransactional": TRANSACTIONAL_MASK,
    "isControl": CONTROL_MASK,
}


def _stated_headers(batches: pa.Table, codec: int | None) -> npt.NDArray[np.void]:
    headers = np.zeros(batches.num_rows, dtype=NATIVE_BATCH_HEADER)
    # Of a set of messages the header says neither where it begins nor how many they are.
    last = _numbers(batches, "lastOffset")
    base = _numbers(batches, "baseOffset", null=-1)
    headers["baseOffset"] = np.where(base < 0, last, base)
    headers["lastOffsetDelta"] = last - headers["baseOffset"]
    headers["recordsCount"] = _numbers(batches, "recordsCount", null=-1)
    for name in ("magic", "partitionLeaderEpoch", "producerId", "producerEpoch", "baseSequence"):
        headers[name] = _numbers(batches, name)
    for name in ("baseTimestamp", "maxTimestamp"):
        headers[name] = milliseconds_of(_combined(batches[name]), name)
    attributes = np.full(batches.num_rows, codec or 0, dtype=np.int64)
    if codec is None:
        types = batches["compressionType"].to_pylist()
        unknown = set(types) - set(COMPRESSION_IDS)
        if unknown:
            raise ValueError(f"batches have a compressionType {min(map(str, unknown))}")
        attributes |= np.array([COMPRESSION_IDS[name] for name in types], dtype=np.int64)
    attributes |= np.where(_numbers(batches, "timestampType") == 1, TIMESTAMP_TYPE_MASK, 0)
    attributes |= np.where(_numbers(batches, "isTransactional") > 0, TRANSACTIONAL_MASK, 0)
    attributes |= np.where(_numbers(batches, "isControlBatch") > 0, CONTROL_MASK, 0)
    has_horizon = batches["deleteHorizonMs"].is_valid().to_numpy()
    attributes |= np.where(has_horizon, DELETE_HORIZON_MASK, 0)
    headers["attributes"] = attributes
    return headers


def _said_of_batches(
    records: pa.RecordBatch, options: BatchOptions, *, keeps: bool
) -> dict[str, Int64s | int]:
    """What the caller or a column says of each record's batch: one number, or one for each."""
    names = records.schema.names
    said: dict[str, Int64s | int] = {}
    for name, (option, default) in _OF_BATCH.items():
        stated = getattr(options, option)
        if stated is not None:
            said[name] = int(stated)
        elif name in names:
            said[name] = numbers_of(records.column(name), name, null=default)
        else:
            said[name] = default
    if options.control_type is not None:
        said["isControl"] = 1
    elif "controlType" in names:
        said["isControl"] = (
            records.column("controlType").is_valid().to_numpy(False).astype(np.int64)
        )
    else:
        said["isControl"] = 0
    if options.is_transactional is None and "isTransactional" not in names:
        said["isTransactional"] = said["isControl"]
    for name in BATCH_NAMES if keeps else ():
        if name in names:
            said[name] = numbers_of(records.column(name), name)
    if "sequence" in names and options.base_sequence is None:
        said["sequence"] = numbers_of(records.column("sequence"), "sequence", null=-1)
    return said


def _check_magic(rows: Rows, said: dict[str, Int64s | int]) -> None:
    """Raise where a message of v0 or v1 would have what only v2 has."""
    is_old = np.broadcast_to(np.less(said["magic"], MAGIC_V2), rows.offset.size)
    if not is_old.any():
        return
    magic = int(np.broadcast_to(said["magic"], is_old.size)[np.argmax(is_old)])
    if (rows.headers.sizes[is_old] > 1).any():
        raise InvalidRecordError(f"Magic v{magic} does not support record headers")
    for name, words in (("isControl", "control"), ("isTransactional", "transactional")):
        if np.greater(np.broadcast_to(said[name], is_old.size)[is_old], 0).any():
            raise InvalidRecordError(f"Magic v{magic} does not support {words} records")


def _is_out_of_sequence(sequence: Int64s, offset: Int64s) -> npt.NDArray[np.bool_]:
    """Whether a record's sequence number does not follow from the one before."""
    due = np.where(sequence[:-1] < 0, -1, increment_sequence(sequence[:-1], np.diff(offset)))
    out: npt.NDArray[np.bool_] = sequence[1:] != due
    return out


def _move_base(headers: npt.NDArray[np.void], base: Int64s | int) -> None:
    """Have batches begin at other offsets than their first records', as compaction leaves them."""
    first = headers["baseOffset"].copy()
    last = first + headers["lastOffsetDelta"]
    headers["baseOffset"] = base
    headers["lastOffsetDelta"] = np.minimum(last - base, _MAX_INT32)
    _check_offsets(first, last, headers)


def _check_offsets(first: Int64s, last: Int64s, headers: npt.NDArray[np.void]) -> None:
    """Raise where a batch's records are before its base offset, or too far behind it."""
    base = headers["baseOffset"]
    bad = (first < base) | (last - base > _MAX_INT32)
    if bad.any():
        row = int(np.argmax(bad))
        offset = int(first[row] if first[row] < base[row] else last[row])
        raise InvalidOffsetError(
            f"offset {offset} is not within an int32 behind its batch's base offset",
            base_offset=int(base[row]),
        )


def _numbers(table: pa.Table, name: str, null: int | None = None) -> Int64s:
    return numbers_of(_combined(table[name]), name, null)


def _combined(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)
