from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from strategies import HEADER, INT32, VARINTS, VARLONGS
from strategies import RECORD as ANY_RECORD

from kafkajit import testing as kt
from kafkajit.sizes import (
    header_size_in_bytes,
    record_size_in_bytes,
    size_of_varint,
    size_of_varlong,
)


@given(ANY_RECORD, VARLONGS, VARINTS)
def test_sizes_are_those_of_what_is_written(
    record: kt.Record, timestamp_delta: int, offset_delta: int
) -> None:
    record = replace(record, timestamp=timestamp_delta, offset_delta=offset_delta)
    sizes = [
        header_size_in_bytes(len(key.encode()), -1 if value is None else len(value))
        for key, value in record.headers
    ]
    size = record_size_in_bytes(
        offset_delta,
        timestamp_delta,
        -1 if record.key is None else len(record.key),
        -1 if record.value is None else len(record.value),
        len(sizes),
        sum(sizes),
    )
    assert size == len(record.encode(0, 0))
    assert size.dtype == np.int32


@given(HEADER)
def test_a_headers_size_is_what_it_adds_to_a_record(header: tuple[str, bytes | None]) -> None:
    key, value = header
    size = header_size_in_bytes(len(key.encode()), -1 if value is None else len(value))
    body = kt.varint(len(key.encode())) + key.encode()
    body += kt.varint(-1) if value is None else kt.varint(len(value)) + value
    assert size == len(body)


def test_sizes_take_rows_and_broadcast() -> None:
    assert record_size_in_bytes([0, 1, 2], 0, 3, [[4], [-9]]).tolist() == [[14] * 3, [10] * 3]
    assert record_size_in_bytes([], [], [], []).tolist() == []
    assert header_size_in_bytes(3, [-1, -7, 0, 64]).tolist() == [5, 5, 5, 70]


@given(INT32)
def test_a_size_for_any_offset_delta(delta: int) -> None:
    assert record_size_in_bytes(delta, 0, -1, -1) == len(kt.Record(offset_delta=delta).encode(0, 0))


def test_sizes_keep_the_shape_of_the_values() -> None:
    assert size_of_varint([[0, 64], [-65, 8192]]).tolist() == [[1, 2], [2, 3]]
    assert size_of_varlong(np.arange(0, 200, 64)[::2]).tolist() == [1, 2]
    assert size_of_varlong([]).tolist() == []


def test_a_value_that_is_no_int32_has_no_size_as_a_varint() -> None:
    with pytest.raises(OverflowError):
        size_of_varint([2**31])
