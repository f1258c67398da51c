from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import NULLABLE

from kafkajit.kernel.intrinsics import WIDE
from kafkajit.records.gather import (
    copy_binary,
    is_ascii,
    plan_binary,
    write_validity,
    write_views,
)
from kafkajit.storage.source import as_bytes

FENCE = 0xAA
FIELDS = st.lists(NULLABLE, max_size=20)


def laid_out(fields: list[bytes | None]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bytes with the fields in them, apart; where they start, and their sizes."""
    content, starts, sizes = bytearray(b"<"), [], []
    for field in fields:
        starts.append(len(content))
        sizes.append(-1 if field is None else len(field))
        content += (field or b"") + b"|"
    return as_bytes(bytes(content)), np.array(starts, np.int32), np.array(sizes, np.int32)


@given(FIELDS)
def test_binary_columns_hold_the_fields(fields: list[bytes | None]) -> None:
    content, starts, sizes = laid_out(fields)
    offsets = np.empty(len(fields) + 1, dtype=np.int32)
    total, nulls = plan_binary(sizes, offsets)
    assert total == sum(len(field or b"") for field in fields)
    assert nulls == fields.count(None)
    data = np.full(total + WIDE + 8, FENCE, dtype=np.uint8)
    copy_binary(content, starts, offsets, data[: total + WIDE])
    assert (data[total + WIDE :] == FENCE).all()
    for field, start, end in zip(fields, offsets[:-1], offsets[1:], strict=True):
        assert data[start:end].tobytes() == (field or b"")


@given(FIELDS)
def test_validity_has_a_bit_for_what_is_not_null(fields: list[bytes | None]) -> None:
    bitmap = np.zeros((len(fields) + 7) // 8, dtype=np.uint8)
    write_validity(laid_out(fields)[2], bitmap)
    bits = np.unpackbits(bitmap, bitorder="little").tolist()
    padding = [0] * (len(bits) - len(fields))
    assert bits == [int(field is not None) for field in fields] + padding


@pytest.mark.parametrize("size", [-1, 0, 1, 4, 11, 12, 13, 100])
def test_a_view_holds_small_fields_and_points_at_large_ones(size: int) -> None:
    field = None if size < 0 else bytes(range(size))
    content, starts, sizes = laid_out([b"before", field])
    views = np.full((2, 2), -1, dtype=np.int64)
    assert write_views(content, starts, sizes, views) == (field is None)
    view = views[1].tobytes()
    assert int.from_bytes(view[:4], "little") == max(size, 0)
    if size <= 12:
        assert view[4:] == (field or b"").ljust(12, b"\0")
    else:
        assert view[4:8] == field[:4]
        assert int.from_bytes(view[8:12], "little") == 0
        assert int.from_bytes(view[12:16], "little") == starts[1]


@given(st.binary(max_size=40), st.integers(0, 40))
def test_ascii_is_told_up_to_the_size(data: bytes, size: int) -> None:
    size = min(size, len(data))
    assert is_ascii(as_bytes(data), size) == data[:size].isascii()


@given(st.integers(1, 40), st.integers(0, 39))
def test_a_single_byte_that_is_not_ascii_is_seen(size: int, at: int) -> None:
    data = bytearray(size)
    data[at % size] = 0x80
    assert not is_ascii(as_bytes(bytes(data)), size)
