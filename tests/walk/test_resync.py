from __future__ import annotations

import numpy as np
import pytest
from corpus import NO_JIT
from hypothesis import given
from hypothesis import strategies as st
from strategies import BATCH

from kafkajit import testing as kt
from kafkajit.storage.source import as_bytes
from kafkajit.walk.resync import (
    _NO_PREFIXES,
    PrefixChecksums,
    _prefix_checksums,
    _search,
    goes_on,
    resync,
    zeros_at_the_end,
)

A = kt.batch([kt.Record(b"a", b"1" * 30)], base_offset=1)
B = kt.batch([kt.Record(b"b", b"2" * 50)], base_offset=2, codec="zstd")


@pytest.mark.parametrize("before", [b"", b"x", bytes(60), bytes(5000), b"\x02" * 100, B[:-1]])
@pytest.mark.parametrize("behind", [b"", b"torn", B])
def test_the_next_sound_batch_is_found_at_any_distance(before: bytes, behind: bytes) -> None:
    content = as_bytes(before + A + behind)
    assert PrefixChecksums(content).next_sound_batch(0) == len(before)
    assert PrefixChecksums(content).next_sound_batch(len(before)) == len(before)
    after = len(before) + len(A) if behind == B else content.size
    assert PrefixChecksums(content).next_sound_batch(len(before) + 1) == after


@pytest.mark.parametrize("content", [b"", b"x", bytes(61), b"\x02" * 300, A[:-1], A[1:]])
def test_where_no_batch_is_sound_the_end_is_next(content: bytes) -> None:
    assert PrefixChecksums(as_bytes(content)).next_sound_batch(0) == len(content)


def test_a_batch_whose_checksum_fails_is_not_sound() -> None:
    for at in range(21, len(A)):
        flipped = bytearray(A + B)
        flipped[at] ^= 1
        assert PrefixChecksums(as_bytes(bytes(flipped))).next_sound_batch(0) == len(A)


@pytest.mark.parametrize("behind", [B, b"", b"torn", b"\x00" * 17])
def test_a_bad_batch_ends_where_its_length_says_if_the_log_goes_on_there(behind: bytes) -> None:
    bad = bytearray(A + behind)
    bad[30] ^= 1  # its checksum is wrong
    assert resync(as_bytes(bytes(bad)), 0) == len(A)


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 13, 48, len(A) - 13, len(A) - 11, 2**31 - 1])
def test_past_a_wrong_length_the_next_sound_batch_is_where_it_goes_on(length: int) -> None:
    bad = A[:8] + length.to_bytes(4, "big", signed=True) + A[12:]
    assert resync(as_bytes(bad + B), 0) == len(A)
    assert resync(as_bytes(B + bad + B), len(B)) == len(B) + len(A)
    assert resync(as_bytes(bad + b"t" * 30), 0) == len(bad) + 30


@given(st.lists(st.one_of(BATCH, st.binary(max_size=30)), max_size=5), st.floats(0, 1))
def test_resyncing_goes_forward_and_stays_inside(parts: list[bytes], where: float) -> None:
    content = as_bytes(b"".join(parts))
    position = int(where * content.size)
    after = resync(content, position)
    assert min(position + 1, content.size) <= after <= content.size


def test_a_large_gap_is_crossed() -> None:
    noise = np.random.default_rng(2).bytes(5000)
    assert PrefixChecksums(as_bytes(noise + A)).next_sound_batch(0) == 5000


LARGE = st.builds(lambda size, magic: large(size, magic), st.integers(1, 9000), st.integers(0, 2))


def large(size: int, magic: int) -> bytes:
    record = kt.Record(value=bytes(size))
    return kt.batch([record]) if magic == 2 else kt.message(record, magic=magic)


