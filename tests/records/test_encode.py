from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kafkajit import testing as kt
from kafkajit.records.encode import Field, Rows, plain_headers
from kafkajit.source import as_bytes


def field(values: Sequence[bytes | None]) -> Field:
    """The values one behind the other, with a byte of something else between them."""
    data, starts = b"", []
    for value in values:
        data += b"~"
        starts.append(len(data))
        data += value or b""
    sizes = [-1 if value is None else len(value) for value in values]
    return Field(as_bytes(data), np.array(starts, dtype=np.int64), np.array(sizes, dtype=np.int64))


def headers_field(records: Sequence[kt.Record]) -> Field:
    """Headers as they stand in a record, nothing at all where there are none."""
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
    """What is written of these records."""
    stamps = [timestamp if record.timestamp is None else record.timestamp for record in records]
    return Rows(
        np.array(offsets, dtype=np.int64),
        np.array(stamps, dtype=np.int64),
        field([record.key for record in records]),
        field([record.value for record in records]),
        headers_field(records),
    )


def test_a_header_has_the_largest_timestamp_of_its_own_records() -> None:
    rows = rows_of_records([kt.Record(timestamp=t) for t in (5, 3, 9, 7, 1)], range(5))
    headers = plain_headers(rows, np.array([0, 2, 4, 5]))
    assert headers["maxTimestamp"].tolist() == [5, 9, 1]


def test_rows_behind_the_last_batch_say_nothing_of_it() -> None:
    rows = rows_of_records([kt.Record(timestamp=t) for t in (5, 3, 9, 7, 1)], range(5))
    headers = plain_headers(rows, np.array([0, 1, 2]))
    assert headers["maxTimestamp"].tolist() == [5, 3]
    assert plain_headers(rows, np.array([0])).size == 0
