from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import VARINTS, VARLONGS

from kafkajit import testing as kt
from kafkajit.format.varint import (
    MAX_VARINT_SIZE,
    MAX_VARLONG_SIZE,
    PAST_END,
    TOO_LONG,
    read_varint,
    read_varlong,
    varint_rest,
    varlong_rest,
)
from kafkajit.sizes import size_of_varint, size_of_varlong
from kafkajit.storage.source import as_bytes

MASK = 2**64 - 1


def edges(bits: int) -> list[tuple[int, int]]:
    """(value, size) on both sides of every place where an encoding grows by a byte."""
    last = (bits - 1) // 7
    found = [(0, 1)]
    for size in range(1, last + 1):
        most = 2 ** (7 * size - 1)  # 63 | 64, 8191 | 8192, …
        found += [(most - 1, size), (-most, size), (most, size + 1), (-most - 1, size + 1)]
    return [*found, (2 ** (bits - 1) - 1, last + 1), (-(2 ** (bits - 1)), last + 1)]


def zigzag(raw: int) -> int:
    return (raw & MASK) >> 1 ^ -(raw & 1)


def rest_of(kernel: Callable[..., tuple[int, int]], encoded: bytes) -> tuple[int, int]:
    """What a kernel that goes on behind the first byte makes of a whole encoding."""
    value, position = kernel(as_bytes(encoded), 1, np.int64(encoded[0]))
    return zigzag(int(value)), position


@pytest.mark.parametrize(("value", "size"), edges(32))
def test_an_int32_at_an_edge_is_a_varint_of_that_size(value: int, size: int) -> None:
    encoded = kt.varint(value)
    assert len(encoded) == size
    assert size_of_varint([value]).tolist() == [size]
    assert read_varint(as_bytes(encoded), 0, size) == (value, size)
    if size > 1:
        assert rest_of(varint_rest, encoded) == (value, size)


@pytest.mark.parametrize(("value", "size"), edges(64))
def test_an_int64_at_an_edge_is_a_varlong_of_that_size(value: int, size: int) -> None:
    encoded = kt.varint(value)
    assert len(encoded) == size
    assert size_of_varlong([value]).tolist() == [size]
    assert read_varlong(as_bytes(encoded), 0, size) == (value, size)
    if size > 1:
        assert rest_of(varlong_rest, encoded) == (value, size)


@pytest.mark.parametrize(
    ("encoded", "value"),
    [  # written out by hand: zigzag makes 0, -1, 1, -2 of 0, 1, 2, 3
        ("00", 0),
        ("01", -1),
        ("02", 1),
        ("7f", -64),
        ("8001", 64),
        ("8101", -65),
        ("feffffff0f", 2**31 - 1),
        ("ffffffff0f", -(2**31)),
    ],
)
def test_varints_have_these_bytes(encoded: str, value: int) -> None:
    raw = bytes.fromhex(encoded)
    assert kt.varint(value) == raw
    assert read_varint(as_bytes(raw), 0, len(raw)) == (value, len(raw))
    assert read_varlong(as_bytes(raw), 0, len(raw)) == (value, len(raw))


@pytest.mark.parametrize("last", [0x00, 0x01, 0x7F, 0x80, 0xFF])
def test_a_varint_of_six_bytes_is_an_error(last: int) -> None:
    raw = as_bytes(b"\xff" * MAX_VARINT_SIZE + bytes([last]))
    assert read_varint(raw, 0, raw.size)[1] == TOO_LONG
    assert varint_rest(raw, 1, np.int64(0xFF))[1] == TOO_LONG


@pytest.mark.parametrize("last", [0x00, 0x01, 0x7F, 0x80, 0xFF])
def test_a_varlong_of_eleven_bytes_is_an_error(last: int) -> None:
    raw = as_bytes(b"\xff" * MAX_VARLONG_SIZE + bytes([last]))
    assert read_varlong(raw, 0, raw.size)[1] == TOO_LONG
    assert varlong_rest(raw, 1, np.int64(0xFF))[1] == TOO_LONG


