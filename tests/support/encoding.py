"""Rows and plans for encode/record_writer.py, from the records of kafkajit.testing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kafkajit import testing as kt
from kafkajit.encode.record_writer import BatchWriter, Field, Plan, Rows
from kafkajit.format.layout import NATIVE_BATCH_HEADER
from kafkajit.storage.source import as_bytes


def field(values: Sequence[bytes | None]) -> Field:
    """The values in an order of their own, with a byte of something else between them."""
    data = b""
    starts = [0] * len(values)
    for place in sorted(range(len(values)), key=lambda place: place * 7 % 5):
        data += b"~"
        starts[place] = len(data)
        data += values[place] or b""
    sizes = [-1 if value is None else len(value) for value in values]
    return Field(as_bytes(data), np.array(starts, dtype=np.int64), np.array(sizes, dtype=np.int64))


def headers_field(records: Sequence[kt.Record]) -> Field:
    """Headers as they are laid out in a record; nothing if no record has headers."""
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
) -> Rows:
    """The bytes that the kernel writes for these records."""
    stamps = [timestamp if record.timestamp is None else record.timestamp for record in records]
    return Rows(
        np.array(offsets, dtype=np.int64),
        np.array(stamps, dtype=np.int64),
        field([record.key for record in records]),
        field([record.value for record in records]),
        headers_field(records),
    )


def plan_of(batches: Sequence[dict[str, Any]]) -> Plan:
    """Batches with a number of records each, and any other fields of their headers."""
    headers = np.zeros(len(batches), dtype=NATIVE_BATCH_HEADER)
    for header, batch in zip(headers, batches, strict=True):
        for name, value in ({"magic": 2, "recordsCount": batch["rows"]} | batch).items():
            if name != "rows":
                header[name] = value
    counts = [batch["rows"] for batch in batches]
    return Plan(headers, np.append(0, np.cumsum(counts)).astype(np.int64))


def written(rows: Rows, plan: Plan, position: int = 0, level: int | None = None) -> bytes:
    """The written bytes; bytes around them stay unchanged, and no more room is used than asked."""
    most = BatchWriter.bound(rows, plan)
    out = np.full(position + most + 9, 0xAA, dtype=np.uint8)
    end = BatchWriter(level).write(rows, plan, out[: position + most], position)
    assert (out[:position] == 0xAA).all()
    assert (out[position + most :] == 0xAA).all()
    return out[position:end].tobytes()
