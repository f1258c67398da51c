"""Rows and plans for encode/record_writer.py, built from the records of kafkajit.testing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kafkajit import testing as kt
from kafkajit.encode.batch_plan import BatchPlan, ByteStrings, RecordRows
from kafkajit.encode.record_writer import BatchWriter
from kafkajit.format.layout import NATIVE_BATCH_HEADER
from kafkajit.storage.source import as_bytes


def field(values: Sequence[bytes | None]) -> ByteStrings:
    """A field with these values, in shuffled order, with another byte before each."""
    data = b""
    starts = [0] * len(values)
    for place in sorted(range(len(values)), key=lambda place: place * 7 % 5):
        data += b"~"
        starts[place] = len(data)
        data += values[place] or b""
    sizes = [-1 if value is None else len(value) for value in values]
    return ByteStrings(
        as_bytes(data), np.array(starts, dtype=np.int64), np.array(sizes, dtype=np.int64)
    )


def headers_field(records: Sequence[kt.Record]) -> ByteStrings:
    """Headers as they are laid out in a record; empty for a record without headers."""
    encoded = []
    for record in records:
        laid_out = kt.varint(len(record.headers))
        for key, value in record.headers:
            key = key.encode() if isinstance(key, str) else key
            laid_out += kt.varint(len(key)) + key
            laid_out += kt.varint(-1 if value is None else len(value)) + (value or b"")
        encoded.append(laid_out if record.headers else b"")
    return field(encoded)


def rows_of_records(
    records: Sequence[kt.Record], offsets: Sequence[int], timestamp: int = 0
) -> RecordRows:
    """These records as rows."""
    stamps = [timestamp if record.timestamp is None else record.timestamp for record in records]
    return RecordRows(
        np.array(offsets, dtype=np.int64),
        np.array(stamps, dtype=np.int64),
        field([record.key for record in records]),
        field([record.value for record in records]),
        headers_field(records),
    )


def plan_of(batches: Sequence[dict[str, Any]]) -> BatchPlan:
    """A plan of batches with these row counts and header fields."""
    headers = np.zeros(len(batches), dtype=NATIVE_BATCH_HEADER)
    for header, batch in zip(headers, batches, strict=True):
        for name, value in ({"magic": 2, "recordsCount": batch["rows"]} | batch).items():
            if name != "rows":
                header[name] = value
    counts = [batch["rows"] for batch in batches]
    return BatchPlan(headers, np.append(0, np.cumsum(counts)).astype(np.int64))


def written(
    rows: RecordRows, plan: BatchPlan, position: int = 0, level: int | None = None
) -> bytes:
    """The bytes that the writer wrote, after a check that it left the bytes around them alone."""
    most = BatchWriter.bound(rows, plan)
    out = np.full(position + most + 9, 0xAA, dtype=np.uint8)
    end = BatchWriter(level).write(rows, plan, out[: position + most], position)
    assert (out[:position] == 0xAA).all()
    assert (out[position + most :] == 0xAA).all()
    return out[position:end].tobytes()


def huge_rows(sizes: list[int]) -> RecordRows:
    """Rows that claim to have values of these sizes, without any data."""
    numbers = np.arange(len(sizes), dtype=np.int64)
    nothing = ByteStrings(as_bytes(b""), np.zeros_like(numbers), np.zeros_like(numbers))
    value = nothing._replace(sizes=np.array(sizes, dtype=np.int64))
    keys = nothing._replace(sizes=np.full_like(numbers, -1))
    return RecordRows(numbers, numbers, keys, value, nothing)


T = 1_700_000_000_000


def log_of_all_kinds() -> bytes:
    """v2 batches with gaps, a marker, a delete horizon, an empty one; messages and sets."""
    records = [kt.Record(b"k%d" % n, b"v%d" % n, timestamp=T + n) for n in range(4)]
    gone = [
        kt.Record(b"k", b"v", offset_delta=3, timestamp=T),
        kt.Record(b"l", None, offset_delta=5),
    ]
    return b"".join(
        [
            kt.batch(records, base_offset=0, producer_id=7, producer_epoch=1, base_sequence=3),
            kt.control_batch(1, base_offset=4, coordinator_epoch=5, producer_id=7),
            kt.batch(gone, base_offset=10, last_offset_delta=8, delete_horizon_ms=T + 99),
            kt.batch([], base_offset=20, last_offset_delta=4, base_timestamp=-1, max_timestamp=T),
            kt.batch(records, base_offset=30, codec="gzip", partition_leader_epoch=6),
            kt.batch(records, base_offset=40, timestamp_type=1, max_timestamp=T, base_timestamp=T),
            kt.message_set(records, base_offset=50, magic=0),
            kt.message_set(records, base_offset=60, magic=0, codec="snappy"),
            kt.message_set(records, base_offset=70, magic=1),
            kt.message_set(records, base_offset=80, magic=1, codec="lz4"),
            kt.batch([], base_offset=90, is_transactional=True, producer_id=7),
        ]
    )
