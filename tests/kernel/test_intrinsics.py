from __future__ import annotations

import ctypes

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import (
    HALF,
    HAS_C,
    WIDE,
    _multiply_high_plain,
    address_of,
    call_c,
    choose,
    copy_bytes,
    copy_half,
    copy_wide,
    multiply_high,
    read_int32,
    read_int64,
    read_word,
    write_word,
)
from kafkajit.storage.source import as_bytes

FENCE = 0xAA


@kernel
def call_copy_bytes(target, t, source, s, size):
    copy_bytes(target, t, source, s, size)


@kernel
def call_copy_wide(target, t, source, s):
    copy_wide(target, t, source, s)


@kernel
def call_copy_half(target, t, source, s):
    copy_half(target, t, source, s)


@kernel
def call_choose(condition, a, b):
    return choose(condition, np.int64(a), np.int64(b))


@kernel
def call_read_word(content, position):
    return read_word(content, np.int64(position))


@kernel
def call_memcmp(function, a, b, size):
    zero = np.int64(0)
    return call_c(function, address_of(a, zero), address_of(b, zero), size, zero, zero, zero, zero)


@kernel
def call_write_word(target, t, word):
    write_word(target, t, np.uint64(word))


@kernel
def call_multiply_high(a, b):
    return multiply_high(np.uint64(a), np.uint64(b))


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
@example(2**64 - 1, 2**64 - 1)
@example(2**32 - 1, 2**63 + 2**32)
def test_the_upper_half_of_a_product_is_what_python_has(a: int, b: int) -> None:
    assert int(call_multiply_high(np.uint64(a), np.uint64(b))) == a * b >> 64
    assert int(_multiply_high_plain(np.uint64(a), np.uint64(b))) == a * b >> 64


@given(st.binary(min_size=8, max_size=8), st.integers(0, 20))
def test_a_word_is_written_with_its_lowest_byte_first(raw: bytes, t: int) -> None:
    target = np.full(50, FENCE, dtype=np.uint8)
    call_write_word(target, t, np.uint64(int.from_bytes(raw, "little")))
    assert target[t : t + 8].tobytes() == raw
    assert (target[:t] == FENCE).all()
    assert (target[t + 8 :] == FENCE).all()


@given(
    st.integers(0, 3 * WIDE + 5),
    st.integers(0, 40),
    st.integers(0, 40),
    st.integers(0, 2 * WIDE),
)
def test_copying_writes_what_was_asked_for_and_no_further_than_its_room(
    size: int, s: int, t: int, behind: int
) -> None:
    source = as_bytes(np.arange(s + size + behind, dtype=np.uint8))
    target = np.full(t + size + WIDE + 50, FENCE, dtype=np.uint8)
    call_copy_bytes(target, t, source, s, size)
    assert target[t : t + size].tolist() == source[s : s + size].tolist()
    assert (target[:t] == FENCE).all()
    assert (target[t + size + WIDE :] == FENCE).all()


@pytest.mark.parametrize("size", [0, 1, WIDE - 1, WIDE, WIDE + 1])
def test_copying_reads_nothing_behind_the_source(size: int) -> None:
    memory = np.full(200, FENCE, dtype=np.uint8)
    memory[:size] = 7
    target = np.zeros(size + WIDE, dtype=np.uint8)
    call_copy_bytes(target, 0, as_bytes(memory[:size]), 0, size)
    assert (target[:size] == 7).all()
    assert (target[size:] == 0).all()  # byte by byte: there was no room for a wide copy


def test_a_wide_copy_moves_that_many_bytes() -> None:
    source = as_bytes(np.arange(100, dtype=np.uint8))
    target = np.full(100, FENCE, dtype=np.uint8)
    call_copy_wide(target, 5, source, 9)
    expected = [FENCE] * 5 + list(range(9, 9 + WIDE)) + [FENCE] * (95 - WIDE)
    assert target.tolist() == expected


def test_a_copy_of_half_that_moves_half_as_much() -> None:
    source = as_bytes(np.arange(100, dtype=np.uint8))
    target = np.full(100, FENCE, dtype=np.uint8)
    call_copy_half(target, 5, source, 9)
    assert target.tolist() == [FENCE] * 5 + list(range(9, 9 + HALF)) + [FENCE] * (95 - HALF)


@given(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_one_of_two_is_chosen(condition: bool, a: int, b: int) -> None:
    assert call_choose(condition, np.int64(a), np.int64(b)) == (a if condition else b)


@given(st.binary(min_size=8, max_size=30), st.integers(0, 22))
def test_a_word_is_read_with_its_lowest_byte_first(raw: bytes, at: int) -> None:
    at = min(at, len(raw) - 8)
    word = int.from_bytes(raw[at : at + 8], "little", signed=True)
    assert call_read_word(as_bytes(raw), at) == word


if HAS_C:

    def test_c_functions_are_called_by_their_addresses() -> None:
        function = ctypes.cast(ctypes.CDLL(None).memcmp, ctypes.c_void_p).value

        def compare(a: bytes, b: bytes) -> int:
            result = call_memcmp(function, as_bytes(a), as_bytes(b), len(a))
            return ctypes.c_int32(result & 0xFFFFFFFF).value

        assert compare(b"same", b"same") == 0
        assert compare(b"abcd", b"abce") < 0
        assert compare(b"abce", b"abcd") > 0


@given(st.binary(max_size=9), st.integers(-(2**63), 2**63 - 1))
def test_numbers_are_read_as_they_stand_on_the_wire(before: bytes, number: int) -> None:
    content = as_bytes(before + number.to_bytes(8, signed=True))
    assert read_int64(content, len(before)) == number
    assert read_int32(content, len(before)) == number >> 32