@given(st.lists(st.one_of(LARGE, BATCH, st.binary(max_size=30)), max_size=4), st.data())
def test_checksums_of_prefixes_find_the_same_batch(parts: list[bytes], data: st.DataObject) -> None:
    content = as_bytes(b"".join(parts))
    start = data.draw(st.integers(0, content.size))
    position = data.draw(st.integers(start, content.size))
    found, _ = _search(content, position, content.size, start, _prefix_checksums(content, start), 0)
    assert found == PrefixChecksums(content).next_sound_batch(position)


@pytest.mark.skipif(NO_JIT, reason="megabytes")
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_headers_planted_to_have_everything_behind_them_checked_hide_nothing(magic: int) -> None:
    header = large(1, magic)[:61]
    planted = bytearray(header * (2_000_000 // len(header)))
    for at in range(0, len(planted), len(header)):
        planted[at + 8 : at + 12] = (len(planted) - at - 12).to_bytes(4)
        planted[at + (17 if magic == 2 else 12)] ^= 1  # the checksum
        if magic < 2:  # the sizes must add up: a null key, and the rest as value
            sizes = at + (18 if magic == 0 else 26)
            planted[sizes : sizes + 4] = b"\xff" * 4
            planted[sizes + 4 : sizes + 8] = (len(planted) - sizes - 8).to_bytes(4)
    for batch in (A, large(3000, 1)):
        content = as_bytes(bytes(planted) + batch)
        assert PrefixChecksums(content).next_sound_batch(0) == len(planted)
        # Only the first few checksums are computed one by one.
        given_up, free = _search(content, 0, content.size, 0, _NO_PREFIXES, 4 * content.size)
        assert free < 0
        assert given_up < 5000


def test_a_header_is_plausible_only_with_fields_that_brokers_let_through() -> None:
    assert goes_on(as_bytes(A), 0)
    for at, value in {0: b"\x80", 12: b"\x80", 21: b"\x01", 22: b"\x80", 23: b"\x80"}.items():
        assert not goes_on(as_bytes(A[:at] + value + A[at + 1 :]), 0)
    for fields in ({"records_count": 2}, {"records_count": -1}, {"base_sequence": -2}):
        odd = kt.batch([kt.Record()], last_offset_delta=0, **fields)
        assert not goes_on(as_bytes(odd), 0)
        assert (
            PrefixChecksums(as_bytes(b"x" + odd)).next_sound_batch(0) == 1
        )  # its checksum proves it


TORN = kt.batch([kt.Record(value=b"z" * 99)], base_offset=5)[:-20]
TORN_MESSAGE = kt.message(kt.Record(b"k", b"z" * 99), offset=5)[:-20]


@pytest.mark.parametrize("tail", [TORN, TORN_MESSAGE, bytes(17), bytes(5000), b""])
def test_a_log_ends_in_a_batch_that_was_never_finished_or_in_zeros(tail: bytes) -> None:
    bad = A[:-1] + b"?"
    content = as_bytes(bad + tail)
    assert goes_on(content, len(bad), zeros=zeros_at_the_end(content))
    assert resync(content, 0, zeros=zeros_at_the_end(content)) == len(bad)
    assert not goes_on(content, len(bad), is_cut=True) or tail == b""


def test_zeros_at_the_end_begin_behind_the_last_byte() -> None:
    for size in range(20):
        assert zeros_at_the_end(as_bytes(b"abc\1" + bytes(size))) == 4
        assert zeros_at_the_end(as_bytes(bytes(size))) == 0


@pytest.mark.parametrize("planted", [0, 200])
def test_zeros_behind_the_data_are_not_searched(planted: int) -> None:
    # A batch whose value ends in the zeros, behind headers without batches.
    batch = kt.batch([kt.Record(value=b"v" + bytes(5000))])
    content = as_bytes(b"x" + A[:61] * planted + batch + bytes(100_000))
    data_end = len(content) - 104_000
    for at in (0, 1, 62, data_end - 1, data_end):
        every = PrefixChecksums(content).next_sound_batch(at)
        assert PrefixChecksums(content, data_end).next_sound_batch(at) == every