@pytest.mark.parametrize("size", range(1, MAX_VARLONG_SIZE + 1))
@pytest.mark.parametrize("value", [0, -1, 63])
def test_an_encoding_longer_than_needed_is_read(value: int, size: int) -> None:
    padding = b"\x80" * (size - 2) + b"\x00" if size > 1 else b""
    first = kt.varint(value)[0] | (0x80 if padding else 0)
    raw = bytes([first]) + padding
    assert read_varlong(as_bytes(raw), 0, size) == (value, size)
    if size > 1:
        assert rest_of(varlong_rest, raw) == (value, size)
    if size <= MAX_VARINT_SIZE:
        assert read_varint(as_bytes(raw), 0, size) == (value, size)
        if size > 1:
            assert rest_of(varint_rest, raw) == (value, size)


@pytest.mark.parametrize("size", range(MAX_VARLONG_SIZE))
def test_a_varint_cut_by_the_end_is_an_error(size: int) -> None:
    raw = as_bytes(b"\x80" * size + b"\x00" * 20)  # what stands behind the end is not looked at
    assert read_varlong(raw, 0, size)[1] == PAST_END
    if size < MAX_VARINT_SIZE:
        assert read_varint(raw, 0, size)[1] == PAST_END


@pytest.mark.parametrize("read", [read_varint, read_varlong], ids=["varint", "varlong"])
@pytest.mark.parametrize("position", [3, 4, 100])
def test_a_varint_behind_the_end_is_an_error(
    read: Callable[..., tuple[int, int]], position: int
) -> None:
    assert read(as_bytes(bytes(3)), position, 3)[1] == PAST_END


def test_what_a_fifth_byte_has_above_bit_31_is_lost() -> None:
    raw = b"\xff\xff\xff\xff\x7f"
    assert read_varint(as_bytes(raw), 0, 5) == (-(2**31), 5)
    assert rest_of(varint_rest, raw) == (-(2**31), 5)


def expected(data: bytes, position: int, end: int, kind: str) -> tuple[int, int] | None:
    reader = reference._Reader(data, position, end)
    try:
        value = reader.varint() if kind == "varint" else reader.varlong()
    except reference.Invalid:
        return None
    return value, reader.position


MANY_LONG = st.lists(st.integers(0, 255) | st.integers(128, 255), max_size=24).map(bytes)


@given(MANY_LONG, st.integers(0, 24), st.integers(0, 24))
def test_any_bytes_are_read_as_the_reference_reads_them(
    data: bytes, position: int, end: int
) -> None:
    end = min(end, len(data))
    for kind, read in (("varint", read_varint), ("varlong", read_varlong)):
        value, after = read(as_bytes(data), position, end)
        want = expected(data, position, end, kind)
        assert ((value, after) if after >= 0 else None) == want


@given(MANY_LONG.filter(lambda data: data[:1] >= b"\x80"))
def test_the_unchecked_kernels_agree_with_the_checked_ones(data: bytes) -> None:
    padded = data + bytes(12)  # they are called where there is room
    pairs = ((varint_rest, read_varint), (varlong_rest, read_varlong))
    for rest, read in pairs:
        value, after = read(as_bytes(padded), 0, len(padded))
        rest_value, rest_after = rest_of(rest, padded)
        assert rest_after == after
        if after >= 0:
            assert rest_value == value


@given(VARINTS, st.binary(max_size=5))
def test_an_int32_comes_back(value: int, before: bytes) -> None:
    raw = before + kt.varint(value)
    assert read_varint(as_bytes(raw), len(before), len(raw)) == (value, len(raw))
    assert size_of_varint(value) == len(raw) - len(before)


@given(VARLONGS, st.binary(max_size=5))
def test_an_int64_comes_back(value: int, before: bytes) -> None:
    raw = before + kt.varint(value)
    assert read_varlong(as_bytes(raw), len(before), len(raw)) == (value, len(raw))
    assert size_of_varlong(value) == len(raw) - len(before)
